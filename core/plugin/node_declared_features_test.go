// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const noFeature = "!node(s) didn't match Pod's required features"

func declares(features ...string) nodeOption {
	return func(n *v1.Node) { n.Status.DeclaredFeatures = features }
}

// needing is what intake makes of a pod that needs these features, sorted; "!x" makes it one of which intake cannot
// tell, because of x.
func needing(p *cluster.Pod, features ...string) *cluster.Pod {
	spec, is := *p.Spec, *p
	spec.Features, spec.FeaturesErr = features, ""
	if len(features) == 1 && features[0][0] == '!' {
		spec.Features, spec.FeaturesErr = nil, features[0][1:]
	}
	is.Spec = &spec
	return &is
}

// Which nodes have what a pod needs. Mutants: features-reversed, features-resolvable, features-first-only.
func TestNodeDeclaredFeaturesFilters(t *testing.T) {
	for _, story := range []struct {
		name string
		node *v1.Node
		need []string
		want string
	}{
		{"a node that declares nothing", node("n"), []string{"A"}, noFeature},
		{"the feature", node("n", declares("A")), []string{"A"}, ""},
		{"another feature", node("n", declares("B")), []string{"A"}, noFeature},
		{"among others, in any order", node("n", declares("C", "A", "B")), []string{"A", "C"}, ""},
		{"one of two", node("n", declares("A", "D")), []string{"A", "C"}, noFeature},
		{"the other of two", node("n", declares("C")), []string{"A", "C"}, noFeature},
		{"nothing needed", node("n"), nil, ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld().with(story.node)
			s := w.store.Snapshot()
			plan := NodeDeclaredFeatures{}.PrepareFilter(s, needing(w.intake.Pod(pod("p")), story.need...))
			if plan.Filter == nil {
				if story.want != "" {
					t.Fatalf("nothing to say, want %q", story.want)
				}
				return
			}
			code := plan.Filter.Plain(s, s.View(0))
			if got := wordsOf(plan.Filter, code); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			out := make([]Verdict, 1)
			if plan.Filter.Column(s, 0, 1, TagOf(2), out); out[0].Code() != code {
				t.Errorf("the column form says %x, the plain form %x", out[0].Code(), code)
			}
		})
	}
	plan := NodeDeclaredFeatures{}.PrepareFilter(newWorld().store.Snapshot(), needing(cluster.NewIntake().Pod(pod("p")), "!cannot tell"))
	if plan.Err == nil || plan.Err.Error() != "cannot tell" {
		t.Errorf("a pod of which intake cannot tell: %v", plan.Err)
	}
}

// What a pod in a user namespace on the host's network needs comes from its spec.
func TestNodeDeclaredFeaturesReadsThePod(t *testing.T) {
	no := false
	p := pod("p", func(p *v1.Pod) { p.Spec.HostNetwork, p.Spec.HostUsers = true, &no })
	const feature = "UserNamespacesHostNetworkSupport"
	w := newWorld().with(node("old"), node("new", declares(feature)))
	if got := w.verdictOf(t, NodeDeclaredFeatures{}, p, "old"); got != noFeature {
		t.Errorf("a node without %s: %q", feature, got)
	}
	if got := w.verdictOf(t, NodeDeclaredFeatures{}, p, "new"); got != "" {
		t.Errorf("a node with %s: %q", feature, got)
	}
}

// Mutants: features-hint-any-node, features-hint-any-pod.
func TestNodeDeclaredFeaturesWakes(t *testing.T) {
	in := cluster.NewIntake()
	waiting, other := needing(in.Pod(pod("waiting")), "A"), needing(in.Pod(pod("other")), "A")
	before, after := in.Node(node("n")), in.Node(node("n", declares("A")))
	nodeUpdate, podUpdate := Event{Resource: NodeObject, Action: UpdateNodeDeclaredFeature}, Event{Resource: UnscheduledPod, Action: UpdatePodLabel}
	tellHints(t, NodeDeclaredFeatures{}, waiting, []hintStory{
		{"a node comes", Event{Resource: NodeObject, Action: Add}, Change{NewNode: before}, QueueHint},
		{"a node's features change", nodeUpdate, Change{OldNode: before, NewNode: after}, QueueHint},
		{"they stay", nodeUpdate, Change{OldNode: after, NewNode: after}, SkipHint},
		{"the pod needs less", podUpdate, Change{OldPod: waiting, NewPod: needing(waiting)}, QueueHint},
		{"the pod needs the same", podUpdate, Change{OldPod: waiting, NewPod: waiting}, SkipHint},
		{"what it needs cannot be told", podUpdate, Change{OldPod: waiting, NewPod: needing(waiting, "!why")}, QueueHint},
		{"another pod needs less", podUpdate, Change{OldPod: other, NewPod: needing(other)}, SkipHint},
	})
	listensTo(t, NodeDeclaredFeatures{}, Event{Resource: NodeObject, Action: Add | UpdateNodeDeclaredFeature}, Event{Resource: Pod, Action: Update})
}
