// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Seen is what the store knew about a bound pod when a new version of it arrived.
type Seen struct {
	// Old is the version whose amounts were in the ledger, nil if the pod was new.
	Old *Pod
	// WasAssumed: this scheduler had decided the pod's node, and the pod is now confirmed.
	WasAssumed bool
	// Elsewhere is the node on which the ledger had the pod, if the API server has it on another one.
	Elsewhere string
}

// SetPod records a pod that the API server has bound to p.NodeName. An assumed pod becomes confirmed; if it was bound
// to another node, the API server's node counts.
func (s *Store) SetPod(p *Pod) Seen {
	seen := s.setPod(p)
	s.changed(Change{Kind: PodBound, Pod: p})
	return seen
}

func (s *Store) setPod(p *Pod) Seen {
	if p.NodeName == "" {
		panic(Broken(fmt.Sprintf("SetPod of pod %s (%s), which is not bound", p.Key(), p.UID)))
	}
	var seen Seen
	e := s.pods[p.UID]
	if e == nil || e.assumed {
		s.observe(p.Spec)
	}
	if e != nil {
		seen.Old, seen.WasAssumed = e.pod, e.assumed
		if name := s.rows[e.row].name; name != p.NodeName {
			seen.Elsewhere = name
		}
		if e.countsAs(p) && seen.Elsewhere == "" {
			s.settle(e, p)
			return seen
		}
		s.remove(e)
		s.insert(&entry{pod: p, gang: e.gangKept(p)}, s.rowFor(p.NodeName))
		return seen
	}
	s.insert(&entry{pod: p}, s.rowFor(p.NodeName))
	return seen
}

// countsAs reports whether another version of the pod holds the same on its node and counts in the same counters.
func (e *entry) countsAs(p *Pod) bool {
	was := e.pod
	return was.Spec == p.Spec && was.Namespace == p.Namespace && was.Name == p.Name &&
		was.Terminating == p.Terminating && was.EvictableForGangs == p.EvictableForGangs
}

// settle records p as the known version and confirms it. The amounts of the row do not change, so caches need no
// notification.
func (s *Store) settle(e *entry, p *Pod) {
	was, wasAssumed := e.pod, e.assumed
	s.rev++
	e.pod = p
	s.renewed(e, was)
	gang := e.gang
	learnt := s.addLateMember(e)
	if learnt {
		s.renewal.add(e.row)
	}
	if wasAssumed {
		e.assumed = false
		s.countAssumed(e.row, p.Spec, -1)
	}
	s.did(func() {
		if learnt {
			s.gangLeave(e)
			e.gang = gang
			s.renewal.add(e.row)
		}
		e.pod = was
		s.renewed(e, p)
		if wasAssumed {
			e.assumed = true
			s.countAssumed(e.row, was.Spec, 1)
		}
	})
}

// countAssumed adds to the assumed part only.
func (s *Store) countAssumed(n NodeIdx, spec *PodSpec, sign int64) {
	s.assumed[resource.CPU].add(n, sign*spec.Held.MilliCPU)
	s.assumed[resource.Memory].add(n, sign*spec.Held.Memory)
	s.assumed[resource.Ephemeral].add(n, sign*spec.Held.Ephemeral)
	s.assumed[resource.Pods].add(n, sign)
	for _, sc := range spec.Held.Scalars {
		s.assumed[s.columnOf(sc.Name)].add(n, sign*sc.Value)
	}
}

// DeletePod removes a pod, confirmed or assumed, from the ledger.
func (s *Store) DeletePod(uid UID) (old *Pod, ok bool) {
	e := s.pods[uid]
	if e == nil {
		return nil, false
	}
	s.remove(e)
	s.changed(Change{Kind: PodRemoved, UID: uid})
	return e.pod, true
}

