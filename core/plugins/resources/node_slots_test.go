// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// A node takes one pod, whatever it offers and whatever pods ask for; a pod that is decided there counts as one that
// is bound, and one that is being deleted as long as it is there (answer A9). Mutants: slots-hold-two,
// slots-unresolvable, slots-column-confirmed.
func TestNodeSlots(t *testing.T) {
	going := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	w := plugintest.NewCluster().With(plugintest.Node("free", plugintest.Allocatable("cpu", "0")), plugintest.Node("used"), plugintest.Node("leaving"), plugintest.Node("decided"),
		plugintest.Pod("small", plugintest.OnNode("used")), plugintest.Pod("going", plugintest.OnNode("leaving"), going))
	decided := w.Intake.PendingPod(plugintest.Pod("decided"))
	row, _ := w.Store.Snapshot().Find("decided")
	w.Store.Begin()
	trial := w.Store.Trial()
	trial.Assume(decided, row)
	trial.Commit()
	w.Store.Commit()
	large := plugintest.Pod("large", plugintest.Requests("cpu", "64", "example.com/gpu", "8"))
	for name, fits := range map[string]bool{"free": true, "used": false, "leaving": false, "decided": false} {
		got, unresolvable := w.Reasons(t, NodeSlots{}, large, name)
		if fits && len(got) > 0 || !fits && (!slices.Equal(got, []string{"node(s) were taken by another pod"}) || unresolvable) {
			t.Errorf("on the %s node: %q (unresolvable %v), want fits %v", name, got, unresolvable, fits)
		}
	}
}

// Mutant: slots-hint-pending-delete.
func TestNodeSlotsWakes(t *testing.T) {
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting", plugintest.Requests("cpu", "1")))
	gone := func(options ...plugintest.PodOption) plugin.Change {
		return plugintest.ChangeOf(in, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugintest.Pod("gone", options...), nil)
	}
	for _, story := range []struct {
		name   string
		change plugin.Change
		want   plugin.Hint
	}{
		{"a new node", plugintest.ChangeOf(in, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, nil, plugintest.Node("n", plugintest.Allocatable("cpu", "0"))), plugin.QueueHint},
		{"a pod leaves its node", gone(plugintest.OnNode("n")), plugin.QueueHint},
		{"a nominated pod gives its slot up", gone(plugintest.Nominated("n")), plugin.QueueHint},
		{"a pending pod goes", gone(), plugin.SkipHint},
	} {
		if got, asked := plugintest.HintOf(NodeSlots{}, waiting, story.change); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
	shrunk := plugintest.ChangeOf(in, plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeAllocatable}, plugintest.Node("n"), plugintest.Node("n", plugintest.Allocatable("cpu", "8")))
	if _, asked := plugintest.HintOf(NodeSlots{}, waiting, shrunk); asked {
		t.Error("it is asked about what nodes offer")
	}
}
