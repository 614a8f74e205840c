// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
