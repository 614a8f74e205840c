// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
)

// A pod that holds capacity counts as a member of the gang in which it was when it was placed, whatever its
// annotations say later (answer A19 of the gang rules: an edit counts only while no member has a node).

func (s *Store) gangEnter(e *entry) {
	if e.gang == nil {
		e.gang = e.pod.Gang
	}
	if e.gang == nil || e.gang.Bad != "" {
		return
	}
	s.gangs[e.gang.Key] = append(s.gangs[e.gang.Key], e)
}

// noGang is the mark of a pod that was in no gang when it was placed.
var noGang = &GangMark{Bad: "it was in no gang when it got its room"}

// gangKept returns the gang in which a pod counts that is inserted again because its amounts changed; nil for the
// gang that it declares now.
func (e *entry) gangKept(p *Pod) *GangMark {
	switch {
	case e.gang != nil && e.gang != noGang:
		return e.gang
	case p.Gang == nil || p.Gang.Key.Source == GangOfGroup:
		return nil
	}
	return noGang
}

// addLateMember counts a pod in its native group although it was in none when it was placed: that part of a spec never
// changes, so the group could not be read at that time. It reports whether the pod is new in the group.
func (s *Store) addLateMember(e *entry) bool {
	if e.gang != nil && e.gang != noGang || e.pod.Gang == nil || e.pod.Gang.Key.Source != GangOfGroup {
		return false
	}
	e.gang = nil
	s.gangEnter(e)
	return true
}

func (s *Store) gangLeave(e *entry) {
	if e.gang == nil || e.gang.Bad != "" {
		return
	}
	held := s.gangs[e.gang.Key]
	i := slices.Index(held, e)
	held = slices.Delete(held, i, i+1)
	if len(held) == 0 {
		delete(s.gangs, e.gang.Key)
		return
	}
	s.gangs[e.gang.Key] = held
}

// GangMember is a pod of a gang that holds capacity.
type GangMember struct {
	Pod     *Pod
	Row     NodeIdx
	Assumed bool // decided, and not yet observed as bound
}

// GangHolds returns the number of pods of a gang that hold capacity, terminating ones included.
func (v Snapshot) GangHolds(key GangKey) int { return len(v.s.gangs[key]) }

// GangCounts returns the number of pods of a gang that hold capacity and do not terminate, and how many of them are
// observed as bound.
func (v Snapshot) GangCounts(key GangKey) (live, bound int) {
	for _, e := range v.s.gangs[key] {
		if e.pod.Terminating {
			continue
		}
		live++
		if !e.assumed {
			bound++
		}
	}
	return live, bound
}

// GangMembers returns the pods of a gang that hold capacity, sorted by name.
func (v Snapshot) GangMembers(key GangKey) []GangMember {
	held := v.s.gangs[key]
	if len(held) == 0 {
		return nil
	}
	members := make([]GangMember, 0, len(held))
	for _, e := range held {
		members = append(members, GangMember{e.pod, e.row, e.assumed})
	}
	slices.SortFunc(members, func(a, b GangMember) int { return CompareNames(a.Pod, b.Pod) })
	return members
}

// CompareNames orders the pods of a gang by name, and by UID for equal names.
func CompareNames(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// CompareKeys orders pods by namespace and name, and by UID for equal ones.
func CompareKeys(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
}

// HeldGang returns the gang in which a pod that holds capacity counts; false if it holds none, or is in no gang.
func (v Snapshot) HeldGang(uid UID) (GangKey, bool) {
	e := v.s.pods[uid]
	if e == nil || e.gang == nil || e.gang.Bad != "" {
		return GangKey{}, false
	}
	return e.gang.Key, true
}

// EachInGang calls f for each pod of a gang that holds capacity, in the order in which they were placed.
func (v Snapshot) EachInGang(key GangKey, f func(p *Pod, n NodeIdx)) {
	for _, e := range v.s.gangs[key] {
		f(e.pod, e.row)
	}
}

// EachHeld calls f for each pod of a row, in the order of the ledger, with the gang in which it counts; nil for none.
func (v Snapshot) EachHeld(n NodeIdx, f func(p *Pod, gang *GangKey)) {
	for _, e := range v.s.rows[n].pods {
		if e.gang == nil || e.gang.Bad != "" {
			f(e.pod, nil)
		} else {
			f(e.pod, &e.gang.Key)
		}
	}
}

// EachHeldGang calls f for each gang of which pods hold capacity, in no order.
func (v Snapshot) EachHeldGang(f func(key GangKey)) {
	for key := range v.s.gangs { // order: documented as none
		f(key)
	}
}

// AnyGang reports whether any pod that holds capacity is in a gang.
func (v Snapshot) AnyGang() bool { return len(v.s.gangs) > 0 }

// AnyEvictableForGangs reports whether any pod that holds capacity may be evicted for gangs.
func (v Snapshot) AnyEvictableForGangs() bool { return v.s.evictable > 0 }

// AnyGangPod reports whether is returns true for a member of a gang that holds capacity; holds is the number of such
// members of its gang.
func (v Snapshot) AnyGangPod(is func(key GangKey, holds int, p *Pod) bool) bool {
	for key, held := range v.s.gangs { // order: any match suffices
		for _, e := range held {
			if is(key, len(held), e.pod) {
				return true
			}
		}
	}
	return false
}

// GangObject returns the object that declares a gang; nil if there is none, or none is needed.
func (v Snapshot) GangObject(key GangKey) *Gang {
	if !key.Source.HasObject() {
		return nil
	}
	at := key.Object()
	obj, ok := Find[*Gang](v, at.Namespace, at.Name)
	if !ok {
		return nil
	}
	return obj
}
