// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// TestDecisionsAwaitInformers: the informers of plugins show a pod before a plugin decides about it, at PreEnqueue and
// in a decision.
func TestDecisionsAwaitInformers(t *testing.T) {
	var log []string
	pl := &scripted{name: "A", log: &log}
	w := newWorld(t, nil, append([]config.Point{config.PreEnqueue}, filterPoints...), pl).nodes("n")
	w.profile.host.env.Await = func(p *v1.Pod) { log = append(log, "await "+p.Name) }
	p := plugintest.Pod("p")
	adapter{w.profile.plugins[0]}.Gated(w.Store.Snapshot(), w.Intake.PendingPod(p))
	w.place(p)
	want := []string{"await p", "await p", "A PreFilter p", "A Filter n"}
	if len(log) < len(want) || !slices.Equal(log[:len(want)], want) {
		t.Errorf("calls %v, want %v first", log, want)
	}
}
