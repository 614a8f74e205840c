// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"math"
	"math/bits"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// spreadNodes is the set of nodes that constraints count, in words of 64 rows.
type spreadNodes struct {
	plan *spreadPlan
	// keyed are the rows that have the keys that a node must have, all rows with a node where it need have none;
	// count is how many they are.
	keyed []uint64
	count int
	// narrowed are the rows that inclusion policies leave of keyed, by policy; nil where not asked for yet.
	narrowed [2][2][]uint64
}

// scored returns the set of the nodes on which the soft constraints count pods. A set of all nodes costs a walk over
// all rows, the nodes with certain keys come from bitmaps: only the one that is needed is built.
func (plan *spreadPlan) scored(s cluster.Snapshot) *spreadNodes {
	if plan.needsKeys {
		return nodesWithKeys(s, plan, plan.soft)
	}
	return allNodes(s, plan)
}

// allNodes returns the set of all nodes.
func allNodes(s cluster.Snapshot, plan *spreadPlan) *spreadNodes {
	e := &spreadNodes{plan: plan, keyed: make([]uint64, (s.Rows()+63)/64), count: s.Nodes()}
	for n := range s.Rows() {
		if s.Node(cluster.NodeIdx(n)) != nil {
			e.keyed[n/64] |= 1 << (uint(n) % 64)
		}
	}
	return e
}

// nodesWithKeys returns the set of the nodes that have the keys of all constraints.
func nodesWithKeys(s cluster.Snapshot, plan *spreadPlan, constraints []spreadConstraint) *spreadNodes {
	e := &spreadNodes{plan: plan, keyed: make([]uint64, (s.Rows()+63)/64)}
	nodematch.Fill(e.keyed)
	for i := range constraints {
		with := s.WithLabelKey(constraints[i].key)
		for w := range e.keyed {
			if w < len(with) {
				e.keyed[w] &= with[w]
			} else {
				e.keyed[w] = 0
			}
		}
	}
	for _, word := range e.keyed {
		e.count += bits.OnesCount64(word)
	}
	return e
}

func (e *spreadNodes) has(n cluster.NodeIdx) bool { return e.keyed[n/64]&(1<<(uint(n)%64)) != 0 }

// of are the rows that have a part in a constraint; all is set if its policies leave none out.
func (e *spreadNodes) of(s cluster.Snapshot, c *spreadConstraint) (words []uint64, all bool) {
	affinity, taints := c.honorsAffinity && e.plan.selects, c.honorsTaints
	if !affinity && !taints {
		return e.keyed, true
	}
	kept := &e.narrowed[bit(affinity)][bit(taints)]
	if *kept != nil {
		return *kept, false
	}
	words = make([]uint64, len(e.keyed))
	copy(words, e.keyed)
	if affinity {
		var selected nodematch.Rows
		selected.Run(s, 0, cluster.NodeIdx(s.Rows()), &e.plan.rules)
		for w := range words {
			words[w] &= selected.Words[w]
		}
	}
	if taints {
		e.dropRepelling(s, words)
	}
	*kept = words
	return words, false
}

func (e *spreadNodes) dropRepelling(s cluster.Snapshot, words []uint64) {
	column, sets := s.TaintSets()
	known := make([]int8, len(sets)) // taint set id -> 0 not judged yet, 1 tolerated, 2 not
	eachRow(words, func(n int) {
		id := column[n]
		if known[id] == 0 {
			known[id] = 1 + int8(bit(nodematch.Repelled(e.plan.tolerations, sets[id])))
		}
		if known[id] == 2 {
			words[n/64] &^= 1 << (uint(n) % 64)
		}
	})
}

// bit returns 1 for true and 0 for false: an index for one or the other.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func eachRow(words []uint64, f func(n int)) {
	for w, word := range words {
		for ; word != 0; word &= word - 1 {
			f(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// includes is spreadNodes.of for one node that has the keys.
func (plan *spreadPlan) includes(c *spreadConstraint, node *cluster.Node) bool {
	if c.honorsAffinity && plan.selects && !plan.rules.Matches(node) {
		return false
	}
	return !c.honorsTaints || !nodematch.Repelled(plan.tolerations, node.Taints)
}

// domains are the values of a constraint's key, with the pods that count in each.
type domains struct {
	topology *cluster.Topology
	pods     []int32 // value id -> pods that count, 0 where no node has a part
	nodes    []int32 // value id -> nodes that have a part
	number   int     // of values with such nodes
	least    int32   // fewest pods in one of these; math.MaxInt32 where there is none
	stale    bool    // least may be wrong
	whole    bool    // all nodes with the key have a part
	shared   bool    // pods is the counter's own, not to be written
}

// count fills the domains of a constraint.
func (e *spreadNodes) domains(s cluster.Snapshot, c *spreadConstraint) domains {
	d := domains{topology: s.Topology(c.key), stale: true}
	size := d.topology.Size()
	words, all := e.of(s, c)
	if all && e.count == d.topology.Nodes() {
		// Every node with the key has a part: the sums are known.
		d.nodes, d.number, d.whole = d.topology.NodesWith(), d.topology.Domains(), true
		if c.counted {
			counter := s.Counter(c.counts)
			d.pods, _ = counter.Totals(d.topology)
			d.least, d.stale, d.shared = counter.Least(d.topology), false, true
			return d
		}
		d.pods = make([]int32, size)
		return d
	}
	d.pods = make([]int32, size)
	d.nodes = make([]int32, size)
	column := d.topology.Column()
	var rows []int32
	if c.counted {
		rows = s.Counter(c.counts).Rows()
	}
	eachRow(words, func(n int) {
		id := column[n]
		if id == cluster.NoValue {
			return
		}
		if d.nodes[id] == 0 {
			d.number++
		}
		d.nodes[id]++
		if rows != nil {
			d.pods[id] += rows[n]
		}
	})
	return d
}

// min is the fewest pods in a domain, as far as there are any.
func (d *domains) min() int32 {
	if !d.stale {
		return d.least
	}
	d.least, d.stale = math.MaxInt32, false
	for id, nodes := range d.nodes {
		if nodes > 0 && d.pods[id] < d.least {
			d.least = d.pods[id]
		}
	}
	return d.least
}

// own makes pods writable.
func (d *domains) own() {
	if d.shared {
		d.pods, d.shared = slices.Clone(d.pods), false
	}
}

// add supposes more pods, or fewer, in a domain.
func (d *domains) add(id, delta int32) {
	d.own()
	was := d.pods[id]
	d.pods[id] += delta
	switch {
	case d.stale:
	case delta < 0:
		d.least = min(d.least, d.pods[id])
	default:
		d.stale = was == d.least
	}
}
