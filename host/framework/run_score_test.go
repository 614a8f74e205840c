// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// newScoring is a cluster with NodeResourcesFit (weight 2) and a hosted scorer (weight 3), in a decision about a pod.
func newScoring(t *testing.T, pl *scripted) (*world, *handle, *v1.Pod, []fwk.NodeInfo) {
	t.Helper()
	native := fit(t)
	w := newWorld(t, []plugin.Plugin{native}, append(slices.Clone(filterPoints), scorePoints...), pl).nodes("a", "b", "c")
	w.profile.RunFilters([]plugin.Filter{native.(plugin.Filter), adapter{w.profile.plugins[0]}})
	w.profile.RunScorers([]place.Scorer{{Scorer: native.(plugin.Scorer), Weight: 2},
		{Scorer: adapter{w.profile.plugins[0]}, Weight: 3}})
	w.With(plugintest.Pod("big", plugintest.Requests("cpu", "4"), plugintest.OnNode("b")))
	pod := plugintest.Pod("p", plugintest.Requests("cpu", "2"))
	w.place(pod)
	var nodes []fwk.NodeInfo
	for _, name := range []string{"c", "b"} { // another order than that of the rows
		info, err := w.profile.host.infos.named(name)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, info)
	}
	return w, &handle{w.profile}, pod, nodes
}

// TestRunScores: Handle runs PreScore and Score of native and hosted plugins on nodes that a plugin chose or changed:
// raw, normalised and weighted scores, in the order of the nodes, without the plugins that skip the pod.
func TestRunScores(t *testing.T) {
	skips := false
	pl := &scripted{name: "A",
		preScore: func(_ fwk.CycleState, nodes []fwk.NodeInfo) *fwk.Status {
			if skips {
				return fwk.NewStatus(fwk.Skip)
			}
			return nil
		},
		score: byName(1, 20, 300),
		normalize: func(list fwk.NodeScoreList) *fwk.Status {
			for i := range list {
				list[i].Score /= 10
			}
			return nil
		}}
	w, h, pod, nodes := newScoring(t, pl)
	text := func(state fwk.CycleState, nodes []fwk.NodeInfo) string {
		t.Helper()
		if status := h.RunPreScorePlugins(t.Context(), state, pod, nodes); !status.IsSuccess() {
			t.Fatal(status)
		}
		scores, status := h.RunScorePlugins(t.Context(), state.Clone(), pod, nodes)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		return fmt.Sprint(scores)
	}
	// 8 CPUs: c would use 2 of them, b 6, and without big 2.
	want := "[{c [{NodeResourcesFit 86} {A 300}] [{NodeResourcesFit 172} {A 90}] 262 0} " +
		"{b [{NodeResourcesFit 61} {A 20}] [{NodeResourcesFit 122} {A 6}] 128 0}]"
	if got := text(w.profile.current.state.Clone(), nodes); got != want {
		t.Errorf("scores %s, want %s", got, want)
	}
	without := nodes[1].Snapshot()
	if err := without.RemovePod(klog.Background(), nodes[1].GetPods()[0].GetPod()); err != nil {
		t.Fatal(err)
	}
	if got := text(w.profile.current.state.Clone(), []fwk.NodeInfo{nodes[0], without}); !strings.Contains(got, "{b [{NodeResourcesFit 86}") {
		t.Errorf("scores without a pod: %s", got)
	}
	skips = true
	if got := text(w.profile.current.state.Clone(), nodes); strings.Contains(got, "{A ") {
		t.Errorf("scores of a plugin that skips the pod: %s", got)
	}
	// Without PreScore, as for a plugin that scores without preparation.
	scores, status := h.RunScorePlugins(t.Context(), NewCycleState(), pod, nodes)
	if !status.IsSuccess() || len(scores) != 2 || scores[0].TotalScore != 262 {
		t.Errorf("without PreScore: %v, %v", scores, status)
	}
}

