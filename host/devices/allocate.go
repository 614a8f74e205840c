// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// outcome is the allocator's result for a list of claims on a node. Immutable: it may be cached for other pods, and
// for other nodes of the kind.
type outcome struct {
	fits    bool
	reason  string // when it does not fit
	results []resourceapi.AllocationResult
	// node and pools are those of the query; results are translated from them to another node.
	node  string
	pools []*pool
}

// shape caches the allocator's results for claims of the same specs, by row and by kind of node.
type shape struct {
	key   string
	rows  []rowOutcome
	kinds kindOutcomes
	// shared caches results for nodes that have shared devices only.
	shared sharedOutcomes
	read   map[poolID]soundlyRead // of pools that were spent
}

// rowOutcome is valid while the node has the same version, the classes are the same, and no slice of its pools and
// the shared ones has changed and no device of them was allocated or freed.
type rowOutcome struct {
	node   *cluster.Node
	pools  []*pool
	layout uint64 // Inventory.layout when pools were looked up
	epoch  uint64
	at     uint64 // Inventory.clock at the query
	out    *outcome
}

// maxShapes bounds the cached shapes; the least recently used one is dropped.
const maxShapes = 16

// answers are the cached shapes, the most recently used at the end.
type answers struct{ shapes []*shape }

func (a *answers) of(key string) *shape {
	for i, sh := range a.shapes {
		if sh.key == key {
			copy(a.shapes[i:], a.shapes[i+1:])
			a.shapes[len(a.shapes)-1] = sh
			return sh
		}
	}
	if len(a.shapes) >= maxShapes {
		a.shapes = append(a.shapes[:0], a.shapes[1:]...)
	}
	sh := &shape{key: key}
	a.shapes = append(a.shapes, sh)
	return sh
}

func (sh *shape) row(n cluster.NodeIdx) *rowOutcome {
	for int(n) >= len(sh.rows) {
		sh.rows = append(sh.rows, rowOutcome{})
	}
	return &sh.rows[n]
}

// toAllocate returns the claims without an allocation, with a variant instead of the extended one.
func (pr *prepared) toAllocate(v *variant) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for i := range pr.claims {
		c := &pr.claims[i]
		switch {
		case c.allocated():
		case v != nil && pr.extended != nil && i == len(pr.claims)-1:
			claims = append(claims, v.claim)
		default:
			claims = append(claims, c.ResourceClaim)
		}
	}
	return claims
}

// shapeOf returns the cache for the claims of this decision.
func (pr *prepared) shapeOf(v *variant) *shape {
	if sh := pr.shapes[v]; sh != nil {
		return sh
	}
	var key []byte
	for _, c := range pr.toAllocate(v) {
		spec, err := json.Marshal(&c.Spec.Devices)
		if err != nil {
			panic(fmt.Sprintf("spec of claim %s: %v", keyOf(c), err)) // API types always marshal
		}
		key = append(append(key, spec...), '\n')
	}
	sh := pr.pl.answers.of(string(key))
	pr.shapes[v] = sh
	return sh
}

// askRemembered queries the allocator for one node, unless a cached result for it, or for one of its kind, is valid.
func (pr *prepared) askRemembered(n cluster.NodeIdx, node *cluster.Node, v *variant) (*outcome, error) {
	inv, sh := pr.pl.inv, pr.shapeOf(v)
	r := sh.row(n)
	if r.node != node || r.layout != inv.layout {
		pools := inv.poolsOf[node.Name]
		if r.node != node || !slices.Equal(pools, r.pools) {
			*r = rowOutcome{}
		}
		r.node, r.pools, r.layout = node, pools, inv.layout
	}
	if r.out != nil && r.epoch == inv.epoch && r.at >= touched(r.pools) && r.at >= pr.shared {
		return r.out, nil
	}
	out, err := pr.askKind(sh, n, node, r.pools, v)
	if err != nil {
		return nil, err
	}
	r.out, r.epoch, r.at = out, inv.epoch, inv.clock
	return out, nil
}

// askWhole queries an allocator with the state of the whole cluster, without a cache.
func (pr *prepared) askWhole(_ cluster.NodeIdx, node *cluster.Node, v *variant) (*outcome, error) {
	if pr.whole == nil {
		var rules []*resourceapi.DeviceTaintRule
		if pr.pl.inv.features.TaintRules {
			rules = plugin.DeviceTaintRules(pr.s)
		}
		var all []*resourceapi.ResourceSlice
		cluster.Each(pr.s, func(slice *resourceapi.ResourceSlice) bool {
			all = append(all, plugin.TaintedSlice(slice, rules))
			return true
		})
		inv := pr.pl.inv
		whole, err := structured.NewAllocator(context.Background(), inv.features.Allocator, inv.state, lister{pr.s},
			all, pr.pl.cel)
		if err != nil {
			return nil, err
		}
		pr.whole = whole
	}
	return pr.pl.ask(pr.whole, asNode(node), pr.toAllocate(v))
}

// askPools queries an allocator with the pools of one node and the shared ones only.
func (pr *prepared) askPools(n cluster.NodeIdx, node *cluster.Node, pools []*pool, v *variant) (*outcome, error) {
	pl, claims := pr.pl, pr.toAllocate(v)
	a, err := structured.NewAllocator(context.Background(), pl.inv.features.Allocator, pl.inv.state, lister{pr.s},
		pl.inv.slicesFor(pools, pr.hides(v, claims)), pl.cel)
	if err != nil {
		return nil, err
	}
	out, err := pl.ask(a, pl.apiNode(n, node), claims)
	if err != nil {
		return nil, err
	}
	out.pools = pools
	return out, nil
}

// ask runs the allocator. An error fails the attempt on all nodes: a claim or a class is invalid, or the time-out
// expired.
func (pl *Plugin) ask(a structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) (*outcome, error) {
	ctx := context.Background()
	if pl.args.FilterTimeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, pl.args.FilterTimeout)
		defer cancel()
		ctx = bounded
	}
	results, err := a.Allocate(ctx, node, claims)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("node %s: timed out trying to allocate devices", node.Name)
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return &outcome{node: node.Name, reason: err.Error()}, nil
	case err != nil:
		return nil, err
	case len(results) != len(claims):
		return &outcome{node: node.Name, reason: "cannot allocate all claims"}, nil
	}
	return &outcome{node: node.Name, fits: true, results: results}, nil
}

// lister provides the device classes to the allocator.
type lister struct{ s cluster.Snapshot }

func (l lister) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	cluster.Each(l.s, func(class *resourceapi.DeviceClass) bool {
		all = append(all, class)
		return true
	})
	return all, nil
}

func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	class, ok := cluster.Find[*resourceapi.DeviceClass](l.s, "", name)
	if !ok {
		return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
	}
	return class, nil
}

// shareID returns the name of one share of a device, instead of the random one of the allocator: it has the form of a
// UUID, and all are distinct, because no two claims have the same UID, nor one claim the same share of a device
// twice.
func shareID(owner types.UID, r *resourceapi.DeviceRequestAllocationResult, index int) *types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%s\x00%d", owner, r.Driver, r.Pool, r.Device,
		r.Request, index))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: custom
	id := types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	return &id
}

// own returns an allocation to be kept for a claim: a copy, with reproducible share IDs.
func own(a *resourceapi.AllocationResult, owner types.UID) *resourceapi.AllocationResult {
	a = a.DeepCopy()
	for i := range a.Devices.Results {
		if r := &a.Devices.Results[i]; r.ShareID != nil {
			r.ShareID = shareID(owner, r, i)
		}
	}
	return a
}
