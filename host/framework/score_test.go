// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"slices"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

var scorePoints = []config.Point{config.PreScore, config.Score}

// byName gives the nodes a, b and c scores.
func byName(a, b, c int64) func(fwk.CycleState, fwk.NodeInfo) (int64, *fwk.Status) {
	return func(_ fwk.CycleState, n fwk.NodeInfo) (int64, *fwk.Status) {
		return map[string]int64{"a": a, "b": b, "c": c}[n.Node().Name], nil
	}
}

// TestScores: PreScore of all plugins comes first, Score of all plugins follows node by node, then NormalizeScore. Each
// is called once for a node, and the weight of the profile applies.
func TestScores(t *testing.T) {
	var log []string
	a := &scripted{name: "A", log: &log, score: byName(10, 20, 30)}
	b := &scripted{name: "B", log: &log, score: byName(400, 100, 100), normalize: func(list fwk.NodeScoreList) *fwk.Status {
		for i := range list {
			list[i].Score /= 10
		}
		return nil
	}}
	w := newWorld(t, nil, scorePoints, a, b).nodes("a", "b", "c")
	out, _ := w.place(plugintest.Pod("p"))
	if s := w.Store.Snapshot(); out.Err != nil || s.NodeName(out.Node) != "a" || out.Total != 2*(10+40) {
		t.Errorf("node %d with %d, error %v", out.Node, out.Total, out.Err)
	}
	want := []string{"A PreScore 3", "B PreScore 3", "A Score a", "B Score a", "A Score b", "B Score b", "A Score c",
		"B Score c", "B NormalizeScore 3"}
	if !slices.Equal(log, want) {
		t.Errorf("calls %v, want %v", log, want)
	}
	if scores := w.placer.Scores(out, out.Node); len(scores) != 2 || scores[1].Plugin != "B" || scores[1].Raw != 400 ||
		scores[1].Weighted != 80 {
		t.Errorf("scores %+v", scores)
	}
}

// TestScoreErrors: each failure fails the attempt with upstream's text.
func TestScoreErrors(t *testing.T) {
	fails := func(text string) *fwk.Status { return fwk.AsStatus(errors.New(text)) }
	for name, tt := range map[string]struct {
		plugin scripted
		want   string
	}{
		"prescore": {scripted{preScore: func(fwk.CycleState, []fwk.NodeInfo) *fwk.Status { return fails("down") }},
			`running PreScore plugin "A": down`},
		"score": {scripted{score: func(fwk.CycleState, fwk.NodeInfo) (int64, *fwk.Status) { return 0, fails("down") }},
			`running Score plugins: plugin "A" failed with: down`},
		"normalize": {scripted{normalize: func(fwk.NodeScoreList) *fwk.Status { return fails("down") }},
			`running Normalize on Score plugins: plugin "A" failed with: down`},
		"high": {scripted{score: byName(0, 101, 0)}, "applying score defaultWeights on Score plugins: " +
			`plugin "A" returns an invalid score 101, it should in the range of [0, 100] after normalizing`},
		"low": {scripted{score: byName(0, 0, -1)}, "applying score defaultWeights on Score plugins: " +
			`plugin "A" returns an invalid score -1, it should in the range of [0, 100] after normalizing`},
		"panic": {scripted{score: func(fwk.CycleState, fwk.NodeInfo) (int64, *fwk.Status) { panic("oh no") }},
			`running Score plugins: plugin "A" failed with: plugin "A" at score: panic: oh no`},
	} {
		t.Run(name, func(t *testing.T) {
			pl := tt.plugin
			pl.name = "A"
			w := newWorld(t, nil, scorePoints, &pl, &scripted{name: "B"}).nodes("a", "b", "c")
			out, _ := w.place(plugintest.Pod("p"))
			if out.Err == nil || out.Err.Error() != tt.want || out.Node != cluster.NoNode {
				t.Errorf("node %d, error %v, want %s", out.Node, out.Err, tt.want)
			}
			if out, _ := newWorld(t, nil, scorePoints, &pl).nodes("a").place(plugintest.Pod("p")); out.Err != nil {
				t.Errorf("with one node, nothing is scored: error %v", out.Err)
			}
		})
	}
}

// TestPreScoreSkip: a plugin whose PreScore returns Skip does not score; the other one does.
func TestPreScoreSkip(t *testing.T) {
	var log []string
	a := &scripted{name: "A", log: &log, preScore: func(fwk.CycleState, []fwk.NodeInfo) *fwk.Status {
		return fwk.NewStatus(fwk.Skip)
	}}
	b := &scripted{name: "B", log: &log, score: byName(1, 2, 3)}
	w := newWorld(t, nil, scorePoints, a, b).nodes("a", "b", "c")
	out, _ := w.place(plugintest.Pod("p"))
	if w.Store.Snapshot().NodeName(out.Node) != "c" || slices.ContainsFunc(log, func(s string) bool {
		return strings.HasPrefix(s, "A Score")
	}) {
		t.Errorf("node %d, calls %v", out.Node, log)
	}
}
