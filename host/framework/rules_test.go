// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// TestBadRegistrations: each error names the plugin and what is wrong with it.
func TestBadRegistrations(t *testing.T) {
	returns := func(pl fwk.Plugin, err error) Factory {
		return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, err }
	}
	for name, tt := range map[string]struct {
		factory Factory
		want    string
	}{
		"fails":        {returns(nil, errors.New("no licence")), `plugin "A": its factory failed: no licence`},
		"returns nil":  {returns(nil, nil), `plugin "A": its factory returned no plugin`},
		"panics":       {func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { panic("oh no") }, `plugin "A": its factory: panic: oh no`},
		"events fail":  {returns(&scripted{name: "A", events: func() ([]fwk.ClusterEventWithHint, error) { return nil, errors.New("none") }}, nil), `plugin "A": EventsToRegister: none`},
		"events panic": {returns(&scripted{name: "A", events: func() ([]fwk.ClusterEventWithHint, error) { panic("oh no") }}, nil), `plugin "A": EventsToRegister: panic: oh no`},
		"unknown event": {returns(&scripted{name: "A", events: func() ([]fwk.ClusterEventWithHint, error) {
			return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: 1 << 40}}}, nil
		}}, nil), "unknown action"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewHost(Env{}).Profile("p").Add(Registration{Name: "A", Factory: tt.factory}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	hang := make(chan struct{})
	var slow Problem
	waits := func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		select {
		case <-hang:
		case <-time.After(5 * time.Second): // so that a start that waits for it ends, and fails the test
		}
		return &scripted{name: "A"}, nil
	}
	limited := func(limits config.Hosted) error {
		_, err := NewHost(Env{Limits: limits, Report: func(p Problem) {
			slow = p
			close(hang)
		}}).Profile("p").Add(Registration{Name: "A", Factory: waits}, nil)
		return err
	}
	if err := limited(config.Hosted{PluginTimeout: time.Millisecond}); err == nil ||
		err.Error() != `plugin "A": its factory has not returned within pluginTimeout, 1ms` {
		t.Errorf("a factory that hangs: %v", err)
	}
	if err := limited(config.Hosted{SlowCall: time.Millisecond}); err != nil || slow.Kind != Slow ||
		slow.Err.Error() != `plugin "A": its factory has not returned for 1ms` {
		t.Errorf("a slow factory: %v, reported as %+v", err, slow)
	}
	p := NewHost(Env{}).Profile("p")
	good := Registration{Name: "A", Factory: returns(&scripted{name: "A"}, nil)}
	if _, err := p.Add(good, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Add(good, nil); err == nil || !strings.Contains(err.Error(), `plugin "A" is in the profile twice`) {
		t.Errorf("added twice: %v", err)
	}
	if err := p.Enable("A", config.Permit); err == nil || !strings.Contains(err.Error(), "does not extend this point") {
		t.Errorf("enabled where it does not extend: %v", err)
	}
	if _, err := (Registration{Name: "A"}).Check(); err == nil {
		t.Error("a registration without a factory is accepted")
	}
}

// helpsGroups is a plugin for a point that is not hosted.
type helpsGroups struct{ scripted }

func (*helpsGroups) PodGroupPostFilter(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo,
	fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	return nil, nil
}

// TestPointsThatAreNotHosted: a profile that enables a plugin there is an error that says how to disable it.
func TestPointsThatAreNotHosted(t *testing.T) {
	pl := &helpsGroups{scripted{name: "A"}}
	p := NewHost(Env{}).Profile("p")
	if _, err := p.Add(Registration{Name: "A", Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return pl, nil
	}}, nil); err != nil {
		t.Fatal(err)
	}
	err := p.Enable("A", config.PodGroupPostFilter)
	if err == nil || !strings.Contains(err.Error(), "plugins: {podGroupPostFilter: {disabled: [{name: A}]}}") {
		t.Errorf("error %v", err)
	}
}

