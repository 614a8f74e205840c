// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// A node takes one pod, whatever it offers and whatever pods ask for; a pod that is decided there counts as one that is bound,
// and one that is being deleted as long as it is there (answer A9). Mutants: slots-hold-two, slots-unresolvable,
// slots-column-confirmed.
func TestNodeSlots(t *testing.T) {
	going := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	w := newWorld().with(node("free", offers("cpu", "0")), node("used"), node("leaving"), node("decided"),
		pod("small", onNode("used")), pod("going", onNode("leaving"), going))
	decided := w.intake.PendingPod(pod("decided"))
	row, _ := w.store.Snapshot().Find("decided")
	w.store.Begin()
	trial := w.store.Trial()
	trial.Assume(decided, row)
	trial.Commit()
	w.store.Commit()
	large := pod("large", asks("cpu", "64", "example.com/gpu", "8"))
	for name, fits := range map[string]bool{"free": true, "used": false, "leaving": false, "decided": false} {
		got, unresolvable := w.says(t, NodeSlots{}, large, name)
		if fits && len(got) > 0 || !fits && (!slices.Equal(got, []string{"node(s) were taken by another pod"}) || unresolvable) {
			t.Errorf("on the %s node: %q (unresolvable %v), want fits %v", name, got, unresolvable, fits)
		}
	}
}

// Mutant: slots-hint-pending-delete.
func TestNodeSlotsWakes(t *testing.T) {
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting", asks("cpu", "1")))
	gone := func(options ...podOption) Change {
		return changeOf(in, Event{Resource: AssignedPod, Action: Delete}, pod("gone", options...), nil)
	}
	for _, story := range []struct {
		name   string
		change Change
		want   Hint
	}{
		{"a new node", changeOf(in, Event{Resource: NodeObject, Action: Add}, nil, node("n", offers("cpu", "0"))), QueueHint},
		{"a pod leaves its node", gone(onNode("n")), QueueHint},
		{"a nominated pod gives its slot up", gone(nominated("n")), QueueHint},
		{"a pending pod goes", gone(), SkipHint},
	} {
		if got, asked := wakes(NodeSlots{}, waiting, story.change); !asked || got != story.want {
			t.Errorf("%s: hint %v (asked: %v), want %v", story.name, got, asked, story.want)
		}
	}
	shrunk := changeOf(in, Event{Resource: NodeObject, Action: UpdateNodeAllocatable}, node("n"), node("n", offers("cpu", "8")))
	if _, asked := wakes(NodeSlots{}, waiting, shrunk); asked {
		t.Error("it is asked about what nodes offer")
	}
}
