// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// difference is how the answers of a round differ.
type difference int

const (
	placement difference = 1 + iota // one side places the group
	whether                         // one side evicts
	extent                          // they evict for different numbers of members
	victims                         // they evict different pods for equally many members
	words                           // their messages differ
)

func (d difference) String() string {
	return [...]string{"", "placement", "whether pods are evicted", "the members that pods are evicted for", "victims",
		"message"}[d]
}

// exception is a difference by design; docs/compatibility-decisions.md has the same ones.
type exception struct {
	name, why string
	explains  func(r *round, kind difference) bool
}

var exceptions = []exception{
	{"one by one",
		"the pods of a basic group are placed and evict one by one; upstream places and evicts for all together",
		func(r *round, kind difference) bool { return r.w.apart() && len(r.us.victims) > 0 }},
	{"unlike pods", "upstream tries no group whose pods differ in priority or preemptionPolicy",
		func(r *round, _ difference) bool {
			return strings.HasPrefix(r.them.message, "all pods in a single pod group should have the same p")
		}},
	{"several domains", "upstream tries no group whose bound pods are in several domains of its topology constraint",
		func(r *round, _ difference) bool {
			return strings.HasPrefix(r.them.message, "cannot determine domain for already scheduled pods")
		}},
	{"protected pods", "kumiki evicts no pods of DaemonSets and of other schedulers for a gang",
		func(r *round, _ difference) bool { return r.evicts(protectedPod) }},
	{"basic group as victims", "the pods of a basic group evict by their own priority, so it protects them, too",
		func(r *round, _ difference) bool { return r.evicts(r.w.protectedByOwnPriority) }},
	{"other orders", "kumiki tries the members in several orders, and finds places that upstream's one order misses",
		func(r *round, kind difference) bool {
			better := kind == placement && r.us.placed || kind == whether && len(r.us.victims) > 0 ||
				kind == extent && len(r.us.nominated) > len(r.them.nominated)
			return better && !r.w.alike
		}},
	{"all or the minimum",
		"kumiki evicts for all members, or for as many as the group needs; upstream for as many as it can",
		func(r *round, kind difference) bool {
			they, we := len(r.them.nominated), len(r.us.nominated)
			return kind == extent && r.w.needed() <= we && we < they && they < len(r.w.members)
		}},
	{"smaller loss", "kumiki takes the set of victims with the smallest loss; upstream spares victims with one " +
		"placement, the most important first",
		func(r *round, kind difference) bool {
			return kind == victims && compareLosses(r.ourLoss, r.theirLoss) < 0
		}},
	{"equal loss", "of several sets with the same loss, either may be taken",
		func(r *round, kind difference) bool { return kind == victims && r.ourLoss == r.theirLoss }},
}

// evicts reports whether upstream evicts a pod of some kind.
func (r *round) evicts(kind func(*v1.Pod) bool) bool {
	return slices.ContainsFunc(r.w.podsNamed(r.them.victims), kind)
}

func protectedPod(p *v1.Pod) bool {
	return p.Spec.SchedulerName != v1.DefaultSchedulerName || len(p.OwnerReferences) > 0
}

// protectedByOwnPriority reports whether a pod of a basic group has a priority that the group that preempts does not
// exceed.
func (w *scene) protectedByOwnPriority(p *v1.Pod) bool {
	g := w.groupOf(p)
	return g != nil && g.Spec.SchedulingPolicy.Basic != nil && *p.Spec.Priority >= ownPriority
}

// needed returns how many members the group still needs.
func (w *scene) needed() int {
	gang := w.own.Spec.SchedulingPolicy.Gang
	if gang == nil {
		return 1
	}
	return max(1, int(gang.MinCount)-w.held())
}
