// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Nodes of one kind have devices that no request of a shape distinguishes, with the same ones allocated: the
// allocator's result for one of them holds for all. The kind of a node is a text: for each of its pools a description
// of the devices, as far as the shape reads it, and which of them are allocated. Devices often carry a serial number
// or an address; attributes that no selector and no constraint of the shape names are not part of the kind.
//
// A node has a kind only if all its devices are its own: every slice of its pools names this node, no pool has slices
// elsewhere, and the cluster has no devices for any node. A node without pools of its own shares results with those
// that reach the same devices (shared.go). Other nodes are queried on their own.

// kindOutcomes caches the allocator's results for nodes of each kind; valid for one state of the device classes.
type kindOutcomes struct {
	epoch    uint64
	relevant relevance
	said     map[string]*outcome // kind -> what it says
}

// maxKinds bounds the cached kinds of a shape.
const maxKinds = 1 << 14

// askKind queries the allocator for one node, unless it has a result for one of its kind.
func (pr *prepared) askKind(sh *shape, n cluster.NodeIdx, node *cluster.Node, pools []*pool,
	v *variant) (*outcome, error) {
	inv, k := pr.pl.inv, &sh.kinds
	if k.said == nil || k.epoch != inv.epoch || len(k.said) >= maxKinds {
		*k = kindOutcomes{inv.epoch, pr.relevant(v), map[string]*outcome{}}
	}
	if len(pools) == 0 && len(inv.sharedPools) > 0 {
		if out, known, err := pr.askReach(sh, n, node, v); known {
			return out, err
		}
	}
	kind, ok := inv.kindOf(node.Name, pools, &k.relevant)
	if !ok {
		return pr.askPools(n, node, pools, v)
	}
	if out := k.said[kind]; out != nil {
		return out, nil
	}
	out, err := pr.askPools(n, node, pools, v)
	if err != nil {
		return nil, err
	}
	k.said[kind] = out
	return out, nil
}

// kindOf returns the kind of a node with respect to the relevant attributes.
func (inv *Inventory) kindOf(node string, pools []*pool, rel *relevance) (kind string, ok bool) {
	if len(inv.sharedPools) > 0 {
		return "", false
	}
	var b strings.Builder
	for i, p := range pools {
		if len(p.homes) != 1 || p.homes[0] != node {
			return "", false
		}
		what, whole := p.kinds.content(p, rel)
		if !whole {
			return "", false
		}
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(what)
		b.WriteString(p.kinds.takenOf(inv, p))
		// The allocator keeps counters by the name of a pool, whatever its driver.
		if j := slices.IndexFunc(pools, func(q *pool) bool { return q.id.name == p.id.name }); j != i {
			fmt.Fprintf(&b, "=%d", j)
		}
	}
	return b.String(), true
}

// poolKinds is a pool's part of kinds, computed on demand. It is new when the slices of the pool change.
type poolKinds struct {
	contents map[string]string // relevance -> digest of the devices
	taken    string            // which of the devices are allocated
	takenAt  uint64            // pool.changed when taken was computed; 0 for never
}

// content returns a digest of a pool's devices. It is not whole while slices are missing or being replaced.
func (k *poolKinds) content(p *pool, rel *relevance) (digest string, whole bool) {
	if d, known := k.contents[rel.key]; known {
		return d, d != ""
	}
	if k.contents == nil {
		k.contents = map[string]string{}
	}
	k.contents[rel.key] = digestOf(p, rel)
	return k.contents[rel.key], k.contents[rel.key] != ""
}

// published devices, without what differs between nodes of a kind.
type content struct {
	Driver  string
	Devices [][]resourceapi.Device
	Sets    [][]resourceapi.CounterSet
}

// digestOf returns an empty text for a pool that is not whole.
func digestOf(p *pool, rel *relevance) string {
	c := content{Driver: p.id.driver}
	for _, slice := range p.slices {
		spec := &slice.Spec
		if spec.Pool.Generation != p.slices[0].Spec.Pool.Generation ||
			spec.Pool.ResourceSliceCount != int64(len(p.slices)) ||
			spec.PerDeviceNodeSelection != nil {
			return ""
		}
		devices := slices.Clone(spec.Devices)
		for i := range devices {
			devices[i].Attributes = rel.attributes(devices[i].Attributes)
			devices[i].Taints = slices.Clone(devices[i].Taints)
			for j := range devices[i].Taints {
				devices[i].Taints[j].TimeAdded = nil
			}
		}
		c.Devices, c.Sets = append(c.Devices, devices), append(c.Sets, spec.SharedCounters)
	}
	text, err := json.Marshal(&c)
	if err != nil {
		panic(fmt.Sprintf("devices of pool %v: %v", p.id, err)) // API types always marshal
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// takenOf encodes for each device whether it is free (0), allocated (1), or shared, with the amounts in use.
func (k *poolKinds) takenOf(inv *Inventory, p *pool) string {
	if k.takenAt == p.changed {
		return k.taken
	}
	var b strings.Builder
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			id := structured.MakeDeviceID(p.id.driver, p.id.name, slice.Spec.Devices[i].Name)
			switch used := inv.state.AggregatedCapacity[id]; {
			case inv.state.AllocatedDevices.Has(id):
				b.WriteByte('1')
			case inv.sharers[id] == 0:
				b.WriteByte('0')
			default:
				b.WriteByte('s')
				var amounts []string
				for name, q := range used { // order: sorted below
					amounts = append(amounts, fmt.Sprintf("%s=%s", name, q.String()))
				}
				slices.Sort(amounts)
				fmt.Fprintf(&b, "%q", amounts)
			}
		}
	}
	k.taken, k.takenAt = b.String(), p.changed
	return k.taken
}

