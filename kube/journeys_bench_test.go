// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// BenchmarkTimesOfAPod is what the loop and the intake pay for the times of one pod that is bound in its first attempt:
// four steps with one more reading of the clock each, and two readings when the watch brings the pod. ns/decision is
// the part of the step that decides, with one reading of the clock too much.
func BenchmarkTimesOfAPod(b *testing.B) {
	j := newJourneys(timing.New(timing.Options{}), []string{v1.DefaultSchedulerName})
	clock := call.NewClock()
	type pod struct{ set, decided, answered, bound engine.Event }
	spec := &cluster.PodSpec{SchedulerName: v1.DefaultSchedulerName}
	pods := make([]pod, 4096)
	effects := make([][3][]engine.Effect, len(pods))
	for i := range pods {
		p := &cluster.Pod{Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: cluster.UID(fmt.Sprintf("0b5a2e0c-%08d", i)), Spec: spec}
		bound := *p
		bound.NodeName = "n"
		move := func(from, to record.SubQueue, event string) engine.Effect {
			return engine.Moved{Move: record.QueueMove{Pod: p.Ref(), From: from, To: to, Event: event}}
		}
		pods[i] = pod{engine.PodSet{Pod: p}, engine.Cycle{}, engine.BindDone{Pod: p.Ref(), Node: "n"}, engine.PodSet{Pod: &bound}}
		effects[i] = [3][]engine.Effect{{move(record.Gone, record.Active, "UnscheduledPodAdd")},
			{move(record.Active, record.InFlight, "Popped"), move(record.InFlight, record.Gone, "Done"),
				engine.Decided{Decision: record.Decision{Pod: p.Ref(), Verdict: record.Placed, Winner: &record.Candidate{Node: "n"}}},
				engine.Bind{Pod: p.Ref(), Node: "n"}},
			{engine.WriteEvent{Pod: p.Ref(), Reason: "Scheduled", Action: "Binding"}}}
	}
	i := 0
	var deciding time.Duration
	b.ReportAllocs()
	for b.Loop() {
		p, f := &pods[i%len(pods)], &effects[i%len(pods)]
		i++
		at := clock.Now()
		for k, ev := range [4]engine.Event{p.set, p.decided, p.answered, p.bound} {
			began := at
			if k == 1 && i%64 == 0 {
				began = clock.Now()
			}
			m := moments{received: at, began: at, ended: clock.Now(), call: timing.Call{Begun: at}}
			if k < 3 {
				j.step(ev, f[k], m)
			} else {
				m.received = clock.Now()
				j.step(ev, nil, m)
			}
			if k == 1 && i%64 == 0 {
				deciding += time.Duration(clock.Now() - began)
			}
		}
	}
	b.ReportMetric(float64(deciding)/float64(i/64+1), "ns/decision")
}
