// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// flushEvent is the label of moves by the timeout of unschedulable units.
const flushEvent = "UnschedulableTimeout"

// waste is the ledger of work without a result.
type waste struct {
	sums  record.Waste
	by    map[wakeUp]*record.EventWakeUps // plugin and event -> their wake-ups
	woken map[string]wakeUp               // unit that was woken and not tried since -> what woke it
	tried []string                        // units whose attempt ended without a placement, of the step
}

// wakeUp is what woke a unit.
type wakeUp struct{ plugin, event string }

func newWaste() waste {
	return waste{by: map[wakeUp]*record.EventWakeUps{}, woken: map[string]wakeUp{}}
}

// unitOf identifies the unit of a move: a gang has several pods.
func unitOf(m *record.QueueMove) string {
	if m.Gang != "" {
		return "gang " + m.Gang
	}
	return m.Pod.UID
}

func (w *waste) wakeUps(of wakeUp) *record.EventWakeUps {
	e := w.by[of]
	if e == nil {
		e = &record.EventWakeUps{Plugin: of.plugin, Event: of.event}
		w.by[of] = e
	}
	return e
}

// moved follows a unit from the wake-up to its next attempt.
func (w *waste) moved(m *record.QueueMove) {
	unit := unitOf(m)
	switch {
	case unschedulable(m.From) && (m.To == record.Active || m.To == record.Backoff):
		of := wakeUp{m.Hint, m.Event}
		w.woken[unit] = of
		w.wakeUps(of).Woken++
		if m.Event == flushEvent {
			w.sums.Flushed++
		}
	case m.To == record.Gone, unschedulable(m.To) && m.From != record.InFlight:
		delete(w.woken, unit) // bound, deleted, or gated before an attempt
	case m.From == record.InFlight:
		w.tried = append(w.tried, unit)
	}
}

// decided counts a decision of a cycle.
func (w *waste) decided(d *record.Decision) {
	if d.Path == "" {
		return
	}
	w.sums.Decisions++
	if d.Path == record.Scanned {
		w.sums.FullScans++
	}
}

// end ends a step: units that were tried and are back in the queue were woken for nothing. A gang of which some pods
// were placed was not.
func (w *waste) end(m *Metrics, step measuredStep, placed bool) {
	for _, unit := range w.tried {
		of, woken := w.woken[unit]
		if delete(w.woken, unit); !woken || placed {
			continue
		}
		e := w.wakeUps(of)
		e.Useless++
		m.uselessWakeUps.WithLabelValues(of.plugin, of.event).Inc()
		if step.measured {
			e.Measured++
			e.CPU += step.cpu
		}
	}
	w.tried = w.tried[:0]
}

// follow counts the waste of one step.
func (w *waste) follow(m *Metrics, ev engine.Event, effects []engine.Effect, step measuredStep) {
	placed := false
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Moved:
			w.moved(&f.Move)
		case engine.Decided:
			if _, cycle := ev.(engine.Cycle); cycle {
				w.decided(&f.Decision)
			}
			placed = placed || f.Decision.Verdict == record.Placed
		case engine.Wasted:
			w.sums.UselessEvictions += uint64(f.Pods)
		}
	}
	w.end(m, step, placed)
}

// report returns the ledger.
func (w *waste) report() record.Waste {
	out := w.sums
	for _, e := range w.by { // order: sorted below
		out.WakeUps = append(out.WakeUps, *e)
	}
	slices.SortFunc(out.WakeUps, func(a, b record.EventWakeUps) int {
		return cmp.Or(cmp.Compare(b.Useless, a.Useless), cmp.Compare(b.Woken, a.Woken), cmp.Compare(a.Plugin, b.Plugin),
			cmp.Compare(a.Event, b.Event))
	})
	return out
}

// Report returns what was done since the start: amounts of work, CPU time and waste.
func (t *Tally) Report() record.WorkReport {
	r := record.WorkReport{Interval: time.Since(t.start), Work: map[string]uint64{}, Steps: map[string]record.StepCPU{},
		Plugins: t.plugins.list(), Waste: t.waste.report(), NoCPU: "the CPU time of Steps is not measured"}
	for kind, n := range t.meter.Work() {
		r.Work[record.Work(kind).String()] = n
	}
	if t.cpu != nil {
		r.NoCPU = t.cpu.why
		for lane := range t.cpu.lanes {
			r.Steps[record.StepLane(lane).String()] = t.cpu.lanes[lane]
		}
		if exact := t.cpu.boundaries.total; exact.Cycles > 0 {
			r.Exact = &exact
		}
	}
	return r
}
