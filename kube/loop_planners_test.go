// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/kube/instances"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// accepting is foreign code that accepts all nodes; for "failing" it fails, and for
// "slow" it takes half a second.
type accepting struct{}

func (accepting) Takes(*cluster.Pod) bool { return true }
func (accepting) Filter(p *cluster.Pod, _ []string) (map[string]place.ForeignRejection, error) {
	switch p.Name {
	case "failing":
		return nil, errors.New("no answer")
	case "slow":
		time.Sleep(time.Second / 2)
	}
	return nil, nil
}
func (accepting) Score(*cluster.Pod, []string) []place.ForeignScore { return nil }
func (accepting) Preempts(*cluster.Pod) bool                        { return false }
func (accepting) Preempt(*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool),
) ([]place.ForeignVictims, error) {
	return nil, nil
}
func (accepting) Binder(*cluster.Pod) string { return "" }

// planned is a loop with two local planners on one node, which binds nothing by itself.
type planned struct {
	*Loop
	kept    *keptEffects
	pods    cache.ReflectorStore
	value   func(series string, labels ...string) float64
	decided []record.Decision // that observers have seen
}

func planners(t *testing.T, change func(*LoopConfig), scenario func(*planned)) {
	synctest.Test(t, func(t *testing.T) {
		in := intake.NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
		w := &planned{kept: &keptEffects{}, pods: in.PodStore()}
		w.pods.Replace(nil, "1")
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("100")}
		in.NodeStore().Replace([]any{n}, "1")
		configured := func() (engine.Config, error) {
			profile := engine.DefaultProfile("default-scheduler")
			profile.Foreign = accepting{}
			return engine.Config{Seed: 1, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
				InitialBackoff: record.Second, MaxBackoff: record.Second, UnschedulableTimeout: 300 * record.Second,
				Instances: &engine.Instances{Name: "arbiter", Epoch: instances.Epoch,
					Policy: shard.Policy{Lend: shard.LendAuto}}}, nil
		}
		arbiter, _ := configured()
		e := engine.New(arbiter)
		cfg := LoopConfig{Engine: e, Inbox: in, Executor: w.kept, SchedulerNames: []string{"default-scheduler"},
			Planners: instances.New(instances.Config{Planners: 2, Engine: configured, Snapshot: e.LogSnapshot,
				Now: in.Clock().Now}),
			Observers: []Observer{func(_ engine.Event, effects []engine.Effect) {
				for _, f := range effects {
					if f, is := f.(engine.Decided); is {
						w.decided = append(w.decided, f.Decision)
					}
				}
			}}}
		if change != nil {
			change(&cfg)
		}
		m, reg := counted()
		cfg.Metrics = m
		w.value = func(series string, labels ...string) float64 { return kubetest.Value(t, reg, series, labels...) }
		w.Loop = NewLoop(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() { w.Run(ctx); ended <- struct{}{} }()
		go func() { cfg.Planners.Run(ctx); ended <- struct{}{} }()
		synctest.Wait()
		scenario(w)
		cancel()
		<-ended
		<-ended
	})
}

// pod creates a pod. One of the name "rejected" selects a node that does not exist.
func (w *planned) pod(name string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
		ResourceVersion: "5"}, Spec: v1.PodSpec{SchedulerName: "default-scheduler"}}
	if name == "rejected" {
		p.Spec.NodeSelector = map[string]string{"zone": "none"}
	}
	w.pods.Add(p)
}

func (w *planned) run(pods ...string) {
	for _, name := range pods {
		w.pod(name)
	}
	w.Decide(true)
	time.Sleep(time.Second / 10)
	synctest.Wait()
}

func (w *planned) verdicts(name string) (list []string) {
	for _, d := range w.decided {
		if d.Pod.Name == name {
			list = append(list, fmt.Sprint(d.Instance, " ", d.Verdict))
		}
	}
	return list
}

// What planners propose is bound, counted, and a decision of the loop.
func TestPlannersPropose(t *testing.T) {
	planners(t, nil, func(w *planned) {
		w.run("a", "b", "c")
		if len(w.kept.binds) != 3 {
			t.Fatalf("%d binds", len(w.kept.binds))
		}
		if got := w.value("kumiki_proposals_total", "verdict=taken"); got != 3 {
			t.Errorf("%v proposals are counted as taken", got)
		}
		if got := w.verdicts("a"); !slices.Equal(got, []string{" placed"}) {
			t.Errorf("decisions %q", got)
		}
	})
}

// An attempt of a planner that places nothing is seen as one of the loop, with the planner's name, and counted as
// upstream counts attempts. Fault: `kumiki why` has no last try for a unit that waits at a planner.
func TestFailedAttemptsOfPlanners(t *testing.T) {
	planners(t, nil, func(w *planned) {
		w.run("rejected", "failing")
		for name, verdict := range map[string]string{"rejected": "unschedulable", "failing": "error"} {
			got := w.verdicts(name)
			if len(got) == 0 || got[0] != "local-0 "+verdict && got[0] != "local-1 "+verdict {
				t.Errorf("pod %s: decisions %q, want %s by a planner", name, got, verdict)
			}
			if n := w.value("scheduler_schedule_attempts_total", "result="+verdict); int(n) != len(got) {
				t.Errorf("%v attempts with result %s are counted, want %d", n, verdict, len(got))
			}
		}
		if n := w.value("scheduler_unschedulable_pods", "plugin=NodeAffinity"); n != 1 {
			t.Errorf("%v pods are unschedulable because of NodeAffinity, want 1", n)
		}
	})
}

// During a pause nothing that planners propose is bound. Afterwards it is.
func TestPlannersAndPause(t *testing.T) {
	planners(t, nil, func(w *planned) {
		w.run("a", "slow")
		w.Hold(true)
		time.Sleep(time.Minute)
		if len(w.kept.binds) != 1 {
			t.Errorf("%d binds in the pause, want that before it alone", len(w.kept.binds))
		}
		w.Hold(false)
		w.run()
		if len(w.kept.binds) != 2 {
			t.Errorf("%d binds after the pause, want 2", len(w.kept.binds))
		}
	})
}

// Proposals wait while too many decisions have no outcome.
func TestProposalsDoNotGoAhead(t *testing.T) {
	planners(t, func(cfg *LoopConfig) { cfg.DecidedAhead = 2 }, func(w *planned) {
		w.run("a", "b", "c", "d")
		if len(w.kept.binds) != 2 {
			t.Fatalf("%d binds without an outcome, want 2", len(w.kept.binds))
		}
		for _, b := range slices.Clone(w.kept.binds) {
			w.Answer(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.Bound})
		}
		w.run()
		if len(w.kept.binds) != 4 {
			t.Errorf("%d binds, want 4", len(w.kept.binds))
		}
	})
}

// A loop that may not decide asks no planner to join: a standby calls no foreign code.
func TestStandbyHasNoPlanners(t *testing.T) {
	planners(t, nil, func(w *planned) {
		w.pod("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.planning.joined != 0 || len(w.kept.binds) != 0 {
			t.Fatalf("%d planners have joined, %d binds", w.planning.joined, len(w.kept.binds))
		}
		w.run()
		if w.planning.joined != 2 || len(w.kept.binds) != 1 {
			t.Errorf("%d planners have joined, %d binds", w.planning.joined, len(w.kept.binds))
		}
	})
}