// Forget removes an assumed pod from the ledger at once, after its bind failed. It reports whether there was one: a
// pod that the watch has confirmed meanwhile stays.
func (s *Store) Forget(uid UID) bool {
	e := s.pods[uid]
	if e == nil || !e.assumed {
		return false
	}
	s.remove(e)
	s.changed(Change{Kind: PodFreed, UID: uid})
	return true
}

// assume puts a decided pod on a row.
func (s *Store) assume(p *Pod, n NodeIdx) {
	if e := s.pods[p.UID]; e != nil {
		panic(Broken(fmt.Sprintf("assuming pod %s (%s) on %q, the ledger has it on %q", p.Key(), p.UID,
			s.rows[n].name, s.rows[e.row].name)))
	}
	s.insert(&entry{pod: p, assumed: true}, n)
	s.changed(Change{Kind: PodTaken, Pod: p, Name: s.rows[n].name})
}

// insert adds an entry to a row. Its gang is the one in which the pod counted before; with nil the pod's declaration
// counts.
func (s *Store) insert(e *entry, n NodeIdx) {
	s.attach(e, n, len(s.rows[n].pods))
	s.did(func() { s.detach(e) })
}

func (s *Store) remove(e *entry) {
	n, pos := e.row, e.pos
	s.detach(e)
	s.did(func() { s.attach(e, n, pos) })
	s.releaseIfEmpty(n)
}

// attach adds e at a position of its row: the last one, or the one from which detach removed it.
func (s *Store) attach(e *entry, n NodeIdx, pos int) {
	r := &s.rows[n]
	e.row, e.pos = n, pos
	r.pods = append(r.pods, e)
	if last := len(r.pods) - 1; pos != last {
		moved := r.pods[pos]
		r.pods[last], moved.pos = moved, last
		r.pods[pos] = e
	}
	r.ports = append(r.ports, e.pod.Spec.Ports...)
	s.pods[e.pod.UID] = e
	s.gangEnter(e)
	if e.pod.EvictableForGangs {
		s.evictable++
	}
	s.volumesEnter(e, n)
	s.count(e, n, 1)
}

// detach removes e from its row; the last pod of the row takes its position.
func (s *Store) detach(e *entry) {
	r := &s.rows[e.row]
	last := len(r.pods) - 1
	if r.pods[e.pos] != e {
		panic(Broken(fmt.Sprintf("pod %s is not at position %d of node %q", e.pod.Key(), e.pos, r.name)))
	}
	moved := r.pods[last]
	r.pods[e.pos], moved.pos = moved, e.pos
	r.pods[last] = nil
	r.pods = r.pods[:last]
	for _, p := range e.pod.Spec.Ports {
		i := slices.Index(r.ports, p)
		r.ports = slices.Delete(r.ports, i, i+1)
	}
	delete(s.pods, e.pod.UID)
	s.gangLeave(e)
	if e.pod.EvictableForGangs {
		s.evictable--
	}
	s.volumesLeave(e, e.row)
	s.count(e, e.row, -1)
}

// count adds (sign 1) or subtracts (sign -1) the amounts of the pod's record.
func (s *Store) count(e *entry, n NodeIdx, sign int64) {
	spec := e.pod.Spec
	s.requested[resource.CPU].add(n, sign*spec.Held.MilliCPU)
	s.requested[resource.Memory].add(n, sign*spec.Held.Memory)
	s.requested[resource.Ephemeral].add(n, sign*spec.Held.Ephemeral)
	s.requested[resource.Pods].add(n, sign)
	for _, sc := range spec.Held.Scalars {
		id := s.columnOf(sc.Name)
		s.rows[n].has(id)
		s.requested[id].add(n, sign*sc.Value)
	}
	if e.assumed {
		s.countAssumed(n, spec, sign)
	}
	s.nonZero[0].add(n, sign*spec.HeldNonZero[0])
	s.nonZero[1].add(n, sign*spec.HeldNonZero[1])
	s.counters.count(s, e.pod, n, int32(sign))
	s.touch(n)
}
