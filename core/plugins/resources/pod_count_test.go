// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// TestNodePodCount: the number of pods counts, whatever they request, and the fewest are best.
func TestNodePodCount(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("empty"), plugintest.Node("busy"),
		plugintest.Pod("a", plugintest.OnNode("busy"), plugintest.Requests("cpu", "7")),
		plugintest.Pod("b", plugintest.OnNode("busy")))
	raw := map[string]int64{"empty": 0, "busy": 2} // node -> raw score
	for name, want := range raw {                  // order: each node alone
		if got, ok := w.Score(t, NodePodCount{}, plugintest.Pod("p"), name); !ok || got != want {
			t.Errorf("node %s scores %d (scored: %v), want %d", name, got, ok, want)
		}
	}
	if n := (NodePodCount{}).Normal(); n.Apply(0, 2) != 100 || n.Apply(2, 2) != 0 {
		t.Errorf("normalised to %d and %d, want 100 and 0", n.Apply(0, 2), n.Apply(2, 2))
	}
}
