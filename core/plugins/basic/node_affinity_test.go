// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	in, notIn   = v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn
	has, hasNot = v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist
	more, less  = v1.NodeSelectorOpGt, v1.NodeSelectorOpLt
	nameField   = "metadata.name"
)

func plainAffinity() *NodeAffinity { return plugintest.Must(NewNodeAffinity(NodeAffinityArgs{})) }

// The node is called n and has labels zone=a, disk=ssd and gen=7. Every scenario runs twice: alone, and with so many
// other nodes that the column form reads label bitmaps. Mutants: affinity-*.
func TestNodeAffinityFilters(t *testing.T) {
	for _, story := range []struct {
		name string
		pod  *v1.Pod
		fits bool
	}{
		{"nothing asked", plugintest.Pod("p"), true},
		{"selector", plugintest.Pod("p", plugintest.NodeSelector("zone", "a")), true},
		{"selector, another value", plugintest.Pod("p", plugintest.NodeSelector("zone", "b")), false},
		{"selector, absent label", plugintest.Pod("p", plugintest.NodeSelector("rack", "a")), false},
		{"selector, one of two", plugintest.Pod("p", plugintest.NodeSelector("zone", "a", "disk", "hdd")), false},
		{"In", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", in, "b", "a")))), true},
		{"In, no such value", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", in, "b", "c")))), false},
		{"NotIn", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", notIn, "b")))), true},
		{"NotIn, the value", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", notIn, "a")))), false},
		{"NotIn of an absent label", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("rack", notIn, "1")))), true},
		{"Exists", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("disk", has)))), true},
		{"Exists, absent", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("rack", has)))), false},
		{"DoesNotExist", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("rack", hasNot)))), true},
		{"DoesNotExist, present", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("disk", hasNot)))), false},
		{"Gt", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", more, "6")))), true},
		{"Gt, equal", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", more, "7")))), false},
		{"Lt", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", less, "8")))), true},
		{"Lt, equal", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", less, "7")))), false},
		{"Gt of a word", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", more, "0")))), false},
		{"Gt of an absent label", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("rack", more, "0")))), false},
		{"all expressions of a term", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", in, "a"), plugintest.Expression("disk", in, "hdd")))), false},
		{"any of the terms", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", in, "b")), plugintest.Term(plugintest.Expression("disk", in, "ssd")))), true},
		{"selector and affinity", plugintest.Pod("p", plugintest.NodeSelector("zone", "b"), plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("disk", in, "ssd")))), false},
		{"no terms match nothing", plugintest.Pod("p", plugintest.RequiredAffinity()), false},
		{"an empty term matches nothing", plugintest.Pod("p", plugintest.RequiredAffinity(v1.NodeSelectorTerm{})), false},
		{"a term that does not parse matches nothing", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", in, "a"), plugintest.Expression("gen", more, "many")))), false},
		{"but another term may", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", more, "many")), plugintest.Term(plugintest.Expression("zone", in, "a")))), true},
		{"an unknown operator", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("zone", "Near", "a")))), false},
		{"by name", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "n")))), true},
		{"by another name", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "m")))), false},
		{"not by name", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, notIn, "n")))), false},
		{"not by another name", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, notIn, "m")))), true},
		{"name and label", plugintest.Pod("p", plugintest.RequiredAffinity(v1.NodeSelectorTerm{MatchFields: plugintest.FieldTerm(plugintest.Expression(nameField, in, "n")).MatchFields,
			MatchExpressions: plugintest.Term(plugintest.Expression("zone", in, "b")).MatchExpressions})), false},
		{"a field that nodes do not have", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression("spec.kind", in, "x")))), false},
		{"a field that nodes do not have is empty", plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression("spec.kind", notIn, "x")))), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			for _, others := range []int{0, 200} {
				w := plugintest.NewCluster()
				for i := range others {
					w.With(plugintest.Node(plugintest.NodeName(i)))
				}
				w.With(plugintest.Node("n", plugintest.Labels("zone", "a", "disk", "ssd", "gen", "7")))
				got, unresolvable := w.Reasons(t, plainAffinity(), story.pod, "n")
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
	s := plugintest.NewCluster().With(plugintest.Node("n")).Store.Snapshot()
	for _, story := range []struct {
		name   string
		pod    *v1.Pod
		nodes  []string // nil: all
		reject string
		idle   bool // the plugin has nothing to say
	}{
		{name: "nothing asked", pod: plugintest.Pod("p"), idle: true},
		{name: "one name", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "a")))), nodes: []string{"a"}},
		{name: "one name in each term", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "a")), plugintest.FieldTerm(plugintest.Expression(nameField, in, "b")))), nodes: []string{"a", "b"}},
		{name: "two names at once", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "a"), plugintest.Expression(nameField, in, "b")))), reject: "pod affinity terms conflict"},
		{name: "two names at once, one in another term", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "a"), plugintest.Expression(nameField, in, "b")), plugintest.FieldTerm(plugintest.Expression(nameField, in, "c")))), nodes: []string{"c"}},
		{name: "a term without names opens all", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, in, "a")), plugintest.Term(plugintest.Expression("zone", has))))},
		{name: "NotIn names none", pod: plugintest.Pod("p", plugintest.RequiredAffinity(plugintest.FieldTerm(plugintest.Expression(nameField, notIn, "a"))))},
		{name: "a selector names none", pod: plugintest.Pod("p", plugintest.NodeSelector("zone", "a"))},
	} {
		plan := plainAffinity().PrepareFilter(s, convert.NewIntake().Pod(story.pod))
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

// What the configuration adds holds for every pod, and has its own reason. Mutant: affinity-added-ignored.
func TestNodeAffinityAdded(t *testing.T) {
	pl := plugintest.Must(NewNodeAffinity(NodeAffinityArgs{AddedAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{plugintest.Term(plugintest.Expression("zone", in, "a"))}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: plugintest.Term(plugintest.Expression("disk", in, "ssd"))}},
	}}))
	w := plugintest.NewCluster().With(plugintest.Node("a", plugintest.Labels("zone", "a", "disk", "ssd")), plugintest.Node("b", plugintest.Labels("zone", "b", "disk", "ssd")))
	enforced := []string{"node(s) didn't match scheduler-enforced node affinity"}
	if got, _ := w.Reasons(t, pl, plugintest.Pod("p"), "a"); len(got) != 0 {
		t.Errorf("a node that matches: %q", got)
	}
	if got, unresolvable := w.Reasons(t, pl, plugintest.Pod("p"), "b"); !slices.Equal(got, enforced) || !unresolvable {
		t.Errorf("a node that does not: %q (unresolvable %v)", got, unresolvable)
	}
	if got, _ := w.Reasons(t, pl, plugintest.Pod("p", plugintest.NodeSelector("zone", "c")), "b"); !slices.Equal(got, enforced) {
		t.Errorf("neither matches: %q, want only what the configuration says", got)
	}
	if got, ok := w.Score(t, pl, plugintest.Pod("p", plugintest.PreferredAffinity(2, plugintest.Term(plugintest.Expression("zone", in, "a")))), "a"); !ok || got != 7 {
		t.Errorf("score %d (scored: %v), want 5 added and 2 of the pod", got, ok)
	}
	waiting := w.Intake.Pod(plugintest.Pod("p"))
	if got, _ := plugintest.HintOf(pl, waiting, plugintest.ChangeOf(w.Intake, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Labels("zone", "b")))); got != plugin.SkipHint {
		t.Errorf("a node outside the added affinity: %v", got)
	}
	for _, bad := range []*v1.NodeAffinity{
		{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{plugintest.Term(plugintest.Expression("gen", more, "many"))}}},
		{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: plugintest.Term(plugintest.Expression("gen", more, "many"))}}},
	} {
		if _, err := NewNodeAffinity(NodeAffinityArgs{AddedAffinity: bad}); err == nil || err != nil && !strings.Contains(err.Error(), "NodeAffinity: parsing addedAffinity.") {
			t.Errorf("added affinity that does not parse: %v", err)
		}
	}
}

