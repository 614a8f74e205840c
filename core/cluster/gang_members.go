// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
)

// A pod that holds room counts as a member of the gang that it was in when it got it, whatever its annotations say
// later (answer A19 of the gang rules: an edit counts only while no member has a place).

func (s *Store) gangEnter(e *entry) {
	if e.gang == nil {
		e.gang = e.pod.Gang
	}
	if e.gang == nil || e.gang.Bad != "" {
		return
	}
	s.gangs[e.gang.Key] = append(s.gangs[e.gang.Key], e)
}

// noGang is that of a pod which was in none when it got its room.
var noGang = &GangMark{Bad: "it was in no gang when it got its room"}

// gangKept is the gang in which a pod counts that is entered anew, for its amounts have changed; nil for the one that
// it says now.
func (e *entry) gangKept(p *Pod) *GangMark {
	switch {
	case e.gang != nil && e.gang != noGang:
		return e.gang
	case p.Gang == nil || p.Gang.Key.Source == GangOfGroup:
		return nil
	}
	return noGang
}

// gangLearn lets a pod count in its native group although it was in none when it got its room: that part of its spec
// never changes, so the group could not be read then. It reports whether the pod is new in it.
func (s *Store) gangLearn(e *entry) bool {
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

// GangMember is a pod of a gang that holds room.
type GangMember struct {
	Pod     *Pod
	Row     NodeIdx
	Assumed bool // decided, and not seen bound yet
}

// GangHolds is the number of pods of a gang that hold room, terminating ones included.
func (v Snapshot) GangHolds(key GangKey) int { return len(v.s.gangs[key]) }

// GangCounts is how many pods of a gang hold room and are not going away, and how many of these are seen bound.
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

// GangMembers are the pods of a gang that hold room, by name.
func (v Snapshot) GangMembers(key GangKey) []GangMember {
	held := v.s.gangs[key]
	if len(held) == 0 {
		return nil
	}
	members := make([]GangMember, 0, len(held))
	for _, e := range held {
		members = append(members, GangMember{e.pod, e.row, e.assumed})
	}
	slices.SortFunc(members, func(a, b GangMember) int {
		return cmp.Or(cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return members
}

// HeldGang is the gang in which a pod that holds room counts; false when it holds none, or is in no gang.
func (v Snapshot) HeldGang(uid UID) (GangKey, bool) {
	e := v.s.pods[uid]
	if e == nil || e.gang == nil || e.gang.Bad != "" {
		return GangKey{}, false
	}
	return e.gang.Key, true
}

// EachInGang calls f for each pod of a gang that holds room, in the order in which they came.
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

// AnyGang reports whether any pod that holds room is one of a gang.
func (v Snapshot) AnyGang() bool { return len(v.s.gangs) > 0 }

// AnyGangPod reports whether is holds of any pod that holds room as one of a gang; holds is how many of the gang do.
func (v Snapshot) AnyGangPod(is func(key GangKey, holds int, p *Pod) bool) bool {
	for key, held := range v.s.gangs { // order: any match will do
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
