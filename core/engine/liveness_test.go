// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The liveness property: when no event is outstanding and all timers have run, no unit waits for which the engine's
// own answer is that it fits, or that it would evict pods. The answer (ExplainPod, ExplainGang) knows what may hold
// a unit back all the same. That list is closed, and each entry ends by itself or by an event that wakes the unit:
//
//	held capacity             ends at GangHold.Until; others see it as taken until then
//	a pause of preemption     ends at Preemption.PausedUntil
//	a delay of evictions      ends at Preemption.DelayedUntil
//	a strict budget           ends when a budget, a label or a charge changes
//	a gate                    is asked again when what it reads changes; its answer is asked anew here
//	a refusal while reserving ends with an event of the plugin that refused (tests: the latch)
//
// A hold or a pause whose time is over, and a gate that is open, are violations. So is a unit that is active or
// backs off: all of its timers have run. (Without any node pods are tried again and again, as upstream does; then
// nothing is asked.)
//
// The flush of unschedulable units would hide a wake-up that was lost, so histories run with noFlush.
const noFlush = 100_000_000 * record.Second

// unlive is how the property is violated, empty if it holds. refused reports whether a plugin refuses a pod while
// reserving.
func unlive(e *engine.Engine, refused func(uid string) bool) string {
	if e.Snapshot().Nodes() == 0 {
		return ""
	}
	for _, entry := range inspect(e).QueueReport().Entries {
		why := ""
		switch {
		case entry.Where != record.Unschedulable && entry.Where != record.Gated && !engine.WorksInSessions(e):
			why = "is in " + string(entry.Where) + " though all timers have run"
		case entry.Gang != "":
			why = unliveGang(e, entry)
		case !refused(entry.Pod.UID):
			why = unlivePod(e, entry)
		}
		if why != "" {
			return fmt.Sprintf("%s %s", unitOf(entry), why)
		}
	}
	return ""
}

func unitOf(entry record.QueueEntry) string {
	if entry.Gang != "" {
		return "gang " + entry.Gang
	}
	return "pod " + entry.Pod.Key()
}

func unlivePod(e *engine.Engine, entry record.QueueEntry) string {
	if entry.Where == record.Gated {
		return openGate(e, entry)
	}
	fit, preemption := inspect(e).Fit(cluster.UID(entry.Pod.UID))
	if fit.Feasible > 0 {
		return fmt.Sprintf("waits and fits on %v", fit.FeasibleExamples)
	}
	return wouldEvict(e, preemption)
}

func unliveGang(e *engine.Engine, entry record.QueueEntry) string {
	namespace, name, _ := strings.Cut(entry.Gang, "/")
	r, known := inspect(e).ExplainGang(namespace, name)
	now := e.Now()
	switch {
	case !known:
		return "waits, and is not known"
	case r.Holds != nil && r.Holds.Until <= now, r.HeldByOther != nil && r.HeldByOther.Until <= now:
		return "waits behind a hold whose time is over"
	case entry.Where == record.Gated:
		return openGate(e, entry)
	case r.Fit != nil && r.Fit.Verdict == "placed":
		return "waits and fits"
	}
	return wouldEvict(e, r.Preemption)
}

// openGate is why a unit waits behind a gate that does not hold it; empty if one does.
func openGate(e *engine.Engine, entry record.QueueEntry) string {
	gate, closed := engine.ClosedGate(e, entry.Pod.UID)
	switch {
	case !closed:
		return "waits behind gate " + gate + ", which is open"
	case gate == plugin.DefaultPreemptionName:
		return "waits for evictions that were carried out long ago"
	}
	return ""
}

func wouldEvict(e *engine.Engine, p *record.Preemption) string {
	if p == nil {
		return ""
	}
	if p.PausedUntil != 0 && p.PausedUntil <= e.Now() {
		return "waits in a pause that is over"
	}
	if p.DelayedUntil != 0 {
		if p.DelayedUntil <= e.Now() {
			return "waits for new nodes though the time for them is over"
		}
		return ""
	}
	if p.Node != "" && slices.ContainsFunc(p.Victims, func(v record.Victim) bool { return !v.Going }) {
		return fmt.Sprintf("waits and would evict %v from %s", victimNames(p), p.Node)
	}
	return ""
}

// quiesce lets all timers run: backoffs, holds, time-outs of victims, pauses, which may follow each other. A blocked
// gang holds capacity again and again, and each end of a hold wakes other units. So the last waits are short, until no
// unit backs off.
func (s *stage) quiesce() {
	for _, wait := range []record.Time{30, 60, 300, 300, 600, 3600, 3600, 7200} {
		s.waitOut(wait * record.Second)
	}
	for range 60 {
		counts := s.engine.View().Queue().Counts()
		if counts[record.Active]+counts[record.Backoff] == 0 || engine.WorksInSessions(s.engine) {
			break
		}
		s.waitOut(record.Second)
	}
}

// waitOut lets time pass at once, and then everything happen that can.
func (s *stage) waitOut(wait record.Time) {
	s.now += wait
	s.world.send(engine.Tick{Now: s.now})
	for steps := 0; ; steps++ {
		if steps > 5000 {
			s.t.Fatal("it never comes to rest")
		}
		if s.world.drain(); !s.engine.Ready() {
			break
		}
		s.world.send(engine.Cycle{})
	}
}

// checkLive holds the liveness property after all timers have run.
func (s *stage) checkLive(refused func(uid string) bool) {
	s.quiesce()
	if why := unlive(s.engine, refused); why != "" {
		s.t.Fatal(why)
	}
}

// neverRefused is for clusters on which no plugin refuses a pod while reserving.
func neverRefused(string) bool { return false }