// relevance is which attributes of devices a shape reads.
type relevance struct {
	key string
	all bool
	ids map[string]bool // name of an attribute, without domain -> it is read
}

// The forms in which a selector reads devices such that its attributes can be recognised.
var (
	plainAttribute = regexp.MustCompile(`device\.attributes\[(?:"[^"\\]*"|'[^'\\]*')\]\.\??([A-Za-z_][A-Za-z0-9_]*)`)
	plainOther     = regexp.MustCompile(`device\.(?:driver|capacity|allowMultipleAllocations)\b`)
	plainText      = regexp.MustCompile(`"[^"\\]*"|'[^'\\]*'`)
	anyDevice      = regexp.MustCompile(`\bdevice\b|["'\\` + "`" + `]`)
)

// read records what an expression reads. An expression that does anything else with its device than naming attributes
// literally counts as reading all of them.
func (rel *relevance) read(expression string) {
	for _, m := range plainAttribute.FindAllStringSubmatch(expression, -1) {
		rel.ids[m[1]] = true
	}
	rest := plainAttribute.ReplaceAllString(expression, " ")
	rest = plainOther.ReplaceAllString(rest, " ")
	rest = plainText.ReplaceAllString(rest, " ")
	rel.all = rel.all || anyDevice.MatchString(rest)
}

// attributes returns those that are read.
func (rel *relevance) attributes(
	all map[resourceapi.QualifiedName]resourceapi.DeviceAttribute,
) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	if rel.all {
		return all
	}
	var some map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	for name, a := range all { // order: fills another map, key by key
		if rel.ids[attributeID(string(name))] {
			if some == nil {
				some = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
			}
			some[name] = a
		}
	}
	return some
}

// attributeID returns a name without its domain.
func attributeID(name string) string {
	_, id, found := strings.Cut(name, "/")
	if !found {
		return name
	}
	return id
}

// relevant returns which attributes of devices the claims of this decision read.
func (pr *prepared) relevant(v *variant) relevance {
	rel := relevance{ids: map[string]bool{}}
	selectors := func(list []resourceapi.DeviceSelector) {
		for _, sel := range list {
			if sel.CEL != nil {
				rel.read(sel.CEL.Expression)
			}
		}
	}
	class := func(name string) {
		if c, ok := cluster.Find[*resourceapi.DeviceClass](pr.s, "", name); ok {
			selectors(c.Spec.Selectors)
		}
	}
	for _, c := range pr.toAllocate(v) {
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			if r.Exactly != nil {
				class(r.Exactly.DeviceClassName)
				selectors(r.Exactly.Selectors)
			}
			for j := range r.FirstAvailable {
				class(r.FirstAvailable[j].DeviceClassName)
				selectors(r.FirstAvailable[j].Selectors)
			}
		}
		for _, constraint := range c.Spec.Devices.Constraints {
			attributes := []*resourceapi.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute}
			for _, name := range attributes {
				if name != nil {
					rel.ids[attributeID(string(*name))] = true
				}
			}
		}
	}
	names := make([]string, 0, len(rel.ids))
	for name := range rel.ids { // order: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	rel.key = fmt.Sprintf("%v%q", rel.all, names)
	return rel
}

// at translates a result for one node of a kind to another one.
func (o *outcome) at(node string, pools []*pool) []resourceapi.AllocationResult {
	if o.node == node || len(o.pools) == 0 { // shared devices are the same anywhere
		return o.results
	}
	results := make([]resourceapi.AllocationResult, len(o.results))
	for i := range o.results {
		o.results[i].DeepCopyInto(&results[i])
		for j := range results[i].Devices.Results {
			d := &results[i].Devices.Results[j]
			at := slices.IndexFunc(o.pools, func(p *pool) bool { return p.id == poolID{d.Driver, d.Pool} })
			d.Pool = pools[at].id.name
		}
		if sel := results[i].NodeSelector; sel != nil {
			// Devices that name their node have this form: their node, by name.
			sel.NodeSelectorTerms[0].MatchFields[0].Values[0] = node
		}
	}
	return results
}
