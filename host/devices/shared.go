// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// A node without pools of its own has shared devices only. The allocator's result for it depends on which of them it
// can use, and that on the node selectors of their slices: nodes that the same selectors match share one result, with
// the same devices. A node that a shared device names is queried on its own.

// reaches is how shared devices select their nodes. It is computed again after a change of a slice of a shared pool.
type reaches struct {
	at        uint64 // published.sharedSlices when it was computed
	selectors []*nodeaffinity.NodeSelector
	named     map[string]bool // node -> a device names it
	broken    bool            // some selector is invalid, which the allocator has to report
}

// sharedOutcomes caches the allocator's results for nodes that reach the same devices; valid for one state of the
// classes and of the shared pools.
type sharedOutcomes struct {
	epoch, at uint64
	said      map[string]*outcome // which selectors match -> the result
}

// askReach queries the allocator for a node without pools of its own, unless it has a result for one that the same
// selectors match. known is false if the node has to be queried on its own.
func (pr *prepared) askReach(sh *shape, n cluster.NodeIdx, node *cluster.Node,
	v *variant) (out *outcome, known bool, err error) {
	reach, ok := pr.pl.reachOf(n, node)
	if !ok {
		return nil, false, nil
	}
	k := &sh.shared
	if k.said == nil || k.epoch != pr.pl.inv.epoch || k.at != pr.shared {
		*k = sharedOutcomes{pr.pl.inv.epoch, pr.shared, map[string]*outcome{}}
	}
	if out := k.said[reach]; out != nil {
		return out, true, nil
	}
	if out, err = pr.askPools(n, node, nil, v); err != nil {
		return nil, true, err
	}
	k.said[reach] = out
	return out, true, nil
}

// reachOf returns which selectors of shared slices match a node, one character for each.
func (pl *Plugin) reachOf(n cluster.NodeIdx, node *cluster.Node) (reach string, ok bool) {
	r := pl.inv.reaches()
	if r.broken || r.named[node.Name] {
		return "", false
	}
	api := pl.apiNode(n, node)
	c := &pl.nodes[n]
	if c.reachAt != r.at {
		text := make([]byte, len(r.selectors))
		for i, sel := range r.selectors {
			text[i] = '0'
			if sel.Match(api) {
				text[i] = '1'
			}
		}
		c.reach, c.reachAt = string(text), r.at
	}
	return c.reach, true
}

// reaches returns the up-to-date state.
func (inv *Inventory) reaches() *reaches {
	if r := inv.reach; r != nil && r.at == inv.sharedSlices {
		return r
	}
	r := &reaches{at: inv.sharedSlices, named: map[string]bool{}}
	inv.reach = r
	known := map[string]bool{} // selector -> is among the others
	add := func(name *string, sel *v1.NodeSelector) {
		if name != nil {
			r.named[*name] = true
		}
		if sel == nil {
			return
		}
		text, err := json.Marshal(sel)
		if err != nil {
			panic(fmt.Sprintf("node selector of a slice: %v", err)) // API types always marshal
		}
		if known[string(text)] {
			return
		}
		known[string(text)] = true
		read, err := nodeaffinity.NewNodeSelector(sel)
		if err != nil {
			r.broken = true
			return
		}
		r.selectors = append(r.selectors, read)
	}
	for _, p := range inv.sharedPools {
		for _, slice := range p.slices {
			add(slice.Spec.NodeName, slice.Spec.NodeSelector)
			for i := range slice.Spec.Devices {
				add(slice.Spec.Devices[i].NodeName, slice.Spec.Devices[i].NodeSelector)
			}
		}
	}
	return r
}
