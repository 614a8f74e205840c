// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// LoopState is what the scheduling loop does.
type LoopState uint8

// The states. The first three are parts of a step.
const (
	LoopCycle    LoopState = iota // it decides
	LoopEvent                     // it takes a change of the cluster, an outcome or the time
	LoopObserver                  // an observer of the steps runs, such as the recorder of --record
	LoopOther                     // it does something else: counts, hands effects on, answers questions
	LoopIdle                      // it rests, and no unit may be tried
	LoopLimited                   // it rests although a unit may be tried: too many decisions have no outcome yet
	LoopHeld                      // it rests although a unit may be tried: a pause, or the lease is not held

	loopStates = iota
)

var loopStateNames = [loopStates]string{"cycle", "event", "observer", "other", "idle", "limited", "held"}

// LoopTimes is the time that the loop spent in each state.
type LoopTimes [loopStates]time.Duration

// loopSeries are the counters of the states, looked up once; nil before.
type loopSeries [loopStates]metrics.CounterMetric

// Step adds one step, and what its observers took.
func (t *LoopTimes) Step(ev engine.Event, took, observers time.Duration) {
	state := LoopEvent
	if _, cycle := ev.(engine.Cycle); cycle {
		state = LoopCycle
	}
	t[state] += took
	t[LoopObserver] += observers
}

// Steps is the time in steps.
func (t *LoopTimes) Steps() time.Duration { return t[LoopCycle] + t[LoopEvent] + t[LoopObserver] }

// Spent counts times and sets them to zero.
func (t *Tally) Spent(times *LoopTimes) {
	for state, took := range times {
		if took <= 0 {
			continue
		}
		if t.loop[state] == nil {
			t.loop[state] = t.m.loopSeconds.WithLabelValues(loopStateNames[state])
		}
		t.loop[state].Add(took.Seconds())
	}
	*times = LoopTimes{}
}
