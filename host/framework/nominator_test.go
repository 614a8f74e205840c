// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// TestNominator: plugins see at once what they nominate, outside of PostFilter the engine receives it as an event, and
// what the engine says replaces what they see.
func TestNominator(t *testing.T) {
	w := newWorld(t, nil, filterPoints, &scripted{name: "A"})
	var posted []string
	w.profile.host.env.Post = func(ev message.Event) {
		for _, n := range ev.(message.Nominations).List {
			posted = append(posted, n.Pod.Name+" to "+n.Node)
		}
	}
	h := &handle{w.profile}
	onNode := func(node string) []string {
		list := []string{}
		for _, info := range h.NominatedPodsForNode(node) {
			list = append(list, info.GetPod().Name)
		}
		return list
	}
	expect := func(what string, on map[string][]string, events ...string) {
		t.Helper()
		for _, node := range []string{"a", "b"} {
			if got := onNode(node); fmt.Sprint(got) != fmt.Sprint(on[node]) {
				t.Errorf("%s: %v are nominated to %s, want %v", what, got, node, on[node])
			}
		}
		if !slices.Equal(posted, events) {
			t.Errorf("%s: events %q, want %q", what, posted, events)
		}
		posted = nil
	}
	log := klog.Background()
	pod := func(name, nominated string) (*v1.Pod, fwk.PodInfo) {
		p := plugintest.Pod(name)
		p.Status.NominatedNodeName = nominated
		return p, newPodInfo(w.Intake.PendingPod(p), "")
	}
	to := func(node string) *fwk.NominatingInfo {
		return &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: node}
	}
	p, pInfo := pod("p", "")
	_, qInfo := pod("q", "b")

	h.AddNominatedPod(log, pInfo, to("a"))
	h.AddNominatedPod(log, qInfo, nil)
	expect("added", map[string][]string{"a": {"p"}, "b": {"q"}}, "p to a", "q to b")

	h.AddNominatedPod(log, qInfo, to("a"))
	expect("moved", map[string][]string{"a": {"p", "q"}}, "q to a")

	h.UpdateNominatedPod(log, p, pInfo)
	expect("updated without a status", map[string][]string{"a": {"q", "p"}}, "p to a")

	_, shown := pod("p", "b")
	h.UpdateNominatedPod(log, p, shown)
	expect("the status says otherwise", map[string][]string{"a": {"q"}, "b": {"p"}}, "p to b")

	h.DeleteNominatedPodIfExists(p)
	h.DeleteNominatedPodIfExists(p)
	expect("deleted, twice", map[string][]string{"a": {"q"}}, "p to ")

	w.profile.host.nominated.Nominated("a", []*cluster.Pod{w.Intake.PendingPod(p)})
	expect("the engine says otherwise", map[string][]string{"a": {"p"}})
	w.profile.host.nominated.Nominated("a", nil)
	expect("the engine knows none", nil)

	w.profile.host.nominated.collect()
	h.AddNominatedPod(log, pInfo, to("b"))
	if got := w.profile.host.nominated.collected(); len(got) != 1 || got[0].Node != "b" {
		t.Errorf("collected in a call: %+v", got)
	}
	expect("in a call of PostFilter", map[string][]string{"b": {"p"}})
}
