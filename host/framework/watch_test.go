// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// at is a time of looks.
func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// TestSlowCalls: a call that is still the same one at a later look is named once; calls that follow each other are
// not.
func TestSlowCalls(t *testing.T) {
	var w *world
	looks := func() {}
	pl := &scripted{name: "A", filter: func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
		looks()
		return nil
	}}
	w = newWorld(t, nil, filterPoints, pl).nodes("a", "b")
	w.profile.host.watch.limits = config.Hosted{SlowCall: time.Second}
	second := 0
	looks = func() { second++; w.profile.host.watch.look(at(second)) } // a look in each call
	w.place(plugintest.Pod("p"))
	if len(w.problems) != 0 {
		t.Fatalf("calls of a moment each are slow: %+v", w.problems)
	}
	looks = func() {
		for range 4 {
			second++
			w.profile.host.watch.look(at(second))
		}
	}
	w.place(plugintest.Pod("p"))
	w.profile.host.watch.look(at(100))
	w.profile.host.watch.look(at(200))
	if len(w.problems) != 2 { // one for each node
		t.Fatalf("%d calls are slow: %+v", len(w.problems), w.problems)
	}
	if p := w.problems[0]; p.Kind != Slow || p.Plugin != "A" || p.Point != config.Filter ||
		!strings.Contains(p.Err.Error(), `plugin "A" at filter: the scheduling loop has waited for a call for 1s`) {
		t.Errorf("a slow call is reported as %+v: %v", p, p.Err)
	}
}

// TestPluginTimeout: the context of a call that takes too long ends, and its answer does not count.
func TestPluginTimeout(t *testing.T) {
	var w *world
	var cause error
	pl := &slowFilter{scripted: scripted{name: "A"}}
	w = newWorld(t, nil, filterPoints, pl).nodes("a")
	w.profile.host.watch.limits = config.Hosted{PluginTimeout: 2 * time.Second}
	pl.filterWith = func(ctx context.Context) *fwk.Status {
		for second := range 4 {
			if ctx.Err() != nil {
				cause = context.Cause(ctx)
				break
			}
			w.profile.host.watch.look(at(second))
		}
		return nil
	}
	out, _ := w.place(plugintest.Pod("p"))
	if out.Err == nil || !strings.Contains(out.Err.Error(), `plugin "A" at filter: the call took longer than pluginTimeout, 2s`) {
		t.Errorf("error %v", out.Err)
	}
	if cause == nil {
		t.Error("the context did not end")
	}
	if len(w.problems) != 1 || w.problems[0].Kind != TimedOut {
		t.Errorf("problems %+v", w.problems)
	}
	pl.filterWith = func(context.Context) *fwk.Status { return nil }
	if out, _ := w.place(plugintest.Pod("p")); out.Node == cluster.NoNode {
		t.Error("the next call fails too")
	}
}

// slowFilter is a plugin whose Filter reads its context.
type slowFilter struct {
	scripted
	filterWith func(context.Context) *fwk.Status
}

func (f *slowFilter) Filter(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
	return f.filterWith(ctx)
}

// binds is a plugin with PreBind and Bind.
type binds struct {
	scripted
	flight  *fwk.Status // of PreBindPreFlight
	preBind func(context.Context) *fwk.Status
	bound   bool
}

func (b *binds) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult,
	*fwk.Status) {
	return nil, b.flight
}

func (b *binds) PreBind(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ string) *fwk.Status {
	return b.preBind(ctx)
}

func (b *binds) Bind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	b.bound = true
	return nil
}

// TestBindIsCancelled: PreBind ends when its node is deleted, when a plugin cancels it, and when the scheduler's context
// ends; then Bind is not called. After PreBind a plugin cannot cancel it.
func TestBindIsCancelled(t *testing.T) {
	var w *world
	var h *handle
	uid := plugintest.Pod("p").UID
	for name, tt := range map[string]struct {
		during func(cancel context.CancelFunc) // PreBind
		want   string                          // empty if the pod is bound
	}{
		"nothing": {during: func(context.CancelFunc) {}},
		"node gone": {func(context.CancelFunc) { w.profile.host.Observe(message.NodeGone{Name: "a"}) },
			`binding pod ns/p: node "a" is gone`},
		"another node gone": {during: func(context.CancelFunc) { w.profile.host.Observe(message.NodeGone{Name: "b"}) }},
		"plugin": {func(context.CancelFunc) {
			if !h.GetPodInPreBind(uid).CancelPod("another pod needs the node") {
				t.Error("not cancelled")
			}
		}, "another pod needs the node"},
		"plugin, too late": {during: func(context.CancelFunc) {
			in := h.GetPodInPreBind(uid)
			if !in.MarkPrebound() || in.CancelPod("late") || h.GetPodInPreBind(uid) != nil {
				t.Error("cancelled after PreBind")
			}
		}},
		"lease lost": {func(cancel context.CancelFunc) { cancel() }, "the lease is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := &binds{scripted: scripted{name: "A"}}
			w = newWorld(t, nil, []config.Point{config.PreBind, config.Bind}, pl).nodes("a", "b")
			h = &handle{w.profile}
			p := w.Intake.PendingPod(plugintest.Pod("p"))
			got := w.reserve(p, "a")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pl.preBind = func(ctx context.Context) *fwk.Status {
				tt.during(cancel)
				if ctx.Err() != nil && name == "lease lost" {
					return fwk.AsStatus(errors.New("the lease is lost"))
				}
				return nil // whatever the context says
			}
			_, err := w.profile.host.Bind(ctx, p.Ref(), "a")
			if pl.bound != (tt.want == "") {
				t.Errorf("Bind is called: %v", pl.bound)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if h.GetPodInPreBind(uid) != nil {
				t.Error("it is in PreBind after the bind")
			}
			got.Hold.Release(nil, false)
		})
	}
}

