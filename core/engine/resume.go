// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/state"
)

var stageNames = [...]string{preparing: "preparing", waiting: "waiting", binding: "binding", proposed: "proposed"}

// State is the facts of an engine between two Steps.
type State = state.State

// State returns the facts of the engine. Must be called between two Steps.
func (e *Engine) State() State {
	st := State{
		Now: e.now, Decisions: e.count.decisions, Synced: e.count.synced, Wake: e.out.wake,
		Answers: slices.Clone(e.out.foreignAnswers), Cluster: e.store.State(), Evictions: e.evictions.Facts(),
		Blocked: e.blocked.Facts(), Window: e.search.window.State(),
	}
	outside := make([]*queue.Unit, 0, len(e.binds.of))
	for _, f := range e.binds.all() {
		st.Flights = append(st.Flights, f.facts())
		outside = append(outside, f.unit)
	}
	queued, index := e.queue.State(outside)
	st.Queue = queued
	for i, u := range outside {
		st.Flights[i].Unit = index(u)
	}
	for _, p := range e.pending { // order: Sort brings them in order
		st.Pending = append(st.Pending, p)
	}
	for _, p := range e.gangs.edited { // order: Sort brings them in order
		st.Edited = append(st.Edited, p)
	}
	for key, g := range e.gangs.of { // order: Sort brings them in order
		st.Gangs = append(st.Gangs, state.Gang{
			Gang: key, Quorum: g.quorum, PartialSince: g.partialSince, Complete: g.complete, Told: g.told})
	}
	st.Session = e.pace.State(index)
	return st
}

func (f *flight) facts() state.Flight {
	st := state.Flight{
		Pod: f.pod, Node: f.node, Decision: f.decision, Stage: stageNames[f.stage], Wrote: f.wrote, Again: f.again.At(),
		Gang: f.gang, Retries: f.retries, Before: slices.Clone(f.before), Expected: f.expected,
		Cancelled: f.cancelled, Recalled: f.recalled, Preempted: f.preempted,
	}
	for _, h := range f.holds {
		reserved := state.Reserved{By: h.by, Announced: h.announced}
		if hold, has := h.hold.(plugin.Factual); has {
			reserved.Facts = hold.Facts()
		}
		st.Reserved = append(st.Reserved, reserved)
	}
	return st
}

// Resume makes an engine that goes on where another one was when its State was taken: the same events have the same
// effects, but for the path of decisions, which depends on what is cached. The configuration must be the same for
// that. It is an error if the facts contradict each other, or if a plugin that reserved something is not there.
func Resume(cfg Config, st State) (e *Engine, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, fmt.Errorf("resuming the engine: %v", r)
		}
	}()
	e = New(cfg)
	e.now, e.out.wake, e.out.foreignAnswers = st.Now, st.Wake, slices.Clone(st.Answers)
	e.count = counters{decisions: st.Decisions, synced: st.Synced}
	if err := e.store.Restore(st.Cluster); err != nil {
		return nil, err
	}
	e.store.SetNow(st.Now)
	for _, p := range st.Pending {
		if e.profiles[p.Spec.SchedulerName] == nil {
			return nil, fmt.Errorf("resuming the engine: pod %s is of profile %q, which is not configured", p.Key(),
				p.Spec.SchedulerName)
		}
		e.pending[p.UID] = p
	}
	for _, p := range st.Edited {
		e.gangs.edited[p.UID] = p
	}
	units, err := e.queue.Restore(st.Queue)
	if err != nil {
		return nil, err
	}
	e.search.window.Restore(st.Window)
	for i := range st.Flights {
		if err := e.binds.restore(&st.Flights[i], units); err != nil {
			return nil, err
		}
	}
	for _, g := range st.Gangs {
		e.gangs.of[g.Gang] = &gangState{quorum: g.Quorum, partialSince: g.PartialSince, complete: g.Complete, told: g.Told}
	}
	e.blocked.Restore(st.Blocked)
	if err := errors.Join(e.evictions.Restore(st.Evictions), e.pace.Restore(st.Session, units)); err != nil {
		return nil, err
	}
	return e, nil
}

// restore puts a decided pod on its way.
func (b *binds) restore(st *state.Flight, units []*queue.Unit) error {
	at, prof := slices.Index(stageNames[:], st.Stage), b.e.profiles[st.Pod.Spec.SchedulerName]
	if at < 0 || prof == nil || b.of[st.Pod.UID] != nil {
		return fmt.Errorf("resuming the engine: pod %s is %q in profile %q", st.Pod.Key(), st.Stage,
			st.Pod.Spec.SchedulerName)
	}
	f := &flight{
		unit: units[st.Unit], pod: st.Pod, node: st.Node, decision: st.Decision, wrote: st.Wrote, gang: st.Gang,
		retries: st.Retries, before: slices.Clone(st.Before), expected: st.Expected, cancelled: st.Cancelled,
		recalled: st.Recalled, preempted: st.Preempted, stage: stage(at),
	}
	for _, r := range st.Reserved {
		hold, err := prof.resume(r)
		if err != nil {
			return fmt.Errorf("resuming the engine: what is reserved for pod %s: %w", st.Pod.Key(), err)
		}
		f.holds = append(f.holds, held{r.By, hold, r.Announced})
	}
	b.add(f)
	if f.stage == waiting {
		b.wait(f, st.Again)
	}
	return nil
}

// NoFacts returns empty facts of the reservations of a plugin, to read them into; nil if no profile has the plugin, or
// its reservations have no form as data.
func (c *Config) NoFacts(name string) any {
	for i := range c.Profiles {
		for _, r := range c.Profiles[i].Reservers {
			if by, can := r.(plugin.Resumer); can && r.Name() == name {
				return by.NoFacts()
			}
		}
	}
	return nil
}

// resume makes a reservation again.
func (p *profile) resume(st state.Reserved) (plugin.Reservation, error) {
	for _, r := range p.Reservers {
		if r.Name() != st.By {
			continue
		}
		if by, can := r.(plugin.Resumer); can && st.Facts != nil {
			return by.Resume(st.Facts)
		}
		return nil, fmt.Errorf("the reservations of plugin %s have no form as data", st.By)
	}
	return nil, fmt.Errorf("profile %q has no plugin %s that reserves", p.Name, st.By)
}
