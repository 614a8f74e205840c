// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise says whose selector to satisfy.
func (*NodeAffinity) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "label " + r.Node + " to match the pod's node selector and affinity"
}

// NodeAffinity keeps pods on nodes that match their nodeSelector and required node affinity, and prefers nodes that
// match their preferred terms (upstream: plugins/nodeaffinity).
//
// The plain forms match with component-helpers, as upstream does. The column forms have terms of their own, read from
// label bitmaps for long ranges and from node records for short ones.
type NodeAffinity struct {
	// What the configuration asks of every pod besides its own; nil where it asks nothing.
	addedRequired  *nodeaffinity.NodeSelector
	addedPreferred *nodeaffinity.PreferredSchedulingTerms
	added          v1.NodeAffinity
}

// NodeAffinityName is its name in configurations.
const NodeAffinityName = "NodeAffinity"

// NodeAffinityArgs are the arguments of NodeAffinity (upstream: NodeAffinityArgs).
type NodeAffinityArgs struct {
	// AddedAffinity holds for every pod of the profile, besides the pod's own. Nil adds nothing.
	AddedAffinity *v1.NodeAffinity
}

// NewNodeAffinity returns the plugin, or what is wrong with its arguments.
func NewNodeAffinity(args NodeAffinityArgs) (*NodeAffinity, error) {
	pl := &NodeAffinity{}
	if args.AddedAffinity == nil {
		return pl, nil
	}
	var err error
	if ns := args.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution; ns != nil {
		if pl.addedRequired, err = nodeaffinity.NewNodeSelector(ns); err != nil {
			return nil, fmt.Errorf("%s: parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: %w",
				NodeAffinityName, err)
		}
	}
	if terms := args.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) != 0 {
		if pl.addedPreferred, err = nodeaffinity.NewPreferredSchedulingTerms(terms); err != nil {
			return nil, fmt.Errorf("%s: parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: %w",
				NodeAffinityName, err)
		}
	}
	pl.added = *args.AddedAffinity
	return pl, nil
}

// Name is NodeAffinityName.
func (*NodeAffinity) Name() string { return NodeAffinityName }

// Reads declares name and labels of the node.
func (*NodeAffinity) Reads() plugin.Reads { return plugin.ReadsNode }

// PrepareFilter has nothing to say about pods without selector or affinity, unless the configuration adds one.
func (pl *NodeAffinity) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if p.Spec.Required == nil && p.Spec.NodeSelector == nil && pl.addedRequired == nil {
		return plugin.FilterPlan{}
	}
	names, conflict := pinnedNames(p.Spec.Required)
	if conflict {
		return plugin.FilterPlan{Reject: "pod affinity terms conflict"}
	}
	f := &affinityFilter{added: pl.addedRequired, own: nodematch.Required(p),
		rules: nodematch.CompileAnd(p.Spec.NodeSelector, p.Spec.Required)}
	if pl.addedRequired != nil {
		f.addedRules = nodematch.CompileAnd(nil, pl.added.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return plugin.FilterPlan{Nodes: names, Filter: f}
}

// pinnedNames are the only nodes that a required affinity can match by its match fields, nil when some term names
// none. conflict means that each term names several nodes at once. It counts names of terms that do not parse, too.
func pinnedNames(required *v1.NodeSelector) (names map[string]struct{}, conflict bool) {
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return nil, false
	}
	names = map[string]struct{}{}
	for i := range required.NodeSelectorTerms {
		ofTerm := pinnedByTerm(&required.NodeSelectorTerms[i])
		if ofTerm == nil {
			return nil, false
		}
		for name := range ofTerm { // order: builds a set
			names[name] = struct{}{}
		}
	}
	return names, len(names) == 0
}

func pinnedByTerm(t *v1.NodeSelectorTerm) map[string]struct{} {
	var names map[string]struct{}
	for _, f := range t.MatchFields {
		if f.Key != metav1.ObjectNameField || f.Operator != v1.NodeSelectorOpIn {
			continue
		}
		these := map[string]struct{}{}
		for _, v := range f.Values {
			if _, both := names[v]; names == nil || both {
				these[v] = struct{}{}
			}
		}
		names = these
	}
	return names
}

type affinityFilter struct {
	added *nodeaffinity.NodeSelector // nil when the configuration adds nothing
	own   nodeaffinity.RequiredNodeAffinity

	rules, addedRules nodematch.Selector
	ownSet, addedSet  nodematch.Rows
}

const (
	podAffinity   plugin.Code = 1 << iota // the pod's own selector or affinity
	addedAffinity                         // the configuration's
)

