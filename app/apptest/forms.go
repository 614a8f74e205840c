// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// CheckForms compares the column form of a plugin's filter and score with their plain form, on random nodes and pods.
// Some of the nodes have the labels that nodeLabels draws, and the pod has those of podLabels; either may be nil.
func CheckForms(t rapid.TB, pl plugin.Plugin, nodeLabels, podLabels func(*rapid.T) map[string]string) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		c, nodes := plugintest.RandomCluster(t, 50)
		for i := 0; i < nodes && nodeLabels != nil; i++ {
			n := plugintest.Node(fmt.Sprintf("labelled%d", i))
			n.Labels = nodeLabels(t)
			c.With(n)
		}
		pending := plugintest.RandomPod(t, "pending", nodes)
		if podLabels != nil {
			pending.Labels = podLabels(t)
		}
		s := c.Store.Snapshot()
		prepared := plugintest.Prepare(s, c.Intake.PendingPod(pending), []plugin.Plugin{pl})
		plugintest.CheckForms(t, s, prepared, 0, cluster.NodeIdx(s.Rows()))
	})
}
