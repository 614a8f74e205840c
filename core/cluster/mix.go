// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Shape is what pods hold on their node, with the number of pods of which that was observed.
type Shape struct {
	Held resource.Amounts
	Pods int64
}

// MixState is the mix of shapes as a State has it.
type MixState struct {
	// Seen are the shapes of the pods observed so far, in the order in which they were first observed; Shown are those
	// that plugins read, as of some time ago. Next is the number of pods at which Shown is renewed.
	Seen, Shown []Shape
	Next        int64
}

// mix counts the pods that were observed on a node by what they hold: each once, when the API server first reports its
// node. Plugins read a copy that is renewed when the number of pods has doubled, and later every mixPods pods, so that
// what they computed from it stays valid in between.
//
// Rejected: the pods that are on nodes now, which a resumed engine could compute: a copy that is renewed from time to
// time is a fact all the same, and without one each bind would invalidate every score.
type mix struct {
	seen  []Shape          // kept
	shown []Shape          // kept; never changed in place
	next  int64            // kept; the total at which shown is renewed. Invariant: total < next
	total int64            // derived: the sum over seen
	index map[string]int   // derived: from seen. Printed amounts -> index in seen
	specs map[*PodSpec]int // derived: from seen. Spec -> index in seen, of some of the specs
	// version never returns to an earlier value, also if a renewal is undone.
	version uint64 // derived: only caches compare it
}

// The mix is renewed every mixPods pods at the latest; then older pods count half, and shapes without a pod are
// dropped.
const (
	mixPods  = 4096
	mixSpecs = 4096 // in specs; beyond it all are dropped
)

// Mix returns the shapes of the pods that were observed so far, in the order in which they were first observed, and a
// version that changes with them. The shapes must not be changed; they stay as they are.
func (v Snapshot) Mix() (shapes []Shape, version uint64) { return v.s.mix.shown, v.s.mix.version }

// observe counts a pod in the mix.
func (s *Store) observe(spec *PodSpec) {
	m := &s.mix
	i, known := m.find(spec)
	if !known {
		i = len(m.seen)
		m.seen = append(m.seen, Shape{Held: spec.Held})
		m.remember(spec, i)
	}
	m.seen[i].Pods++
	m.total++
	if m.total < m.next {
		s.did(func() {
			m.seen[i].Pods--
			m.total--
			if !known {
				m.seen = m.seen[:i]
				m.forget()
			}
		})
		return
	}
	before := m.state()
	before.Seen[i].Pods--
	if !known {
		before.Seen = before.Seen[:i]
	}
	m.renew()
	s.did(func() { m.restore(before) })
}

// renew shows what was seen.
func (m *mix) renew() {
	m.shown = slices.Clone(m.seen)
	m.version++
	m.next = min(2*m.total, m.total+mixPods)
	if m.total < 2*mixPods {
		return
	}
	m.total = 0
	kept := m.seen[:0]
	for _, sh := range m.seen {
		if sh.Pods /= 2; sh.Pods > 0 {
			kept = append(kept, sh)
			m.total += sh.Pods
		}
	}
	m.seen = kept
	m.next = m.total + mixPods
	m.forget()
}

// find returns the index of a spec's shape.
func (m *mix) find(spec *PodSpec) (i int, known bool) {
	if i, known = m.specs[spec]; known {
		return i, true
	}
	if len(m.index) != len(m.seen) {
		m.index = make(map[string]int, len(m.seen))
		for i := range m.seen {
			m.index[shapeKey(&m.seen[i].Held)] = i
		}
	}
	if i, known = m.index[shapeKey(&spec.Held)]; known {
		m.remember(spec, i)
	}
	return i, known
}

func shapeKey(a *resource.Amounts) string { return fmt.Sprint(*a) }

// remember records the index of a spec's shape.
func (m *mix) remember(spec *PodSpec, i int) {
	if m.specs == nil || len(m.specs) >= mixSpecs {
		m.specs = map[*PodSpec]int{}
	}
	m.specs[spec] = i
	if m.index == nil {
		m.index = map[string]int{}
	}
	m.index[shapeKey(&spec.Held)] = i
}

// forget drops what is computed from seen.
func (m *mix) forget() { m.index, m.specs = nil, nil }

// state returns the facts. The lists are copies, or are never changed.
func (m *mix) state() MixState {
	return MixState{Seen: slices.Clone(m.seen), Shown: m.shown, Next: m.next}
}

// restore sets the facts.
func (m *mix) restore(st MixState) {
	m.seen, m.shown, m.next, m.total = slices.Clone(st.Seen), st.Shown, st.Next, 0
	for _, sh := range m.seen {
		m.total += sh.Pods
	}
	m.version++
	m.forget()
}

// largest is the largest amount that a node offers of each resource.
type largest struct {
	amounts []int64 // by resource.ID
	offers  uint64  // Store.offers as of amounts
	version uint64
}

// Largest returns the largest amount that a node offers of each resource, by resource.ID, and a version that changes
// with them. The amounts must not be changed; they stay as they are.
func (v Snapshot) Largest() (amounts []int64, version uint64) {
	l := &v.s.largest
	if l.offers == v.s.offers {
		return l.amounts, l.version
	}
	l.offers = v.s.offers
	now := make([]int64, len(v.s.allocatable))
	for id := range v.s.allocatable {
		c := &v.s.allocatable[id]
		for _, list := range [][]int64{c.v, c.some} {
			for _, amount := range list {
				now[id] = max(now[id], amount)
			}
		}
	}
	if !slices.Equal(now, l.amounts) {
		l.amounts = now
		l.version++
	}
	return l.amounts, l.version
}
