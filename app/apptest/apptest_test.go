// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// turns is a plugin that reads a variable outside of the scheduler: it accepts one node, and scores another.
type turns struct{ accepted, preferred *string }

func (turns) Name() string { return "Turns" }

func (f turns) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: plugin.FilterByNode(turnsFilter(f))}
}

func (f turns) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore {
	return plugin.ScoreByNode(turnsScore(f))
}

func (turns) Normal() plugin.Normal { return plugin.AsIs }

type turnsFilter turns

func (f turnsFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if v.Node.Name != *f.accepted && *f.accepted != "" {
		return 1
	}
	return plugin.Fit
}

func (turnsFilter) Reasons(plugin.Code) []string { return []string{"it was another node's turn"} }

type turnsScore turns

func (f turnsScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	if v.Node.Name == *f.preferred {
		return plugin.MaxScore
	}
	return 0
}

func configuration(t *testing.T, profile string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" + profile
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestACustomPluginIsNotCached: what a custom plugin says counts in each decision, although no node changes.
func TestACustomPluginIsNotCached(t *testing.T) {
	accepted, preferred := "", "c"
	plugins, err := app.NewPlugins(plugin.WithoutArgs(turns{&accepted, &preferred}))
	if err != nil {
		t.Fatal(err)
	}
	file := configuration(t, "- plugins: {multiPoint: {enabled: [{name: Turns, weight: 100}]}}\n")
	c, err := plugins.ReadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScenario(plugins, c)
	if err != nil {
		t.Fatal(err)
	}
	run := func(line string) string {
		s.out.Reset()
		words := strings.Fields(line)
		if err := s.command(words[0], words[1:]); err != nil {
			t.Fatal(err)
		}
		return s.out.String()
	}
	for _, n := range []string{"a", "b", "c", "d"} {
		run("node " + n)
	}
	for i, tt := range []struct{ accepted, preferred, want string }{
		{"", "c", "runs on c, 4 of 4"}, {"", "a", "runs on a, 4 of 4"}, {"b", "a", "runs on b, 1 of 4"},
		{"d", "a", "runs on d, 1 of 4"}, {"none", "a", "4 it was another node's turn"}, {"", "b", "p4 runs on b, 4 of 4"}, // the bind of p5 wakes p4
	} {
		accepted, preferred = tt.accepted, tt.preferred
		if out := run("pod p" + string(rune('0'+i))); !strings.Contains(out, tt.want) {
			t.Errorf("with %+v: %s", tt, out)
		}
	}
}

// TestScenarioOfPreemption: evictions are part of a scenario.
func TestScenarioOfPreemption(t *testing.T) {
	got, err := Play(app.Plugins{}, configuration(t, "- schedulerName: default-scheduler\n"),
		"node n\npod low cpu=3\npod high cpu=3 priority=5\npod-gone high\nwait 10\n")
	want := "node n\npod low cpu=3\n  low runs on n, 1 of 1 nodes fit, score 417\npod high cpu=3 priority=5\n"
	if err != nil || !strings.HasPrefix(got, want) || !strings.Contains(got, "  low is evicted for high\n") ||
		!strings.Contains(got, "  high runs on n") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestMistakesInAScenario(t *testing.T) {
	file := configuration(t, "- schedulerName: default-scheduler\n")
	for script, want := range map[string]string{
		"node n\nnod m":      "line 2: there is no command nod",
		"node":               "node of what?",
		"node n cpu=much":    "node n: cpu=much",
		"pod p memory=1Gb":   "pod p: memory=1Gb",
		"pod p priority=low": `pod p: priority "low"`,
		"wait long":          `"long" is no number`,
	} {
		if _, err := Play(app.Plugins{}, file, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
}

// lopsided is a score whose column form gives other scores than its plain form.
type lopsided struct{ basic.ImageLocality }

func (lopsided) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return lopsidedScore{} }

type lopsidedScore struct{ plugin.BrokenScore }

func (lopsidedScore) Plain(cluster.Snapshot, *cluster.NodeView) int64 { return 7 }

func TestFormsThatDiffer(t *testing.T) {
	if !probe.Fails(func(t *probe.T) { CheckForms(t, lopsided{}, nil, nil) }) {
		t.Error("a column form that differs from the plain form passes")
	}
	labels := func(t *rapid.T) map[string]string {
		return map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")}
	}
	CheckForms(t, basic.TaintToleration{}, labels, labels)
}
