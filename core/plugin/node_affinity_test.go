// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const (
	in, notIn   = v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn
	has, hasNot = v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist
	more, less  = v1.NodeSelectorOpGt, v1.NodeSelectorOpLt
	nameField   = "metadata.name"
)

func plainAffinity() *NodeAffinity { return must(NewNodeAffinity(NodeAffinityArgs{})) }

// The node is called n and has labels zone=a, disk=ssd and gen=7. Every story is told twice: alone, and with so many
// other nodes that the column form reads label bitmaps. Mutants: affinity-*.
func TestNodeAffinityFilters(t *testing.T) {
	for _, story := range []struct {
		name string
		pod  *v1.Pod
		fits bool
	}{
		{"nothing asked", pod("p"), true},
		{"selector", pod("p", selector("zone", "a")), true},
		{"selector, another value", pod("p", selector("zone", "b")), false},
		{"selector, absent label", pod("p", selector("rack", "a")), false},
		{"selector, one of two", pod("p", selector("zone", "a", "disk", "hdd")), false},
		{"In", pod("p", required(term(expr("zone", in, "b", "a")))), true},
		{"In, no such value", pod("p", required(term(expr("zone", in, "b", "c")))), false},
		{"NotIn", pod("p", required(term(expr("zone", notIn, "b")))), true},
		{"NotIn, the value", pod("p", required(term(expr("zone", notIn, "a")))), false},
		{"NotIn of an absent label", pod("p", required(term(expr("rack", notIn, "1")))), true},
		{"Exists", pod("p", required(term(expr("disk", has)))), true},
		{"Exists, absent", pod("p", required(term(expr("rack", has)))), false},
		{"DoesNotExist", pod("p", required(term(expr("rack", hasNot)))), true},
		{"DoesNotExist, present", pod("p", required(term(expr("disk", hasNot)))), false},
		{"Gt", pod("p", required(term(expr("gen", more, "6")))), true},
		{"Gt, equal", pod("p", required(term(expr("gen", more, "7")))), false},
		{"Lt", pod("p", required(term(expr("gen", less, "8")))), true},
		{"Lt, equal", pod("p", required(term(expr("gen", less, "7")))), false},
		{"Gt of a word", pod("p", required(term(expr("zone", more, "0")))), false},
		{"Gt of an absent label", pod("p", required(term(expr("rack", more, "0")))), false},
		{"all expressions of a term", pod("p", required(term(expr("zone", in, "a"), expr("disk", in, "hdd")))), false},
		{"any of the terms", pod("p", required(term(expr("zone", in, "b")), term(expr("disk", in, "ssd")))), true},
		{"selector and affinity", pod("p", selector("zone", "b"), required(term(expr("disk", in, "ssd")))), false},
		{"no terms match nothing", pod("p", required()), false},
		{"an empty term matches nothing", pod("p", required(v1.NodeSelectorTerm{})), false},
		{"a term that does not parse matches nothing", pod("p", required(term(expr("zone", in, "a"), expr("gen", more, "many")))), false},
		{"but another term may", pod("p", required(term(expr("gen", more, "many")), term(expr("zone", in, "a")))), true},
		{"an unknown operator", pod("p", required(term(expr("zone", "Near", "a")))), false},
		{"by name", pod("p", required(fields(expr(nameField, in, "n")))), true},
		{"by another name", pod("p", required(fields(expr(nameField, in, "m")))), false},
		{"not by name", pod("p", required(fields(expr(nameField, notIn, "n")))), false},
		{"not by another name", pod("p", required(fields(expr(nameField, notIn, "m")))), true},
		{"name and label", pod("p", required(v1.NodeSelectorTerm{MatchFields: fields(expr(nameField, in, "n")).MatchFields,
			MatchExpressions: term(expr("zone", in, "b")).MatchExpressions})), false},
		{"a field that nodes do not have", pod("p", required(fields(expr("spec.kind", in, "x")))), false},
		{"a field that nodes do not have is empty", pod("p", required(fields(expr("spec.kind", notIn, "x")))), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			for _, others := range []int{0, 200} {
				w := newWorld()
				for i := range others {
					w.with(node(nodeName(i)))
				}
				w.with(node("n", label("zone", "a", "disk", "ssd", "gen", "7")))
				got, unresolvable := w.says(t, plainAffinity(), story.pod, "n")
				if story.fits {
					if len(got) != 0 {
						t.Errorf("got %q, want that it fits", got)
					}
				} else if want := []string{"node(s) didn't match Pod's node affinity/selector"}; !slices.Equal(got, want) || !unresolvable {
					t.Errorf("got %q (unresolvable %v), want %q, unresolvable", got, unresolvable, want)
				}
			}
		})
	}
}

