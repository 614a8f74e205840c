// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/apptest"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

func testPlugin(t *testing.T) HardwareGeneration {
	t.Helper()
	g, err := New(Args{NodeLabel: "gen", PodLabel: "least"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func podLabelled(least string) *cluster.Pod {
	return &cluster.Pod{Spec: &cluster.PodSpec{Labels: map[string]string{"least": least}}}
}

func nodeLabelled(generation string) *cluster.NodeView {
	return &cluster.NodeView{Node: &cluster.Node{Labels: map[string]string{"gen": generation}}}
}

// TestPlain calls the plain forms for one pod and one node.
func TestPlain(t *testing.T) {
	g, s := testPlugin(t), cluster.Snapshot{}
	for _, tt := range []struct {
		least, generation string
		fits              bool
		score             int64
	}{
		{"3", "3", true, 3},
		{"3", "4", true, 4},
		{"3", "2", false, 2},
		{"3", "new", false, 0},
		{"0", "", true, 0},
	} {
		plan := g.PrepareFilter(s, podLabelled(tt.least))
		if code := plan.Filter.Plain(s, nodeLabelled(tt.generation)); (code == plugin.Fit) != tt.fits {
			t.Errorf("a pod for %s on a node of %q: code %x", tt.least, tt.generation, code)
		}
		score := g.PrepareScore(s, podLabelled(tt.least)).Plain(s, nodeLabelled(tt.generation))
		if score != tt.score {
			t.Errorf("a node of %q scores %d, want %d", tt.generation, score, tt.score)
		}
	}
	if plan := g.PrepareFilter(s, podLabelled("many")); plan.Reject == "" {
		t.Error("a label that is no number is accepted")
	}
	if plan := g.PrepareFilter(s, &cluster.Pod{Spec: &cluster.PodSpec{}}); plan.Filter != nil || plan.Reject != "" {
		t.Error("a pod without the label is filtered")
	}
}

// TestArgs rejects arguments without labels.
func TestArgs(t *testing.T) {
	if _, err := New(Args{NodeLabel: "gen"}); err == nil {
		t.Error("an empty podLabel is accepted")
	}
}

// TestScenarios runs testdata/*.txt with the profiles of config.yaml.
func TestScenarios(t *testing.T) {
	plugins, err := app.NewPlugins(Register())
	if err != nil {
		t.Fatal(err)
	}
	apptest.Scenarios(t, plugins, "config.yaml", "testdata/*.txt")
}
