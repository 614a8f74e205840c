// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Flight joins the recorder and the detector behind the loop. All methods but Run, Found and Ask belong to the
// goroutine of the loop.
type Flight struct {
	*Recorder
	detector *Detector
	limits   Limits
	found    chan Finding

	now     record.Time   // of the last tick
	counted record.Time   // when Second was last called
	turn    atomic.Int64  // when the present iteration began, in nanoseconds since start; 0 between two
	slow    atomic.Bool   // the present iteration was found slow before its end
	pause   atomic.Int64  // longest pause of the garbage collector since it was last read
	start   time.Time     // what turn counts from
	every   time.Duration // between two looks at the iteration
	server  func() Server
}

// maxFound bounds the incidents that wait to become bundles.
const maxFound = 64

// NewFlight returns a flight recorder for an engine that has not run yet. server is asked about once a second.
func NewFlight(state func() engine.State, l Limits, server func() Server) *Flight {
	return &Flight{Recorder: NewRecorder(state), detector: NewDetector(l), limits: l, server: server,
		found: make(chan Finding, maxFound), start: time.Now(), every: 50 * time.Millisecond}
}

// Found returns the incidents, as they are detected.
func (f *Flight) Found() <-chan Finding { return f.found }

// report sends incidents on. If too many wait, the newest are lost.
func (f *Flight) report(all []Finding) {
	for _, one := range all {
		select {
		case f.found <- one:
		default:
		}
	}
}

// TurnBegan notes the start of an iteration.
func (f *Flight) TurnBegan() {
	f.slow.Store(false)
	f.turn.Store(int64(time.Since(f.start)))
}

// After keeps an event, and detects what it or its effects show.
func (f *Flight) After(ev engine.Event, effects []engine.Effect) {
	if tick, is := ev.(engine.Tick); is {
		f.now = tick.Now
	}
	f.Recorder.After(ev, effects)
	f.detector.Step(f.now, ev, effects)
}

// TurnEnded takes the end of an iteration: whether it could have made decisions, and how many nodes are overcommitted.
func (f *Flight) TurnEnded(deciding bool, overcommitted int) {
	began := f.turn.Swap(0)
	took := time.Since(f.start) - time.Duration(began)
	if f.slow.Load() { // the watcher was faster
		took = 0
	}
	f.detector.Turn(f.now, took, deciding)
	if f.now-f.counted >= record.Second {
		f.counted = f.now
		f.detector.Second(f.now, overcommitted, time.Duration(f.pause.Swap(0)), f.server())
	}
	if len(f.detector.found) > 0 {
		f.report(f.detector.Take())
	}
}

// Ask detects that a user wants a bundle.
func (f *Flight) Ask(at record.Time) { f.report([]Finding{{Cause: ByHand, At: at}}) }

// Lost returns the finding of a lease that was lost. The loop must have ended.
func (f *Flight) Lost(at record.Time) Finding { return f.detector.Lost(at, f.server()) }

// Run looks after an iteration that does not end, and the pauses of the garbage collector, until ctx ends.
func (f *Flight) Run(ctx context.Context) {
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	var pauses pauses
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		f.look(time.Now())
		if n%10 == 0 {
			if p := pauses.longest(); p > time.Duration(f.pause.Load()) {
				f.pause.Store(int64(p))
			}
		}
	}
}

// look reports an iteration that has already exceeded its limit.
func (f *Flight) look(now time.Time) {
	began := f.turn.Load()
	took := now.Sub(f.start) - time.Duration(began)
	if began == 0 || took <= f.limits.Iteration || f.slow.Swap(true) {
		return
	}
	f.report([]Finding{{Cause: SlowIteration, At: record.Time(now.UnixNano()), Took: took,
		Detail: "it had not ended when it was found"}})
}

// pauses reads the pauses of the garbage collector.
type pauses struct {
	sample [1]metrics.Sample
	counts []uint64 // of each bucket, when it was last read
}

// longest returns a lower bound of the longest pause since the last call; 0 for none, and for the first call.
func (p *pauses) longest() time.Duration {
	p.sample[0].Name = "/sched/pauses/total/gc:seconds"
	metrics.Read(p.sample[:])
	if p.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := p.sample[0].Value.Float64Histogram()
	var longest time.Duration
	for i, n := range h.Counts {
		if p.counts != nil && n > p.counts[i] && h.Buckets[i] > 0 {
			longest = time.Duration(h.Buckets[i] * float64(time.Second))
		}
	}
	p.counts = append(p.counts[:0], h.Counts...)
	return longest
}