// Terms that all name nodes narrow the search to these; names that no node can bear at once reject the pod at once.
// Mutant: affinity-names-union.
func TestNodeAffinityNamesNodes(t *testing.T) {
	s := newWorld().with(node("n")).store.Snapshot()
	for _, story := range []struct {
		name   string
		pod    *v1.Pod
		nodes  []string // nil: all
		reject string
		idle   bool // the plugin has nothing to say
	}{
		{name: "nothing asked", pod: pod("p"), idle: true},
		{name: "one name", pod: pod("p", required(fields(expr(nameField, in, "a")))), nodes: []string{"a"}},
		{name: "one name in each term", pod: pod("p", required(fields(expr(nameField, in, "a")), fields(expr(nameField, in, "b")))), nodes: []string{"a", "b"}},
		{name: "two names at once", pod: pod("p", required(fields(expr(nameField, in, "a"), expr(nameField, in, "b")))), reject: "pod affinity terms conflict"},
		{name: "two names at once, one in another term", pod: pod("p", required(fields(expr(nameField, in, "a"), expr(nameField, in, "b")), fields(expr(nameField, in, "c")))), nodes: []string{"c"}},
		{name: "a term without names opens all", pod: pod("p", required(fields(expr(nameField, in, "a")), term(expr("zone", has))))},
		{name: "NotIn names none", pod: pod("p", required(fields(expr(nameField, notIn, "a"))))},
		{name: "a selector names none", pod: pod("p", selector("zone", "a"))},
	} {
		plan := plainAffinity().PrepareFilter(s, cluster.NewIntake().Pod(story.pod))
		var nodes []string
		for name := range plan.Nodes { // order: sorted below
			nodes = append(nodes, name)
		}
		slices.Sort(nodes)
		idle := plan.Filter == nil && plan.Reject == ""
		if !slices.Equal(nodes, story.nodes) || plan.Reject != story.reject || idle != story.idle {
			t.Errorf("%s: nodes %q, reject %q, idle %v; want %q, %q, %v", story.name, nodes, plan.Reject, idle, story.nodes, story.reject, story.idle)
		}
	}
}

