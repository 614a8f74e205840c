// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// allPointsOfTest are the points of scripted plugins that a decision calls.
var allPointsOfTest = []config.Point{config.PreFilter, config.Filter, config.PreScore, config.Score}

// labelled gives a pod a label.
func labelled(p *v1.Pod) { p.Labels = map[string]string{"v": "1"} }

// relabel modifies the labels of a node in place.
func relabel(n fwk.NodeInfo) { n.Node().Labels["v"] = "modified" }

// TestModifiedLoans: a plugin that modifies an object that was lent to it is reported, with the object, the plugin and
// the extension point. A plugin that modifies copies is not, and nor is any plugin if changes are not checked.
func TestModifiedLoans(t *testing.T) {
	var w *world
	lister := func(name string) fwk.NodeInfo {
		info, err := (&handle{w.profile}).SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	for name, tt := range map[string]struct {
		a    scripted
		want string // of the only problem; empty for none
	}{
		"well-behaved": {a: scripted{
			preFilter: func(state fwk.CycleState, p *v1.Pod, all []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
				state.Write("own", sum(1))
				state.Write("own", sum(2))
				p.DeepCopy().Labels["v"] = "modified"
				relabel(&NodeInfo{node: all[0].Node().DeepCopy()})
				return nil, nil
			},
			filter: func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				n = n.Snapshot()
				for _, amount := range n.GetPods()[0].GetPod().Spec.Containers[0].Resources.Requests {
					_ = amount.String()
				}
				return fwk.AsStatus(n.RemovePod(klog.Background(), n.GetPods()[0].GetPod()))
			}}},
		"pod at PreFilter": {scripted{
			preFilter: func(_ fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
				p.Labels["v"] = "modified"
				return nil, nil
			}}, `A preFilter: plugin "A" at preFilter: it modified the v1.Pod ns/p, which was lent to it`},
		"ports of a node at PreFilter": {scripted{
			preFilter: func(_ fwk.CycleState, _ *v1.Pod, all []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
				all[1].GetUsedPorts().Add("", "TCP", 80)
				return nil, nil
			}}, `A preFilter: plugin "A" at preFilter: it modified the NodeInfo of node b, which was lent to it`},
		"pods of a node at Filter": {scripted{
			filter: func(_ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				if n.Node().Name == "b" {
					return fwk.AsStatus(n.RemovePod(klog.Background(), n.GetPods()[0].GetPod()))
				}
				return nil
			}}, `A filter: plugin "A" at filter: it modified the NodeInfo of node b, which was lent to it`},
		"another node at Filter": {scripted{
			filter: func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				if n.Node().Name == "b" {
					relabel(lister("a"))
				}
				return nil
			}}, `A filter: plugin "A" at filter: it modified the object of node a, which was lent to it`},
		"resources of a node at PreScore": {scripted{
			preScore: func(_ fwk.CycleState, all []fwk.NodeInfo) *fwk.Status {
				all[0].GetAllocatable().SetMaxResource(plugintest.ResourceList("cpu", "100"))
				return nil
			}}, `A preScore: plugin "A" at preScore: it modified the NodeInfo of node a, which was lent to it`},
		"a pod on a node at Score": {scripted{
			score: func(_ fwk.CycleState, n fwk.NodeInfo) (int64, *fwk.Status) {
				if n.Node().Name == "a" {
					n.GetPods()[0].GetPod().Spec.NodeName = "b"
				}
				return 0, nil
			}}, `A score: plugin "A" at score: it modified the v1.Pod ns/on-a on node a, which was lent to it`},
		"another node at Score": {scripted{
			score: func(_ fwk.CycleState, n fwk.NodeInfo) (int64, *fwk.Status) {
				if n.Node().Name == "b" {
					relabel(lister("a"))
				}
				return 0, nil
			}, normalize: func(fwk.NodeScoreList) *fwk.Status { return nil }},
			`A or B score: plugin "A" at score or plugin "B" at score: it modified the object of node a, which was lent to it`},
		"data of another plugin": {scripted{
			score: func(state fwk.CycleState, n fwk.NodeInfo) (int64, *fwk.Status) {
				if n.Node().Name == "b" {
					state.Write("of B", sum(7))
				}
				return 0, nil
			}}, `A score: plugin "A" at score: it replaced data of plugin "B" in the CycleState, key "of B"`},
		"data of another plugin in a copy": {scripted{
			score: func(state fwk.CycleState, n fwk.NodeInfo) (int64, *fwk.Status) {
				if n.Node().Name == "b" {
					state.Clone().Delete("of B")
				}
				return 0, nil
			}}, `A score: plugin "A" at score: it deleted data of plugin "B" in the CycleState, key "of B"`},
	} {
		for _, check := range []bool{true, false} {
			tt.a.name = "A"
			b := &scripted{name: "B",
				preFilter: func(state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
					state.Write("of B", sum(1))
					return nil, nil
				}}
			w = newWorld(t, nil, allPointsOfTest, &tt.a, b)
			w.profile.host.env.Limits.Check, w.profile.host.infos.check = check, check
			for _, node := range []string{"a", "b"} {
				w.With(plugintest.Node(node, plugintest.Labels("v", "1")), plugintest.Pod("on-"+node,
					plugintest.Requests("cpu", "0.1"), plugintest.OnNode(node)))
			}
			out, _ := w.place(plugintest.Pod("p", labelled))
			if out.Err != nil {
				t.Errorf("%s: %v", name, out.Err)
			}
			want := tt.want
			if !check {
				want = ""
			}
			if got := listed(w.problems); got != want {
				t.Errorf("%s, checked: %v: reported\n%s, want\n%s", name, check, got, want)
			}
		}
	}
}