func (f *affinityFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	node := nodematch.AsObject(v.Node)
	if f.added != nil && !f.added.Match(node) {
		return addedAffinity | plugin.Unresolvable
	}
	if ok, _ := f.own.Match(node); !ok { // terms that do not parse match nothing
		return podAffinity | plugin.Unresolvable
	}
	return plugin.Fit
}

func (f *affinityFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	if hi-lo < nodematch.LongRange {
		for n := lo; n < hi; n++ {
			if node := s.Node(n); node != nil && out[n] == plugin.Fits {
				if code := f.direct(node); code != plugin.Fit {
					out[n] = tag.With(code)
				}
			}
		}
		return
	}
	if f.added != nil {
		f.addedSet.Run(s, lo, hi, &f.addedRules)
		f.addedSet.Reject(lo, hi, tag.With(addedAffinity|plugin.Unresolvable), out)
	}
	f.ownSet.Run(s, lo, hi, &f.rules)
	f.ownSet.Reject(lo, hi, tag.With(podAffinity|plugin.Unresolvable), out)
}

func (f *affinityFilter) direct(node *cluster.Node) plugin.Code {
	if f.added != nil && !f.addedRules.Matches(node) {
		return addedAffinity | plugin.Unresolvable
	}
	if !f.rules.Matches(node) {
		return podAffinity | plugin.Unresolvable
	}
	return plugin.Fit
}

func (*affinityFilter) Reasons(c plugin.Code) []string {
	if c&addedAffinity != 0 {
		return []string{"node(s) didn't match scheduler-enforced node affinity"}
	}
	return []string{"node(s) didn't match Pod's node affinity/selector"}
}

// PrepareScore skips pods without preferred terms, unless the configuration adds some. A term that does not parse
// fails the attempt.
func (pl *NodeAffinity) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	var own *nodeaffinity.PreferredSchedulingTerms
	if p.Spec.Preferred != nil {
		var err error
		if own, err = nodeaffinity.NewPreferredSchedulingTerms(p.Spec.Preferred); err != nil {
			return plugin.BrokenScore{Err: err}
		}
	}
	if own == nil && pl.addedPreferred == nil {
		return nil
	}
	f := &affinityScore{added: pl.addedPreferred, own: own}
	if pl.addedPreferred != nil {
		f.compile(pl.added.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	f.compile(p.Spec.Preferred)
	return f
}

// Normal makes the largest sum of weights the best.
func (*NodeAffinity) Normal() plugin.Normal { return plugin.ByMax }

type affinityScore struct {
	added, own *nodeaffinity.PreferredSchedulingTerms // nil where there are none

	terms []preferredTerm
	set   nodematch.Rows
}

type preferredTerm struct {
	weight int64
	rules  nodematch.Selector // of one term
}

func (f *affinityScore) compile(terms []v1.PreferredSchedulingTerm) {
	for i := range terms {
		t, ok := nodematch.CompileTerm(&terms[i].Preference)
		if !ok || terms[i].Weight == 0 {
			continue
		}
		weight := int64(terms[i].Weight)
		f.terms = append(f.terms, preferredTerm{weight, nodematch.Selector{AnyOf: []nodematch.Term{t}, HasTerms: true}})
	}
}

func (f *affinityScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	node := nodematch.AsObject(v.Node)
	var sum int64
	if f.added != nil {
		sum += f.added.Score(node)
	}
	if f.own != nil {
		sum += f.own.Score(node)
	}
	return sum
}

func (f *affinityScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	clear(out[lo:hi])
	if hi-lo < nodematch.LongRange {
		for n := lo; n < hi; n++ {
			node := s.Node(n)
			for i := range f.terms {
				if t := &f.terms[i]; node != nil && t.rules.Matches(node) {
					out[n] += t.weight
				}
			}
		}
		return
	}
	for i := range f.terms {
		t := &f.terms[i]
		f.set.Run(s, lo, hi, &t.rules)
		f.set.Add(lo, hi, t.weight, out)
	}
}

// Wakes on nodes that begin to match.
func (pl *NodeAffinity) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.NodeObject,
		Action: plugin.Add | plugin.UpdateNodeLabel}, Hint: pl.nodeHint, Alike: true}}
}

func (pl *NodeAffinity) nodeHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	node := nodematch.AsObject(ch.NewNode)
	if pl.addedRequired != nil && !pl.addedRequired.Match(node) {
		return plugin.SkipHint
	}
	own := nodematch.Required(p)
	now, err := own.Match(node)
	if err != nil {
		return plugin.QueueHint // upstream wakes a pod when a hint fails
	}
	if !now {
		return plugin.SkipHint
	}
	if ch.OldNode == nil {
		return plugin.QueueHint
	}
	if before, err := own.Match(nodematch.AsObject(ch.OldNode)); before && err == nil {
		return plugin.SkipHint
	}
	return plugin.QueueHint
}
