// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// phasesOf writes the phases of a pod, with their milliseconds.
func phasesOf(j *record.Journey) string {
	var out []string
	for _, s := range j.Spans {
		out = append(out, fmt.Sprintf("%s %d", s.Phase, s.Took/1e6))
	}
	return strings.Join(out, ", ")
}

// TestPhasesOfTheLoopAddUp: nine pods on two nodes with capacity for eight, a slow API server, and a pod that goes. The
// phases of each pod add up, to the nanosecond, to the time between the two watch events.
func TestPhasesOfTheLoopAddUp(t *testing.T) {
	api := kubetest.NewAPIServer()
	for i := range 9 {
		api.Put(kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))))
	}
	api.Before = func(verb, _ string) error {
		if verb == "bind" {
			time.Sleep(30 * time.Millisecond)
		}
		return nil
	}
	api.After = func(verb, _ string) error {
		if verb == "bind" {
			time.Sleep(20 * time.Millisecond) // the watch shows the pod before the answer
		}
		return nil
	}
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Minute)
		for key := range api.All() {
			if w.on(key) != "" {
				api.Remove(key)
				break
			}
		}
		w.after(time.Minute)
		out := w.timing.Read(timing.Query{Limit: 100}, w.Loop.now(), 0)
		seen := map[string]int{}
		for i := range out.Journeys {
			j := &out.Journeys[i]
			if err := j.Check(); err != nil {
				t.Error(err)
			}
			if j.End != record.EndBound || !j.Listed {
				t.Errorf("pod %s: %+v", j.Pod.Name, j)
			}
			seen[phasesOf(j)]++
		}
		want := map[string]int{
			"sent 30": 4, "bind-queued 50, sent 30": 4, // two at a time
			"unschedulable 60000, sent 30": 1,
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("the phases are\n%v, want\n%v", seen, want)
		}
	}, func(o *wholeOptions) { o.binds = 4 })
}

// TestEventsWithoutPodsCostNothing: a step that concerns no journey does not lock the recorder.
func TestEventsWithoutPodsCostNothing(t *testing.T) {
	r := timing.New(timing.Options{})
	r.BeginStep() // a second one would wait for this one without end
	j := newJourneys(r, []string{"default-scheduler"})
	j.step(engine.Tick{Now: 1}, nil, moments{})
	j.step(engine.NodeGone{Name: "n"}, nil, moments{})
	r.EndStep(0)
}

// TestPhasesOfAnEviction: a pod evicts another one, whose grace period is 5 s, through an API server that takes 20 ms for
// a delete. The phases of the eviction add up to the time from the decision to the watch event without the victim.
func TestPhasesOfAnEviction(t *testing.T) {
	big := func(p *v1.Pod, priority int32) *v1.Pod {
		p.Spec.Priority = &priority
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = apiresource.MustParse("4")
		return p
	}
	api := kubetest.NewAPIServer()
	low := big(kubetest.BoundPod("low", "low", "n1"), 0)
	low.Finalizers = []string{"grace/period"}
	api.Put(low)
	api.Put(big(kubetest.BoundPod("other", "other", "n2"), 100))
	api.Before = func(verb, _ string) error {
		if verb == "delete" {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		api.Put(big(kubetest.PendingPod("high", "high"), 100))
		w.after(time.Second)
		out := w.timing.Read(timing.Query{Namespace: "ns", Name: "high", Limit: 9}, w.Loop.now(), 0)
		if len(out.Evictions) != 1 || out.Evictions[0].Ended() != 0 || !out.Evictions[0].Phases()[1].Open {
			t.Fatalf("during the grace period: %+v", out.Evictions)
		}
		w.after(4*time.Second + 20*time.Millisecond)
		api.Remove("ns/low")
		w.after(time.Minute)
		if w.on("ns/high") != "n1" {
			t.Fatalf("the pod is on node %q", w.on("ns/high"))
		}
		for _, name := range []string{"high", "low"} { // the pod that got the capacity, and the victim
			out = w.timing.Read(timing.Query{Namespace: "ns", Name: name, Limit: 9}, w.Loop.now(), 0)
			if len(out.Evictions) != 1 {
				t.Fatalf("%s: %+v", name, out.Evictions)
			}
			e := &out.Evictions[0]
			sum, got := record.Time(0), ""
			for _, s := range e.Phases() {
				sum += s.Took
				got += fmt.Sprintf("%s %d, ", s.Phase, s.Took/1e6)
			}
			if got != "sent 20, terminating 5000, " || sum != e.Ended()-e.Requested || e.Check() != nil ||
				len(e.Pods) != 1 || e.Pods[0].Pod.Name != "low" {
				t.Errorf("%s, in all %d of %d ns: %+v", got, sum, e.Ended()-e.Requested, e)
			}
		}
	}, func(o *wholeOptions) { o.preempts = true })
}