// listed returns the problems of kind Modified, one a line.
func listed(problems []Problem) string {
	var lines []string
	for _, p := range problems {
		if p.Kind == Modified {
			lines = append(lines, p.Plugin+" "+string(p.Point)+": "+p.Err.Error())
		}
	}
	return strings.Join(lines, "\n")
}

// modifies is a plugin that modifies pods that are lent to it.
type modifies struct {
	binds
	modify func(*v1.Pod)
}

func (m *modifies) Less(_, q fwk.QueuedEntityInfo) bool {
	m.modify(q.(queued).GetPodInfo().GetPod())
	return false
}

func (m *modifies) Reserve(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	m.modify(p)
	return nil
}

func (m *modifies) PreBind(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ string) *fwk.Status {
	m.modify(p)
	return nil
}

// TestModifiedOutsideOfDecisions: gates, hints, Less, Reserve and PreBind are checked too.
func TestModifiedOutsideOfDecisions(t *testing.T) {
	modify := func(p *v1.Pod) { p.Labels["v"] += "x" }
	pl := &modifies{binds: binds{scripted: scripted{name: "A",
		gate: func(p *v1.Pod) *fwk.Status { modify(p); return nil },
		events: func() ([]fwk.ClusterEventWithHint, error) {
			return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add},
				QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, _, is any) (fwk.QueueingHint, error) {
					is.(*v1.Node).Labels["v"] = "modified"
					return fwk.Queue, nil
				}}}, nil
		}}}, modify: modify}
	w := newWorld(t, nil, []config.Point{config.PreEnqueue, config.QueueSort, config.Reserve, config.PreBind}, pl)
	w.nodes("a")
	a := adapter{w.profile.plugins[0]}
	p := w.Intake.PendingPod(plugintest.Pod("p", labelled))
	expect := func(what, want string) {
		t.Helper()
		if got := listed(w.problems); got != want {
			t.Errorf("%s: reported\n%s, want\n%s", what, got, want)
		}
		w.problems = nil
	}
	a.Gated(w.Store.Snapshot(), p)
	expect("PreEnqueue", `A preEnqueue: plugin "A" at preEnqueue: it modified the v1.Pod ns/p, which was lent to it`)
	a.Wakes()[0].Hint(p, plugin.Change{NewNode: w.Intake.Node(plugintest.Node("n", plugintest.Labels("v", "1")))})
	expect("hint", `A preEnqueue: plugin "A" at preEnqueue: it modified the v1.Node n, which was lent to it`)
	a.Before(p, w.Intake.PendingPod(plugintest.Pod("q", labelled)))
	expect("Less", `A queueSort: plugin "A" at queueSort: it modified the v1.Pod ns/q, which was lent to it`)
	w.reserve(p, "a")
	expect("Reserve", `A reserve: plugin "A" at reserve: it modified the v1.Pod ns/p, which was lent to it`)
	if _, err := w.profile.host.Bind(t.Context(), p.Ref(), "a"); err == nil {
		t.Error("bound by none")
	}
	expect("PreBind", `A preBind: plugin "A" at preBind: it modified the v1.Pod ns/p, which was lent to it`)
}

// TestUnchangingLister: the lister that upstream's DefaultPreemption reads in PostFilter has the same nodes, and refuses
// to be changed.
func TestUnchangingLister(t *testing.T) {
	w := newWorld(t, nil, []config.Point{config.Filter}, &scripted{name: "A"}).nodes("a", "b")
	w.place(plugintest.Pod("p"))
	s := (&handle{w.profile}).MutableSnapshotSharedLister()
	if _, err := s.NodeInfos().Get("b"); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{ // order: each is compared
		"StartMutations": s.StartMutations(), "EndMutations": s.EndMutations(),
		"AddPod": s.AddPod(nil, "a"), "RemovePod": s.RemovePod(klog.Background(), nil, "a"),
	} {
		if !errors.Is(err, ErrAbsent) {
			t.Errorf("%s: error %v, want ErrAbsent", what, err)
		}
	}
}
