// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// sums work out on a row what the pod lacks and who holds it.
type sums struct {
	needs []need
	// exact tells that on rows where amounts reject the pod nothing else decides.
	exact bool
	// known tells that the needs are all that the pod needs in amounts.
	known bool
}

// need is one thing that the pod needs of a node.
type need struct {
	plugin.Amount
	of                 amount
	known              bool           // some node offers the resource, or some pod holds it
	requested, offered cluster.Column // if it is known
	lacks              int64          // of the row in hand: what must be freed, negative where there is more than enough
}

// amount tells where cells have what they hold of a resource.
type amount uint8

const (
	ofPods amount = iota
	ofCPU
	ofMemory
	ofEphemeral
	ofScalar // in the pod's record
)

// amountOf tells where cells have what they hold of a resource.
func amountOf(name v1.ResourceName) amount {
	switch name {
	case v1.ResourcePods:
		return ofPods
	case v1.ResourceCPU:
		return ofCPU
	case v1.ResourceMemory:
		return ofMemory
	case v1.ResourceEphemeralStorage:
		return ofEphemeral
	}
	return ofScalar
}

func (sm *sums) begin(s cluster.Snapshot, rel *place.Relief) {
	sm.needs = sm.needs[:0]
	sm.exact, sm.known = rel.AmountsAlone(), len(rel.Needs()) > 0
	for _, a := range rel.Needs() {
		if a.Amount > safeAmount {
			sm.needs, sm.exact, sm.known = sm.needs[:0], false, false
			return
		}
		nd := need{Amount: a, of: amountOf(a.Name)}
		if id, known := s.Names().Lookup(a.Name); known {
			nd.known, nd.requested, nd.offered = true, s.Requested(id), s.Allocatable(id)
		}
		sm.needs = append(sm.needs, nd)
	}
}

// look works out what is missing on a row.
func (sm *sums) look(n cluster.NodeIdx) {
	for i := range sm.needs {
		nd := &sm.needs[i]
		nd.lacks = nd.Amount.Amount
		switch {
		case nd.Offered > 0:
			nd.lacks -= nd.Offered - nd.requested.At(n)
		case nd.known:
			nd.lacks -= nd.offered.At(n) - nd.requested.At(n)
		}
	}
}

// expect supposes that a pod is on the row besides its own. One that holds more than sums are safe with is left out.
func (sm *sums) expect(held *resource.Amounts) {
	if tooMuch(held) {
		return
	}
	for i := range sm.needs {
		nd := &sm.needs[i]
		more := held.Get(nd.Name)
		if nd.of == ofPods {
			more = 1
		}
		nd.lacks += more
	}
}

// held is what a pod holds of the i-th need.
func (nd *need) held(c *cell) int64 {
	switch nd.of {
	case ofPods:
		return 1
	case ofCPU:
		return c.cpu
	case ofMemory:
		return c.memory
	case ofEphemeral:
		return c.ephemeral
	}
	return c.pod.Spec.Held.Get(nd.Name)
}

// heldBy is what a pod holds of the need.
func (nd *need) heldBy(p *cluster.Pod) int64 { return heldOf(p, nd.of, nd.Name) }

// heldByAll is what pods hold of the need that are added up in c; no pods stand for the one of c.
func (nd *need) heldByAll(c *cell, pods []*cluster.Pod) (sum int64) {
	switch {
	case len(pods) == 0 || nd.of != ofPods && nd.of != ofScalar:
		return nd.held(c)
	case nd.of == ofPods:
		return int64(len(pods))
	}
	for _, p := range pods {
		sum += p.Spec.Held.Get(nd.Name)
	}
	return sum
}

// level returns how many of the pods, from the most important on, need not go so that those behind them hold what is
// missing, cut between priorities: the highest priority of whoever goes is that of the first pod behind the cut. ok is
// false when all of them together do not hold it. What is freed beyond what is missing is left in lacks, below zero.
func (sm *sums) level(lower []cell) (cut int, ok bool) {
	cut = len(lower)
	for {
		// Take all of the next priority, at least one pod: where nothing is missing, somebody must still go.
		priority := lower[cut-1].priority
		for cut > 0 && lower[cut-1].priority == priority {
			cut--
			sm.take(&lower[cut])
		}
		if sm.met() {
			return cut, true
		}
		if cut == 0 {
			return 0, false
		}
	}
}

// take supposes that a pod has gone.
func (sm *sums) take(c *cell) {
	for i := range sm.needs {
		sm.needs[i].lacks -= sm.needs[i].held(c)
	}
}

func (sm *sums) met() bool {
	for i := range sm.needs {
		if sm.needs[i].lacks > 0 {
			return false
		}
	}
	return true
}

// back gives a pod its room again if that leaves enough, after level.
func (sm *sums) back(c *cell) bool {
	for i := range sm.needs {
		nd := &sm.needs[i]
		if nd.lacks+nd.held(c) > 0 {
			return false
		}
	}
	for i := range sm.needs {
		nd := &sm.needs[i]
		nd.lacks += nd.held(c)
	}
	return true
}

// loss spares what can be spared of the pods behind the cut, where no budget has a say, and returns what the others cost.
func (sm *sums) loss(behind []cell) Loss {
	l := Loss{Highest: math.MinInt32, Oldest: notStarted}
	for i := range behind {
		if !sm.back(&behind[i]) {
			l.Victims++
			l.add(behind[i].priority, behind[i].start)
		}
	}
	return l
}

// tell notes what is still missing with all pods of the row gone that may go.
func (sm *sums) tell(h *histogram) {
	for i := range sm.needs {
		if sm.needs[i].lacks > 0 {
			h.count(sm.needs[i].Reason)
		}
	}
	h.nodes++
}

// heldOf is what a pod holds of an amount; name counts where no field has it.
func heldOf(p *cluster.Pod, of amount, name v1.ResourceName) int64 {
	h := &p.Spec.Held
	switch of {
	case ofPods:
		return 1
	case ofCPU:
		return h.MilliCPU
	case ofMemory:
		return h.Memory
	case ofEphemeral:
		return h.Ephemeral
	}
	return h.Get(name)
}
