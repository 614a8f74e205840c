// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// TestRunFilters: Handle runs native and hosted filters in the order of the profile on nodes that a plugin changed, with
// the CycleState that it is given, also from several goroutines.
func TestRunFilters(t *testing.T) {
	asks := &scripted{name: "A",
		add: func(state fwk.CycleState, other fwk.PodInfo, sign int) *fwk.Status {
			if other.GetPod().Name == "broken" {
				return fwk.NewStatus(fwk.Error, "cannot count it")
			}
			state.Write("sum", sum(sumOf(state)+sign))
			return nil
		},
		filter: func(state fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			if n := sumOf(state); n > 1 {
				return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("%d are too many", n))
			}
			return nil
		}}
	w := newWorld(t, []plugin.Plugin{fit(t)}, filterPoints, asks).nodes("a")
	w.profile.RunFilters(append([]plugin.Filter{fit(t).(plugin.Filter)}, adapter{w.profile.plugins[0]}))
	low, high := int32(1), int32(9)
	w.With(plugintest.Pod("big", plugintest.Requests("cpu", "8"), plugintest.OnNode("a")))
	pod := plugintest.Pod("p", plugintest.Requests("cpu", "4"))
	pod.Spec.Priority = &low
	w.place(pod)
	h, d := &handle{w.profile}, w.profile.current
	info, err := w.profile.host.infos.named("a")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, status *fwk.Status, code fwk.Code, by, text string) {
		t.Helper()
		plugin := ""
		if status != nil {
			plugin = status.Plugin()
		}
		if status.Code() != code || plugin != by || !strings.Contains(status.Message(), text) {
			t.Errorf("%s: %s by %q: %q", what, status.Code(), plugin, status.Message())
		}
	}
	ctx, log := t.Context(), klog.Background()
	expect("as it is", h.RunFilterPlugins(ctx, d.state, pod, info), fwk.Unschedulable, "NodeResourcesFit",
		"Insufficient cpu")
	without := info.Snapshot()
	if err := without.RemovePod(log, info.GetPods()[0].GetPod()); err != nil {
		t.Fatal(err)
	}
	expect("without big", h.RunFilterPlugins(ctx, d.state, pod, without), fwk.Success, "", "")
	expect("as it is, again", h.RunFilterPlugins(ctx, d.state, pod, info), fwk.Unschedulable, "NodeResourcesFit", "")

	other := func(name string, priority *int32) fwk.PodInfo {
		o := plugintest.Pod(name, plugintest.Requests("cpu", "6"))
		o.Spec.Priority = priority
		return newPodInfo(w.Intake.PendingPod(o), "")
	}
	to := &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "a"}
	h.AddNominatedPod(log, other("less", nil), to)
	expect("a nominated pod of lower priority", h.RunFilterPluginsWithNominatedPods(ctx, d.state, pod, without),
		fwk.Success, "", "")
	h.AddNominatedPod(log, other("more", &high), to)
	expect("a nominated pod of higher priority", h.RunFilterPluginsWithNominatedPods(ctx, d.state, pod, without),
		fwk.Unschedulable, "NodeResourcesFit", "Insufficient cpu")
	expect("without nominated pods", h.RunFilterPlugins(ctx, d.state, pod, without), fwk.Success, "", "")

	dry := d.state.Clone()
	for range 2 {
		expect("AddPod", h.RunPreFilterExtensionAddPod(ctx, dry, pod, other("more", &high), without), fwk.Success, "", "")
	}
	h.Parallelizer().Until(ctx, 20, func(int) {
		expect("two pods too many", h.RunFilterPlugins(ctx, dry, pod, without), fwk.UnschedulableAndUnresolvable, "A",
			"2 are too many")
		expect("another state", h.RunFilterPlugins(ctx, d.state, pod, without), fwk.Success, "", "")
	}, "")
	expect("RemovePod", h.RunPreFilterExtensionRemovePod(ctx, dry, pod, other("more", &high), without), fwk.Success, "", "")
	expect("one pod", h.RunFilterPlugins(ctx, dry, pod, without), fwk.Success, "", "")
	expect("AddPod fails", h.RunPreFilterExtensionAddPod(ctx, dry, pod, other("broken", nil), without), fwk.Error, "",
		`running AddPod on PreFilter plugin "A": cannot count it`)

	skipping := d.state.clone()
	skipping.filters = append(skipping.filters, "A")
	h.RunPreFilterExtensionAddPod(ctx, skipping, pod, other("more", &high), without)
	if n := sumOf(skipping); n != 0 {
		t.Errorf("AddPod of a plugin that skips the pod is called: %d", n)
	}

	expect("another pod", h.RunFilterPlugins(ctx, d.state, plugintest.Pod("elsewhere"), info), fwk.Error, "", "elsewhere")
	gone := info.Snapshot()
	gone.SetNode(plugintest.Node("gone"))
	expect("another node", h.RunFilterPlugins(ctx, d.state, pod, gone), fwk.Error, "", `node "gone" is not in the cluster`)
}

// sum is a number in a CycleState.
type sum int

// Clone copies the number.
func (s sum) Clone() fwk.StateData { return s }

func sumOf(state fwk.CycleState) int {
	data, err := state.Read("sum")
	if err != nil {
		return 0
	}
	return int(data.(sum))
}