// reserve assumes a pod on a node and reserves for it.
func (w *world) reserve(p *cluster.Pod, node string) plugin.Reserved {
	w.Store.Begin()
	defer w.Store.Commit()
	row, _ := w.Store.Snapshot().Find(node)
	trial := w.Store.Trial()
	trial.Assume(p, row)
	defer trial.Commit()
	return w.profile.Reserver().Reserve(trial, p, row)
}

// TestWaitOfLessThanNothing: a pod whose Permit waits for a negative time is rejected at once, and one for too long
// after the longest time.
func TestWaitOfLessThanNothing(t *testing.T) {
	for _, tt := range []struct {
		wait time.Duration
		ends record.Time // 0 for at once
	}{{-1, 0}, {24 * time.Hour, 15 * 60 * record.Second}} {
		pl := &permits{scripted: scripted{name: "A"}, wait: tt.wait}
		w := newWorld(t, nil, []config.Point{config.Permit}, pl).nodes("a")
		p := w.Intake.PendingPod(plugintest.Pod("p"))
		got := w.reserve(p, "a")
		s := w.Store.Snapshot()
		if tt.ends > 0 {
			if r := got.Hold.Ready(s, tt.ends-1); r.Again != tt.ends || r.Reject != "" {
				t.Errorf("wait %v: before the end %+v", tt.wait, r)
			}
		}
		if r := got.Hold.Ready(s, tt.ends); r.By != "A" || !strings.Contains(r.Reject, "rejected due to timeout") {
			t.Errorf("wait %v: at the end %+v", tt.wait, r)
		}
	}
}

// permits is a plugin whose Permit waits.
type permits struct {
	scripted
	wait  time.Duration
	ended <-chan struct{} // closed when the context of Permit ends
	early bool            // it had ended during the call
}

func (p *permits) Permit(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	p.ended, p.early = ctx.Done(), ctx.Err() != nil
	return fwk.NewStatus(fwk.Wait), p.wait
}

// TestContextOfPermitEnds: the contexts of all plugins at Permit end with the decision, although the pod waits.
func TestContextOfPermitEnds(t *testing.T) {
	a := &permits{scripted: scripted{name: "A"}, wait: time.Minute}
	b := &permits{scripted: scripted{name: "B"}, wait: time.Minute}
	w := newWorld(t, nil, []config.Point{config.Permit}, a, b).nodes("a")
	w.reserve(w.Intake.PendingPod(plugintest.Pod("p")), "a")
	for _, pl := range []*permits{a, b} {
		select {
		case <-pl.ended:
		default:
			t.Errorf("the context of plugin %s goes on", pl.name)
		}
		if pl.early {
			t.Errorf("the context of plugin %s had ended when it was called", pl.name)
		}
	}
}

// TestAllowByAnyone: Allow for a plugin that the pod does not wait for, twice, and after the pod was rejected or has left
// has no effect, and nor has a second Reject.
func TestAllowByAnyone(t *testing.T) {
	waiting := func() (*world, *handle, fwk.WaitingPod, plugin.Reserved) {
		a := &permits{scripted: scripted{name: "A"}, wait: time.Minute}
		b := &permits{scripted: scripted{name: "B"}, wait: time.Minute}
		w := newWorld(t, nil, []config.Point{config.Permit}, a, b).nodes("a")
		p := w.Intake.PendingPod(plugintest.Pod("p"))
		got := w.reserve(p, "a")
		h := &handle{w.profile}
		return w, h, h.GetWaitingPod(types.UID(p.UID)), got
	}
	w, h, pod, got := waiting()
	for _, name := range []string{"A", "A", "unknown", ""} {
		pod.Allow(name)
	}
	if r := got.Hold.Ready(w.Store.Snapshot(), 0); r.Ready || !slices.Equal(pod.GetPendingPlugins(), []string{"B"}) {
		t.Errorf("allowed by A, twice, and by unknown names: %+v, waits for %v", r, pod.GetPendingPlugins())
	}
	if !pod.Reject("A", "no") || pod.Reject("B", "never") || pod.Preempt("B", "never") {
		t.Error("only the first Reject counts")
	}
	pod.Allow("B")
	if r := got.Hold.Ready(w.Store.Snapshot(), 0); r.Ready || r.By != "A" || r.Reject != "no" {
		t.Errorf("allowed after it was rejected: %+v", r)
	}
	if h.RejectWaitingPod(pod.GetPod().UID) {
		t.Error("a pod that was rejected still waits")
	}
	w, h, pod, got = waiting()
	got.Hold.Release(nil, false)
	pod.Allow("A")
	pod.Allow("B")
	if r := got.Hold.Ready(w.Store.Snapshot(), 0); r.Ready || h.GetWaitingPod(pod.GetPod().UID) != nil {
		t.Errorf("allowed after it has left: %+v", r)
	}
}