// TestRunScoresFail: each failure has upstream's text.
func TestRunScoresFail(t *testing.T) {
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
		"range": {scripted{score: byName(0, 101, 0)}, "applying score defaultWeights on Score plugins: " +
			`plugin "A" returns an invalid score 101, it should in the range of [0, 100] after normalizing`},
		"panic": {scripted{score: func(fwk.CycleState, fwk.NodeInfo) (int64, *fwk.Status) { panic("oh no") }},
			`running Score plugins: plugin "A" failed with: plugin "A" at score: panic: oh no`},
	} {
		t.Run(name, func(t *testing.T) {
			pl := tt.plugin
			pl.name = "A"
			_, h, pod, nodes := newScoring(t, &pl)
			state := NewCycleState()
			status := h.RunPreScorePlugins(t.Context(), state, pod, nodes)
			if status.IsSuccess() {
				_, status = h.RunScorePlugins(t.Context(), state, pod, nodes)
			}
			if status.Code() != fwk.Error || status.Message() != tt.want {
				t.Errorf("%s: %q, want %q", status.Code(), status.Message(), tt.want)
			}
		})
	}
	_, h, _, nodes := newScoring(t, &scripted{name: "A"})
	if status := h.RunPreScorePlugins(t.Context(), NewCycleState(), plugintest.Pod("elsewhere"), nodes); status.Code() != fwk.Error {
		t.Errorf("an unknown pod: %v", status)
	}
}

// named is a native Reserver that only has a name.
type named struct {
	plugin.Reserver
	name string
}

func (n named) Name() string { return n.name }

// TestRunReserve: Handle runs Reserve of hosted plugins up to the first that does not accept, and Unreserve in reverse
// order. For a pod for which a native plugin would reserve something the status is an error, and nothing is called.
func TestRunReserve(t *testing.T) {
	var log []string
	answer := map[string]*fwk.Status{} // plugin -> status
	make := func(name string) fwk.Plugin {
		return &scripted{name: name, log: &log, reserve: func(string) *fwk.Status { return answer[name] }}
	}
	w := newWorld(t, nil, []config.Point{config.Reserve}, make("A"), make("B")).nodes("a")
	w.profile.RunReservers([]plugin.Reserver{named{name: config.VolumeBinding}, named{name: config.DynamicResources}})
	h, state := &handle{w.profile}, NewCycleState()
	pod := plugintest.Pod("p")
	run := func(p *v1.Pod) (status *fwk.Status, calls string) {
		log = nil
		status = h.RunReservePluginsReserve(t.Context(), state, p, "a")
		return status, strings.Join(log, ", ")
	}
	if status, calls := run(pod); !status.IsSuccess() || calls != "A Reserve a, B Reserve a" {
		t.Errorf("%v, calls %s", status, calls)
	}
	answer["A"] = fwk.NewStatus(fwk.Unschedulable, "no")
	if status, calls := run(pod); status.Code() != fwk.Unschedulable || status.Plugin() != "A" || calls != "A Reserve a" {
		t.Errorf("a rejection: %v by %q, calls %s", status, status.Plugin(), calls)
	}
	answer["A"] = fwk.AsStatus(errors.New("down"))
	if status, _ := run(pod); status.Message() != `running Reserve plugin "A": down` {
		t.Errorf("an error: %v", status)
	}
	log = nil
	h.RunReservePluginsUnreserve(t.Context(), state, pod, "a")
	if want := []string{"B Unreserve a", "A Unreserve a"}; !slices.Equal(log, want) {
		t.Errorf("Unreserve calls %v, want %v", log, want)
	}
	volume, claim := pod.DeepCopy(), pod.DeepCopy()
	volume.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	claim.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "c"}}
	for by, p := range map[string]*v1.Pod{config.VolumeBinding: volume, config.DynamicResources: claim} {
		status, calls := run(p)
		if !errors.Is(status.AsError(), ErrAbsent) || !strings.Contains(status.Message(), by) || calls != "" {
			t.Errorf("a pod of %s: %v, calls %s", by, status, calls)
		}
	}
}
