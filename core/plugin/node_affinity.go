// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

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
			return nil, fmt.Errorf("%s: parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: %w", NodeAffinityName, err)
		}
	}
	if terms := args.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) != 0 {
		if pl.addedPreferred, err = nodeaffinity.NewPreferredSchedulingTerms(terms); err != nil {
			return nil, fmt.Errorf("%s: parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: %w", NodeAffinityName, err)
		}
	}
	pl.added = *args.AddedAffinity
	return pl, nil
}

// Name is NodeAffinityName.
func (*NodeAffinity) Name() string { return NodeAffinityName }

// requiredOf is the pod's own requirement as component-helpers has it.
func requiredOf(p *cluster.Pod) nodeaffinity.RequiredNodeAffinity {
	return nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: v1.PodSpec{
		NodeSelector: p.Spec.NodeSelector,
		Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.Required,
		}},
	}})
}

// asObject is what component-helpers reads of a node.
func asObject(n *cluster.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
}

// PrepareFilter has nothing to say about pods without selector or affinity, unless the configuration adds one.
func (pl *NodeAffinity) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) FilterPlan {
	if p.Spec.Required == nil && p.Spec.NodeSelector == nil && pl.addedRequired == nil {
		return FilterPlan{}
	}
	names, conflict := pinnedNames(p.Spec.Required)
	if conflict {
		return FilterPlan{Reject: "pod affinity terms conflict"}
	}
	f := &affinityFilter{added: pl.addedRequired, own: requiredOf(p), rules: compileAnd(p.Spec.NodeSelector, p.Spec.Required)}
	if pl.addedRequired != nil {
		f.addedRules = compileAnd(nil, pl.added.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return FilterPlan{Nodes: names, Filter: f}
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

	rules, addedRules nodeAnd
	ownSet, addedSet  scanSet
}

const (
	podAffinity   Code = 1 << iota // the pod's own selector or affinity
	addedAffinity                  // the configuration's
)

func (f *affinityFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	node := asObject(v.Node)
	if f.added != nil && !f.added.Match(node) {
		return addedAffinity | Unresolvable
	}
	if ok, _ := f.own.Match(node); !ok { // terms that do not parse match nothing
		return podAffinity | Unresolvable
	}
	return Fit
}

func (f *affinityFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	if hi-lo < longRange {
		for n := lo; n < hi; n++ {
			if node := s.Node(n); node != nil && out[n] == Fits {
				if code := f.direct(node); code != Fit {
					out[n] = tag.With(code)
				}
			}
		}
		return
	}
	if f.added != nil {
		f.addedSet.scan(s, lo, hi, &f.addedRules)
		f.addedSet.reject(lo, hi, tag.With(addedAffinity|Unresolvable), out)
	}
	f.ownSet.scan(s, lo, hi, &f.rules)
	f.ownSet.reject(lo, hi, tag.With(podAffinity|Unresolvable), out)
}

func (f *affinityFilter) direct(node *cluster.Node) Code {
	if f.added != nil && !f.addedRules.matches(node) {
		return addedAffinity | Unresolvable
	}
	if !f.rules.matches(node) {
		return podAffinity | Unresolvable
	}
	return Fit
}

func (*affinityFilter) Reasons(c Code) []string {
	if c&addedAffinity != 0 {
		return []string{"node(s) didn't match scheduler-enforced node affinity"}
	}
	return []string{"node(s) didn't match Pod's node affinity/selector"}
}

// PrepareScore skips pods without preferred terms, unless the configuration adds some. A term that does not parse
// fails the attempt.
func (pl *NodeAffinity) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) PodScore {
	var own *nodeaffinity.PreferredSchedulingTerms
	if p.Spec.Preferred != nil {
		var err error
		if own, err = nodeaffinity.NewPreferredSchedulingTerms(p.Spec.Preferred); err != nil {
			return BrokenScore{err}
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
func (*NodeAffinity) Normal() Normal { return ByMax }

type affinityScore struct {
	added, own *nodeaffinity.PreferredSchedulingTerms // nil where there are none

	terms []preferredTerm
	set   scanSet
}

type preferredTerm struct {
	weight int64
	rules  nodeAnd // of one term
}

func (f *affinityScore) compile(terms []v1.PreferredSchedulingTerm) {
	for i := range terms {
		t, ok := compileTerm(&terms[i].Preference)
		if !ok || terms[i].Weight == 0 {
			continue
		}
		weight := int64(terms[i].Weight)
		f.terms = append(f.terms, preferredTerm{weight, nodeAnd{anyOf: []selectorTerm{t}, hasTerms: true}})
	}
}

func (f *affinityScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	node := asObject(v.Node)
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
	if hi-lo < longRange {
		for n := lo; n < hi; n++ {
			node := s.Node(n)
			for i := range f.terms {
				if t := &f.terms[i]; node != nil && t.rules.matches(node) {
					out[n] += t.weight
				}
			}
		}
		return
	}
	for i := range f.terms {
		t := &f.terms[i]
		f.set.scan(s, lo, hi, &t.rules)
		f.set.add(lo, hi, t.weight, out)
	}
}

func (*affinityScore) Epoch(cluster.Snapshot) uint64 { return 0 }

// Wakes on nodes that come to match.
func (pl *NodeAffinity) Wakes() []Wake {
	return []Wake{{Event: Event{Resource: NodeObject, Action: Add | UpdateNodeLabel}, Hint: pl.nodeHint, Alike: true}}
}

func (pl *NodeAffinity) nodeHint(p *cluster.Pod, ch Change) Hint {
	node := asObject(ch.NewNode)
	if pl.addedRequired != nil && !pl.addedRequired.Match(node) {
		return SkipHint
	}
	own := requiredOf(p)
	now, err := own.Match(node)
	if err != nil {
		return QueueHint // upstream wakes a pod when a hint fails
	}
	if !now {
		return SkipHint
	}
	if ch.OldNode == nil {
		return QueueHint
	}
	if before, err := own.Match(asObject(ch.OldNode)); before && err == nil {
		return SkipHint
	}
	return QueueHint
}
