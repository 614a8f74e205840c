// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// Which pods go together, what protects them, and by which priority a unit may have others evicted. The search for
// victims (units.Question) knows neither gangs' objects nor how gangs are placed.

// GoesWhole reports whether no pod of a gang is evicted without all others (rule R5). The pods of a native pod group
// go one by one unless the group says otherwise.
func GoesWhole(s cluster.Snapshot, key cluster.GangKey) bool {
	return wholeBy(key, s.GangObject(key))
}

func wholeBy(key cluster.GangKey, obj *cluster.Gang) bool {
	return key.Source != cluster.GangOfGroup || obj != nil && obj.EvictWhole
}

// RuleBy says how the pods of a gang go and what protects them, by the gang's object, which may be nil.
func RuleBy(key cluster.GangKey, obj *cluster.Gang) (r units.Rule) {
	if obj != nil && obj.Priority != nil {
		r.Declared, r.Priority, r.OwnToo = true, *obj.Priority, OneByOne(obj)
	}
	r.Whole = wholeBy(key, obj)
	return r
}

// RuleOf is RuleBy for the object that is known.
func (m *Manager) RuleOf(key cluster.GangKey) units.Rule {
	return RuleBy(key, m.store.Snapshot().GangObject(key))
}

// priority is the priority below which a gang may have others evicted.
func (m *Manager) priority(key cluster.GangKey, waiting []*cluster.Pod) int32 {
	return gang.Priority(m.store.Snapshot(), key, waiting)
}

// NeverForGang returns why a pod is never evicted for a gang, empty if it may be: those that belong to their node and
// those of other schedulers are not (rule R16). For a pod by itself they are, as upstream has it.
func (m *Manager) NeverForGang(p *cluster.Pod) string {
	switch {
	case p.OfNode:
		return "it belongs to its node"
	case m.host.Profile(p.Spec.SchedulerName) == nil:
		return "it is another scheduler's"
	}
	return ""
}

// SurplusEvicts reports whether members of a gang beyond its minimum may have others evicted, as upstream has it for
// native pod groups: all of their pods are wanted, and the minimum is what the group cannot run without. Where other
// declarations have a minimum and a desired size, what is beyond the minimum gets what is left (answer A2).
func SurplusEvicts(key cluster.GangKey) bool { return key.Source == cluster.GangOfGroup }

// OneByOne reports whether the pods of a group are scheduled one by one: those of a basic group, but for one with a
// topology constraint, whose pods have to choose one domain together.
func OneByOne(obj *cluster.Gang) bool {
	return obj.Basic && len(obj.Topology) == 0 && obj.Bad == "" && obj.DeletionTimestamp == nil
}

// Preemptor is a set of members for which a gang may have others evicted.
type Preemptor struct {
	Need gang.Need
	// Priority is the priority below which units may go.
	Priority int32
}

// mostPreemptors bounds how many sets of members of one gang a search for victims is made for, about.
const mostPreemptors = 4

// Preemptors returns the sets of a gang's members for which it may have others evicted, the strongest first: members
// that never preempt are not among them, and where the gang declares no priority a set evicts by the lowest of its
// members' priorities (answers A3, A13). So a member that the gang does not need does not keep it from evicting. There
// is no set if too few members may preempt.
func (m *Manager) Preemptors(key cluster.GangKey, need gang.Need) (sets []Preemptor) {
	s := m.store.Snapshot()
	obj := s.GangObject(key)
	if obj != nil && obj.NeverPreempts {
		return nil
	}
	declared := obj != nil && obj.Priority != nil
	may := slices.DeleteFunc(slices.Clone(need.Members), func(p *cluster.Pod) bool { return p.Spec.NeverPreempts })
	bound := int32(math.MaxInt32) // the lowest priority of its pods that have a place
	for _, member := range s.GangMembers(key) {
		bound = min(bound, member.Pod.Spec.Priority)
	}
	slices.SortStableFunc(may, func(a, b *cluster.Pod) int { return cmp.Compare(b.Spec.Priority, a.Spec.Priority) })
	for n := need.Quorum; n <= len(may); n++ {
		lowest := may[n-1].Spec.Priority
		last := n == len(may)
		if !last && (declared || may[n].Spec.Priority == lowest || bound <= lowest || len(sets) >= mostPreemptors-1) {
			continue // the set with the next member evicts as much
		}
		by := Preemptor{need, min(lowest, bound)}
		if declared {
			by.Priority = *obj.Priority
		}
		if by.Need.Members = need.Members; n < len(need.Members) {
			by.Need.Members = among(need.Members, may[:n])
		}
		for _, by.Need.Quorum = range m.quorums(key, by.Need) {
			sets = append(sets, by)
		}
	}
	return sets
}

// lowestToAgree is the preemptor priority of a gang that never preempts: only pods that have agreed may be evicted for
// it.
const lowestToAgree = math.MinInt32 + 1

// preemptors returns the sets of Preemptors, or if no member may preempt the one for which only pods are evicted that
// have agreed to it.
func (m *Manager) preemptors(key cluster.GangKey, need gang.Need) []Preemptor {
	sets := m.Preemptors(key, need)
	if len(sets) == 0 && len(need.Members) >= need.Quorum && m.agreed(key, need.Members) != nil {
		return []Preemptor{{need, lowestToAgree}}
	}
	return sets
}

// agreed returns which pods may be evicted for a gang whatever their priority; nil if none may.
func (m *Manager) agreed(key cluster.GangKey, members []*cluster.Pod) func(*cluster.Pod) bool {
	return gang.Agreed(m.store.Snapshot(), key, members)
}

// among returns those of members that are chosen, in the order of members.
func among(members, chosen []*cluster.Pod) (list []*cluster.Pod) {
	for _, p := range members {
		if slices.Contains(chosen, p) {
			list = append(list, p)
		}
	}
	return list
}

// quorums returns the numbers of members that are asked for in turn: of a native group all of them if nothing else
// waits for capacity, then as many as it needs.
func (m *Manager) quorums(key cluster.GangKey, need gang.Need) []int {
	if !SurplusEvicts(key) || len(need.Members) <= need.Quorum {
		return []int{need.Quorum}
	}
	if u := m.queue.Gang(key); u != nil && (m.queue.Needed(u) || m.host.GangsBlocked()) {
		return []int{need.Quorum}
	}
	return []int{len(need.Members), need.Quorum}
}

// protectedNow reports whether one of some victims may not be evicted any more by a priority: its group declares more
// than before, or the preemptor's group declares less. A gang that goes whole and of which some are gone goes to its
// end all the same (rule R5). Those that have agreed may be evicted; agreed may be nil.
func (m *Manager) protectedNow(victims []*cluster.Pod, priority int32, agreed func(*cluster.Pod) bool) bool {
	s := m.store.Snapshot()
	return slices.ContainsFunc(victims, func(p *cluster.Pod) bool {
		key, in := s.HeldGang(p.UID)
		switch {
		case !in:
			return p.Spec.Priority >= priority && (agreed == nil || !agreed(p))
		case GoesWhole(s, key):
			return false
		}
		return m.RuleOf(key).Protects(p.Spec.Priority) >= priority
	})
}