// TestHints: hints receive the objects, nil where there is none; an error and a panic wake the pod.
func TestHints(t *testing.T) {
	var was, is any
	answer, failure := fwk.QueueSkip, error(nil)
	pl := &scripted{name: "A", events: func() ([]fwk.ClusterEventWithHint, error) {
		return []fwk.ClusterEventWithHint{{
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
				if was, is = oldObj, newObj; answer == 7 {
					panic("oh no")
				}
				return answer, failure
			}}, {
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete},
			PreQueueingHintFn: func(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
				return fwk.PreQueueingHintResult{Pods: []types.NamespacedName{{Namespace: "ns", Name: "other"}}}, nil
			}}, {
			Event: fwk.ClusterEvent{Resource: "podgroups", ActionType: fwk.Add},
		}}, nil
	}}
	w := newWorld(t, nil, filterPoints, pl)
	wakes := adapter{w.profile.plugins[0]}.Wakes()
	if len(wakes) != 2 || wakes[0].Event != (plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel}) {
		t.Fatalf("wakes %+v", wakes)
	}
	if len(w.problems) != 1 || !strings.Contains(w.problems[0].Err.Error(), `"podgroups"`) {
		t.Errorf("an event that is not watched is reported as %+v", w.problems)
	}
	pod := w.Intake.PendingPod(plugintest.Pod("p"))
	change := plugin.Change{NewNode: w.Intake.Node(plugintest.Node("n"))}
	ask := func() plugin.Hint { return wakes[0].Hint(pod, change) }
	if got := ask(); got != plugin.SkipHint || was != nil {
		t.Errorf("hint %v, old object %v", got, was)
	}
	if node, ok := is.(*v1.Node); !ok || node.Name != "n" {
		t.Errorf("new object %v", is)
	}
	if answer = fwk.Queue; ask() != plugin.QueueHint {
		t.Error("Queue does not wake")
	}
	if answer, failure = fwk.QueueSkip, errors.New("down"); ask() != plugin.QueueHint {
		t.Error("an error does not wake")
	}
	if answer = 7; ask() != plugin.QueueHint || len(w.problems) != 2 {
		t.Errorf("a panic does not wake, or is not reported: %+v", w.problems)
	}
	if got := wakes[1].Hint(pod, change); got != plugin.SkipHint {
		t.Errorf("a pod that PreQueueingHintFn leaves out: hint %v", got)
	}
}

// TestActionsAreUpstreams: both lists of actions have the same order, so that they are converted by number.
func TestActionsAreUpstreams(t *testing.T) {
	for a := fwk.Add; a <= fwk.UpdatePodGeneratedResourceClaim; a <<= 1 {
		if plugin.Action(a).String() != a.String() {
			t.Errorf("action %d is %s, upstream's is %s", a, plugin.Action(a), a)
		}
	}
	if plugin.Action(fwk.All) != plugin.All || plugin.Action(fwk.Update) != plugin.Update {
		t.Error("All or Update differ")
	}
}

// TestGate: PreEnqueue keeps a pod out with its message, and a panic keeps it out too.
func TestGate(t *testing.T) {
	status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not yet")
	pl := &scripted{name: "A", gate: func(*v1.Pod) *fwk.Status {
		if status == nil {
			panic("oh no")
		}
		return status
	}}
	w := newWorld(t, nil, []config.Point{config.PreEnqueue}, pl)
	gate, pod := adapter{w.profile.plugins[0]}, w.Intake.PendingPod(plugintest.Pod("p"))
	if reason, ok := gate.Gated(w.Store.Snapshot(), pod); ok || reason != "not yet" {
		t.Errorf("gated for %q: %v", reason, !ok)
	}
	if status = fwk.NewStatus(fwk.Success); true {
		if _, ok := gate.Gated(w.Store.Snapshot(), pod); !ok {
			t.Error("a pod is gated after Success")
		}
	}
	status = nil
	if reason, ok := gate.Gated(w.Store.Snapshot(), pod); ok || !strings.Contains(reason, "panic: oh no") {
		t.Errorf("gated for %q: %v", reason, !ok)
	}
}

// BenchmarkSkipped is a decision at 5,000 nodes without hosted plugins, and with one that skips the pod, where all nodes
// fit and where every tenth does not.
func BenchmarkSkipped(b *testing.B) {
	skips := &scripted{name: "A",
		preFilter: func(fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
			return nil, fwk.NewStatus(fwk.Skip)
		},
		preScore: func(fwk.CycleState, []fwk.NodeInfo) *fwk.Status { return fwk.NewStatus(fwk.Skip) }}
	for _, of := range []struct {
		name    string
		plugins []fwk.Plugin
		small   int // every how many nodes the pod does not fit
	}{{"native", nil, 0}, {"hosted", []fwk.Plugin{skips}, 0}, {"native, some fit", nil, 10},
		{"hosted, some fit", []fwk.Plugin{skips}, 10}} {
		b.Run(of.name, func(b *testing.B) {
			plugins := of.plugins
			w := newWorld(b, []plugin.Plugin{fit(b)}, append(filterPoints, scorePoints...), plugins...)
			for i := range plugintest.BenchNodes {
				cpu := "64"
				if of.small > 0 && i%of.small == 1 {
					cpu = "0"
				}
				w.With(plugintest.Node("n"+string(rune('a'+i%26))+strings.Repeat("x", i/26), plugintest.Allocatable("cpu", cpu)))
			}
			s := w.Store.Snapshot()
			p := w.Intake.PendingPod(plugintest.Pod("p", plugintest.Requests("cpu", "1m")))
			filler := w.Intake.Pod(plugintest.Pod("f", plugintest.Requests("cpu", "1m"), plugintest.OnNode("na")))
			b.ReportAllocs()
			for b.Loop() {
				w.Store.SetPod(filler) // a row changes between two decisions
				w.placer.Place(s, p, nominations{}, func(int) int { return 0 })
				w.Store.DeletePod(cluster.UID("uid-f"))
			}
		})
	}
}
