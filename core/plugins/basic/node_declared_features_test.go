// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const noFeature = "!node(s) didn't match Pod's required features"

// Which nodes have what a pod needs. Mutants: features-reversed, features-resolvable, features-first-only.
func TestNodeDeclaredFeaturesFilters(t *testing.T) {
	for _, story := range []struct {
		name string
		node *v1.Node
		need []string
		want string
	}{
		{"a node that declares nothing", plugintest.Node("n"), []string{"A"}, noFeature},
		{"the feature", plugintest.Node("n", plugintest.Features("A")), []string{"A"}, ""},
		{"another feature", plugintest.Node("n", plugintest.Features("B")), []string{"A"}, noFeature},
		{"among others, in any order", plugintest.Node("n", plugintest.Features("C", "A", "B")), []string{"A", "C"}, ""},
		{"one of two", plugintest.Node("n", plugintest.Features("A", "D")), []string{"A", "C"}, noFeature},
		{"the other of two", plugintest.Node("n", plugintest.Features("C")), []string{"A", "C"}, noFeature},
		{"nothing needed", plugintest.Node("n"), nil, ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(story.node)
			s := w.Store.Snapshot()
			plan := NodeDeclaredFeatures{}.PrepareFilter(s, plugintest.NeedsFeatures(w.Intake.Pod(plugintest.Pod("p")), story.need...))
			if plan.Filter == nil {
				if story.want != "" {
					t.Fatalf("nothing to say, want %q", story.want)
				}
				return
			}
			code := plan.Filter.Plain(s, s.View(0))
			if got := plugintest.CodeText(plan.Filter, code); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			out := make([]plugin.Verdict, 1)
			if plan.Filter.Column(s, 0, 1, plugin.TagOf(2), out); out[0].Code() != code {
				t.Errorf("the column form says %x, the plain form %x", out[0].Code(), code)
			}
		})
	}
	plan := NodeDeclaredFeatures{}.PrepareFilter(plugintest.NewCluster().Store.Snapshot(), plugintest.NeedsFeatures(convert.NewIntake().Pod(plugintest.Pod("p")), "!cannot tell"))
	if plan.Err == nil || plan.Err.Error() != "cannot tell" {
		t.Errorf("a pod of which intake cannot tell: %v", plan.Err)
	}
}

// What a pod in a user namespace on the host's network needs comes from its spec.
func TestNodeDeclaredFeaturesReadsThePod(t *testing.T) {
	no := false
	p := plugintest.Pod("p", func(p *v1.Pod) { p.Spec.HostNetwork, p.Spec.HostUsers = true, &no })
	const feature = "UserNamespacesHostNetworkSupport"
	w := plugintest.NewCluster().With(plugintest.Node("old"), plugintest.Node("new", plugintest.Features(feature)))
	if got := w.Verdict(t, NodeDeclaredFeatures{}, p, "old"); got != noFeature {
		t.Errorf("a node without %s: %q", feature, got)
	}
	if got := w.Verdict(t, NodeDeclaredFeatures{}, p, "new"); got != "" {
		t.Errorf("a node with %s: %q", feature, got)
	}
}

// Mutant: features-hint-any-node.
func TestNodeDeclaredFeaturesWakes(t *testing.T) {
	in := convert.NewIntake()
	waiting := plugintest.NeedsFeatures(in.Pod(plugintest.Pod("waiting")), "A")
	before, after := in.Node(plugintest.Node("n")), in.Node(plugintest.Node("n", plugintest.Features("A")))
	nodeUpdate, podUpdate := plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeDeclaredFeature}, plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodLabel}
	plugintest.CheckHints(t, NodeDeclaredFeatures{}, waiting, []plugintest.HintCase{
		{Name: "a node comes", Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, Change: plugin.Change{NewNode: before}, Want: plugin.QueueHint},
		{Name: "a node's features change", Event: nodeUpdate, Change: plugin.Change{OldNode: before, NewNode: after}, Want: plugin.QueueHint},
		{Name: "they stay", Event: nodeUpdate, Change: plugin.Change{OldNode: after, NewNode: after}, Want: plugin.SkipHint},
		{Name: "the pod needs less", Event: podUpdate, Change: plugin.Change{OldPod: waiting, NewPod: plugintest.NeedsFeatures(waiting)}, Want: plugin.QueueHint},
		{Name: "the pod needs the same", Event: podUpdate, Change: plugin.Change{OldPod: waiting, NewPod: waiting}, Want: plugin.SkipHint},
		{Name: "what it needs cannot be told", Event: podUpdate, Change: plugin.Change{OldPod: waiting, NewPod: plugintest.NeedsFeatures(waiting, "!why")}, Want: plugin.QueueHint},
	})
	plugintest.CheckEvents(t, NodeDeclaredFeatures{}, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeDeclaredFeature}, plugin.Event{Resource: plugin.TargetPod, Action: plugin.Update})
}