// What the configuration adds holds for every pod, and is told apart. Mutant: affinity-added-ignored.
func TestNodeAffinityAdded(t *testing.T) {
	pl := must(NewNodeAffinity(NodeAffinityArgs{AddedAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term(expr("zone", in, "a"))}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: term(expr("disk", in, "ssd"))}},
	}}))
	w := newWorld().with(node("a", label("zone", "a", "disk", "ssd")), node("b", label("zone", "b", "disk", "ssd")))
	enforced := []string{"node(s) didn't match scheduler-enforced node affinity"}
	if got, _ := w.says(t, pl, pod("p"), "a"); len(got) != 0 {
		t.Errorf("a node that matches: %q", got)
	}
	if got, unresolvable := w.says(t, pl, pod("p"), "b"); !slices.Equal(got, enforced) || !unresolvable {
		t.Errorf("a node that does not: %q (unresolvable %v)", got, unresolvable)
	}
	if got, _ := w.says(t, pl, pod("p", selector("zone", "c")), "b"); !slices.Equal(got, enforced) {
		t.Errorf("neither matches: %q, want only what the configuration says", got)
	}
	if got, ok := w.scores(t, pl, pod("p", preferred(2, term(expr("zone", in, "a")))), "a"); !ok || got != 7 {
		t.Errorf("score %d (scored: %v), want 5 added and 2 of the pod", got, ok)
	}
	waiting := w.intake.Pod(pod("p"))
	if got, _ := wakes(pl, waiting, changeOf(w.intake, Event{Resource: NodeObject, Action: Add}, nil, node("n", label("zone", "b")))); got != SkipHint {
		t.Errorf("a node outside the added affinity: %v", got)
	}
	for _, bad := range []*v1.NodeAffinity{
		{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term(expr("gen", more, "many"))}}},
		{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: term(expr("gen", more, "many"))}}},
	} {
		if _, err := NewNodeAffinity(NodeAffinityArgs{AddedAffinity: bad}); err == nil || err != nil && !strings.Contains(err.Error(), "NodeAffinity: parsing addedAffinity.") {
			t.Errorf("added affinity that does not parse: %v", err)
		}
	}
}

// The raw score is the sum of the weights of the terms that match. Mutant: affinity-weight-one.
func TestNodeAffinityScores(t *testing.T) {
	for _, others := range []int{0, 200} {
		w := newWorld()
		for i := range others {
			w.with(node(nodeName(i)))
		}
		w.with(node("n", label("zone", "a", "gen", "7")))
		got, ok := w.scores(t, plainAffinity(), pod("p",
			preferred(10, term(expr("zone", in, "a"))),
			preferred(20, term(expr("zone", in, "b"))),
			preferred(30, term(expr("gen", more, "6"))),
			preferred(40, v1.NodeSelectorTerm{}),
			preferred(0, term(expr("gen", more, "not looked at")))), "n")
		if !ok || got != 40 {
			t.Errorf("score %d (scored: %v), want 10 and 30", got, ok)
		}
	}
	w := newWorld().with(node("n"))
	if _, ok := w.scores(t, plainAffinity(), pod("p", selector("zone", "a")), "n"); ok {
		t.Errorf("a pod without preferences is scored")
	}
	broken := plainAffinity().PrepareScore(w.store.Snapshot(), w.intake.Pod(pod("p", preferred(1, term(expr("gen", more, "many"))))))
	if b, ok := broken.(BrokenScore); !ok || b.Err == nil {
		t.Errorf("a preference that does not parse: %T", broken)
	}
}

// Mutant: affinity-hint-matched-before.
func TestNodeAffinityWakes(t *testing.T) {
	intake := cluster.NewIntake()
	waiting := intake.Pod(pod("waiting", selector("zone", "a")))
	broken := intake.Pod(pod("broken", required(term(expr("gen", more, "many")))))
	inA, inB := node("n", label("zone", "a")), node("n", label("zone", "b"))
	for _, story := range []struct {
		name     string
		pod      *cluster.Pod
		event    Event
		old, new any
		want     Hint
	}{
		{"a node that matches", waiting, Event{Resource: NodeObject, Action: Add}, nil, inA, QueueHint},
		{"a node that does not", waiting, Event{Resource: NodeObject, Action: Add}, nil, inB, SkipHint},
		{"a node comes to match", waiting, Event{Resource: NodeObject, Action: UpdateNodeLabel}, inB, inA, QueueHint},
		{"a node matched before", waiting, Event{Resource: NodeObject, Action: UpdateNodeLabel}, inA, inA, SkipHint},
		{"a node no longer matches", waiting, Event{Resource: NodeObject, Action: UpdateNodeLabel}, inA, inB, SkipHint},
		{"terms that do not parse", broken, Event{Resource: NodeObject, Action: Add}, nil, inB, QueueHint},
	} {
		if got, asked := wakes(plainAffinity(), story.pod, changeOf(intake, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}