// The raw score is the sum of the weights of the terms that match. Mutant: affinity-weight-one.
func TestNodeAffinityScores(t *testing.T) {
	for _, others := range []int{0, 200} {
		w := plugintest.NewCluster()
		for i := range others {
			w.With(plugintest.Node(plugintest.NodeName(i)))
		}
		w.With(plugintest.Node("n", plugintest.Labels("zone", "a", "gen", "7")))
		got, ok := w.Score(t, plainAffinity(), plugintest.Pod("p",
			plugintest.PreferredAffinity(10, plugintest.Term(plugintest.Expression("zone", in, "a"))),
			plugintest.PreferredAffinity(20, plugintest.Term(plugintest.Expression("zone", in, "b"))),
			plugintest.PreferredAffinity(30, plugintest.Term(plugintest.Expression("gen", more, "6"))),
			plugintest.PreferredAffinity(40, v1.NodeSelectorTerm{}),
			plugintest.PreferredAffinity(0, plugintest.Term(plugintest.Expression("gen", more, "not looked at")))), "n")
		if !ok || got != 40 {
			t.Errorf("score %d (scored: %v), want 10 and 30", got, ok)
		}
	}
	w := plugintest.NewCluster().With(plugintest.Node("n"))
	if _, ok := w.Score(t, plainAffinity(), plugintest.Pod("p", plugintest.NodeSelector("zone", "a")), "n"); ok {
		t.Errorf("a pod without preferences is scored")
	}
	broken := plainAffinity().PrepareScore(w.Store.Snapshot(), w.Intake.Pod(plugintest.Pod("p", plugintest.PreferredAffinity(1, plugintest.Term(plugintest.Expression("gen", more, "many"))))))
	if b, ok := broken.(plugin.BrokenScore); !ok || b.Err == nil {
		t.Errorf("a preference that does not parse: %T", broken)
	}
}

// Mutant: affinity-hint-matched-before.
func TestNodeAffinityWakes(t *testing.T) {
	intake := convert.NewIntake()
	waiting := intake.Pod(plugintest.Pod("waiting", plugintest.NodeSelector("zone", "a")))
	broken := intake.Pod(plugintest.Pod("broken", plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("gen", more, "many")))))
	inA, inB := plugintest.Node("n", plugintest.Labels("zone", "a")), plugintest.Node("n", plugintest.Labels("zone", "b"))
	for _, story := range []struct {
		name     string
		pod      *cluster.Pod
		event    plugin.Event
		old, new any
		want     plugin.Hint
	}{
		{"a node that matches", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, inA, plugin.QueueHint},
		{"a node that does not", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, inB, plugin.SkipHint},
		{"a node comes to match", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeLabel}, inB, inA, plugin.QueueHint},
		{"a node matched before", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeLabel}, inA, inA, plugin.SkipHint},
		{"a node no longer matches", waiting, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeLabel}, inA, inB, plugin.SkipHint},
		{"terms that do not parse", broken, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, inB, plugin.QueueHint},
	} {
		if got, asked := plugintest.HintOf(plainAffinity(), story.pod, plugintest.ChangeOf(intake, story.event, story.old, story.new)); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
}
