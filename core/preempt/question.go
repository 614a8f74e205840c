// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// Question is the input of a search for victims.
type Question struct {
	Pod *cluster.Pod
	// Nominated is the node that the pod is nominated to, empty for none.
	Nominated string
	// Awaited reports that pods which were evicted for this one still exist, whether or not their status shows it.
	Awaited bool
	// WhatIf is of the search that found no node for the pod.
	WhatIf *place.WhatIf
	// Limit ends the search once there are enough candidates; nil searches all nodes. Draw(n) chooses the first of n
	// nodes of a limited search.
	Limit *Limit
	Draw  func(n int) int
	// All lists every candidate in the answer, each found by trying its node. Extenders that take part in preemption
	// need it.
	All bool
	// Best, if not 0, lists that many candidates of the smallest losses, the smallest first, for reports on
	// alternatives. Limit and All must be unset.
	Best int
	// Strict forbids evictions against a disruption budget.
	Strict bool
}

// Verdict is the result of a search.
type Verdict uint8

// The verdicts. The effect on the pod's nomination follows upstream (preemption.go, Preempt).
const (
	// Evict: there is a node on which evictions make the pod fit. The node is nominated.
	Evict Verdict = iota + 1
	// NotEligible: the pod may not evict others, or not now. Its nomination stays.
	NotEligible
	// NotHelpful: no evictions make the pod fit anywhere. Its nomination is cleared.
	NotHelpful
	// Failed: a filter met an error and no candidate was found. The nomination stays.
	Failed
)

// Answer is the output of a search for victims.
type Answer struct {
	Verdict Verdict
	// Best is the candidate of the smallest loss, for Evict.
	Best Candidate
	// Candidates are all candidates for Question.All, those found for a Limit, and the smallest losses for
	// Question.Best. For All and Limit, those that violate no budget come first.
	Candidates []Candidate
	// Message is upstream's text, for every verdict but Evict, for which it is Found.
	Message string
	// Nodes is the number of nodes on which evictions might have helped, Tried the number of those that were tried.
	Nodes, Tried int
}

// FoundForGroup returns upstream's text for a gang for which victims are evicted (upstream: podgrouppreemption.go,
// Preempt).
func FoundForGroup(victims int) string {
	return ForGroup(MessagePrefix + fmt.Sprintf("found a placement for podgroup, preempting %d victims", victims))
}

// ForGroup returns a message about preemption as upstream words it for a pod group (upstream:
// default_preemption.go, PodGroupPostFilter). The message begins with MessagePrefix or is empty.
func ForGroup(message string) string {
	if message == "" {
		return ""
	}
	return "pod group " + message
}

// Found returns upstream's text for a pod for which victims on a node are evicted (upstream: preemption.go, Preempt).
func Found(node string, victims int) string {
	return fmt.Sprintf("preemption: found a potential placement for pod on node %s, preempting %d victims", node,
		victims)
}

// Candidate is a node on which the pod fits once the victims are gone.
type Candidate struct {
	Node cluster.NodeIdx
	// Victims has at least one pod, the most important first.
	Victims []*cluster.Pod
	Loss    Loss
	// protected: index in Victims -> a disruption budget protects the pod; nil if none does or it is not known.
	protected []bool
}

// Protected reports whether a disruption budget protects the victim with an index. It is not known, and false, for a
// candidate that an extender has chosen.
func (c *Candidate) Protected(victim int) bool { return c.protected != nil && c.protected[victim] }

func candidate(n cluster.NodeIdx, gone []victim.Entry, loss Loss) Candidate {
	c := Candidate{Node: n, Victims: make([]*cluster.Pod, len(gone)), Loss: loss}
	for i := range gone {
		c.Victims[i] = gone[i].Pod
	}
	if loss.Violations > 0 {
		c.protected = make([]bool, len(gone))
		for i := range gone {
			c.protected[i] = gone[i].Protected
		}
	}
	return c
}

// Choose returns the candidate of the smallest loss, the first of several. There must be at least one.
func Choose(candidates []Candidate) Candidate {
	best := candidates[0]
	for _, c := range candidates[1:] {
		if d := c.Loss.Compare(best.Loss); d < 0 {
			best = c
		}
	}
	return best
}

// NewCandidate returns a candidate that an extender or a hosted plugin has chosen.
func NewCandidate(n cluster.NodeIdx, victims []*cluster.Pod, violations int) Candidate {
	return Candidate{Node: n, Victims: victims, Loss: lossOf(victims, violations)}
}

// AllProtected is the message if every set of victims violates a budget and budgets are strict.
const AllProtected = MessagePrefix + "disruption budgets protect pods that would have to go, and they are strict."

// withoutProtected removes the candidates from an answer whose victims a budget protects, for strict budgets (answer
// A12). Violations come first in the comparison of losses, and pods that a budget protects are spared first. So if a
// search finds only sets that violate a budget, there is no other set.
//
// Rejected: to leave out from the start all pods that a budget protects if all pods of lower priority are evicted. Of
// two pods of which a budget allows one, neither could be evicted, or only the less important one.
func withoutProtected(a Answer) Answer {
	sound := a.Candidates[:0]
	for _, c := range a.Candidates {
		if c.Loss.Violations == 0 {
			sound = append(sound, c)
		}
	}
	if a.Candidates = sound; a.Verdict == Evict && a.Best.Loss.Violations > 0 {
		return Answer{Verdict: NotHelpful, Message: AllProtected, Nodes: a.Nodes, Tried: a.Tried}
	}
	return a
}
