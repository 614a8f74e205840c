// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Tally turns the steps of an engine into metrics. It belongs to the goroutine that owns the engine.
type Tally struct {
	// Watches gives the age of each watch; nil where there is none. Set before the first Refresh.
	Watches Watches

	m     *Metrics
	meter *Meter // nil: nothing is sampled
	start time.Time
	// decided is set with the first decision.
	decided  bool
	pods     map[string]*tallied     // UID -> what is known of a pod that waits or is being bound
	queues   map[record.SubQueue]int // sub-queue -> units in it
	entities map[queued]int          // sub-queue and type -> units in it
	aside    int                     // pods set aside
	handling eventHandling
	loop     loopSeries
	periodic periodic
	work     reportedWork
	cpu      *StepCPU // nil: no CPU time is measured
	plugins  pluginCPU
	step     measuredStep // the last one
	waste    waste
	touched  []string // UIDs of the present step
}

// holdResult labels the end of a hold of capacity for a gang.
func holdResult(placed bool) string {
	if placed {
		return "placed"
	}
	return "given_up"
}

// tallied is one pod on its way.
type tallied struct {
	queued, binding bool
	flushed, aside  bool // it was woken by time alone; it is set aside
	recalled        bool // its bind was asked back
	// preparing is set from a Prepare to the Bind, the return to the queue, or the end of the pod.
	preparing bool
	first     time.Time // start of the first attempt
	began     time.Time // start of the last attempt
	attempt   int
	profile   string
	plugins   []string // counted in unschedulable_pods
	before    []string // plugins when the last attempt started
}

// NewTally returns a Tally of an engine that started at the given time. meter is the one the engine was made with; nil
// when it measures nothing.
func NewTally(m *Metrics, meter *Meter, start time.Time) *Tally {
	return &Tally{m: m, meter: meter, start: start, pods: map[string]*tallied{},
		queues: map[record.SubQueue]int{}, entities: map[queued]int{},
		handling: newEventHandling(m), periodic: newPeriodic(m), plugins: newPluginCPU(), waste: newWaste()}
}

// MeasureAll measures the CPU time of all Steps until it is called with false as often as with true.
func (t *Tally) MeasureAll(on bool) {
	if t.cpu != nil {
		t.cpu.MeasureAll(on)
	}
}

// MeasureBoundaries measures the CPU time of plugins by the clock of the thread at each boundary between them, in the
// Steps that are measured, until it is called with false as often as with true.
func (t *Tally) MeasureBoundaries(on bool) {
	if t.cpu != nil {
		t.cpu.MeasureBoundaries(on)
	}
}

// MeasureCPU lets Begin measure the CPU time of Steps. Must be called before the first Step.
func (t *Tally) MeasureCPU(c *StepCPU) { t.cpu = c }

// Begin begins a Step of the engine. Must be followed by End on the same goroutine, with nothing but the Step between
// them.
func (t *Tally) Begin(ev engine.Event) {
	if t.cpu != nil {
		t.meter.measure(t.cpu.Begin(ev), t.cpu.atBoundaries())
	}
}

// End ends the Step.
func (t *Tally) End() {
	if t.cpu == nil {
		return
	}
	t.step = t.cpu.End()
	switch b := t.cpu.atBoundaries(); {
	case b == nil:
		t.plugins.split(t.meter, t.step)
	case t.cpu.lane == record.CycleSteps:
		t.plugins.take(b.spent)
	}
}

// Step is Took for a step that ends now.
func (t *Tally) Step(ev engine.Event, effects []engine.Effect, began time.Time) {
	t.Took(ev, effects, began, time.Since(began))
}

// Took counts one step, which began at the given time and took so long. Moves come first: the last decision about a pod
// stands after the move that began the attempt.
func (t *Tally) Took(ev engine.Event, effects []engine.Effect, began time.Time, took time.Duration) {
	did := workOf(ev)
	waited := t.queued(ev)
	switch ev := ev.(type) {
	case engine.BindDone:
		t.bindDone(ev)
	case engine.PodGone:
		// A waiting gang goes on under another member, so its queue reports no move of this one.
		if p := t.pods[ev.Pod.UID]; p != nil {
			p.queued, p.preparing = false, false
			t.blame(p, nil)
			t.setAside(p, false)
			t.touched = append(t.touched, ev.Pod.UID)
		}
	case engine.PodSet:
		if ev.Pod.NodeName == "" { // it may be gated, which no decision precedes
			t.pod(string(ev.Pod.UID)).profile = ev.Pod.Spec.SchedulerName
			t.touched = append(t.touched, string(ev.Pod.UID))
		}
	}
	for _, f := range effects {
		if f, is := f.(engine.Moved); is {
			t.moved(&f.Move, began)
		}
	}
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Decided:
			if f.Decision.Verdict == record.Recalled {
				t.cameBack(ev)
				continue
			}
			t.decision(&f.Decision, began, did)
			if evicts := f.Decision.Preemption; evicts != nil {
				t.m.victimsUnproved.Add(float64(evicts.Unproved))
				agreed := evicts.AgreedVictims()
				t.m.evictedForGangs.Add(float64(agreed))
				if n := len(evicts.Victims) - agreed; n > 0 {
					t.m.victims.Observe(float64(n))
				}
			}
		case engine.Bind:
			p := t.pod(f.Pod.UID)
			p.binding, p.preparing = true, false
			t.touched = append(t.touched, f.Pod.UID)
		case engine.Recall:
			t.pod(f.Pod.UID).recalled = true
			t.touched = append(t.touched, f.Pod.UID)
		case engine.Rechecked:
			t.m.rechecked.Inc()
		case engine.Prepare:
			t.pod(f.Pod.UID).preparing = true
			t.touched = append(t.touched, f.Pod.UID)
		case engine.Trouble:
			t.m.troubles.Inc()
		case engine.Wasted:
			t.m.evictionsWasted.Add(float64(f.Pods))
		case engine.VictimsStuck:
			t.m.victimsStuck.Add(float64(len(f.Pods)))
		case engine.PreemptionPaused:
			t.m.preemptionPauses.Inc()
		case engine.GangWhole:
			t.m.gangsPart.Observe(seconds(f.Took))
		case engine.GangHeld:
			t.m.gangHold.WithLabelValues(holdResult(f.Placed)).Observe(seconds(f.Took))
			t.m.backfilled.WithLabelValues("ended").Add(float64(f.Backfilled - f.Overran))
			t.m.backfilled.WithLabelValues("late").Add(float64(f.Overran))
		}
	}
	t.waste.follow(t.m, ev, effects, t.step)
	for _, uid := range t.touched {
		if p := t.pods[uid]; p != nil && !p.queued && !p.binding && !p.preparing {
			delete(t.pods, uid)
		}
	}
	t.touched = t.touched[:0]
	t.handling.observe(ev, took, waited, t.queued(ev), t.meter.stepEvents())
	t.meter.flushStep(t.m)
}

// Pods is the number of pods of which something is kept: those that wait or are being bound.
func (t *Tally) Pods() int { return len(t.pods) }

func (t *Tally) pod(uid string) *tallied {
	p := t.pods[uid]
	if p == nil {
		p = &tallied{}
		t.pods[uid] = p
	}
	return p
}

func (t *Tally) bindDone(done engine.BindDone) {
	p := t.pods[done.Pod.UID]
	if p == nil {
		return
	}
	switch {
	case done.Outcome == engine.BindRecalled && !p.recalled: // without a Recall: binds are held
	case done.Outcome == engine.BindRecalled:
		t.m.conflicts.WithLabelValues("recalled").Inc()
		t.waste.sums.RecalledBinds++
	case p.recalled:
		t.m.conflicts.WithLabelValues("too_late").Inc()
	}
	p.binding, p.recalled = false, false
	t.touched = append(t.touched, done.Pod.UID)
	if done.Outcome != engine.Bound {
		return // a failure is counted with the engine's decision to try again
	}
	now := time.Now()
	t.m.attempts.WithLabelValues("scheduled", p.profile).Inc()
	t.m.attemptDuration.WithLabelValues("scheduled", p.profile).Observe(now.Sub(p.began).Seconds())
	t.m.podAttempts.Observe(float64(p.attempt))
	if p.flushed {
		t.m.afterFlush.Inc()
	}
	if !p.first.IsZero() {
		t.m.sli.WithLabelValues(attemptsLabel(p.attempt)).Observe(now.Sub(p.first).Seconds())
	}
}

// cameBack counts a pod that was withdrawn before its bind was asked for; bindDone counts the others. The attempt
// neither failed nor placed the pod, so it is no attempt of upstream's.
func (t *Tally) cameBack(because engine.Event) {
	if _, answered := because.(engine.BindDone); !answered {
		t.m.conflicts.WithLabelValues("released").Inc()
	}
}

func attemptsLabel(n int) string {
	if n >= 15 {
		return "15+"
	}
	return strconv.Itoa(n)
}

func (t *Tally) moved(m *record.QueueMove, began time.Time) {
	p := t.pod(m.Pod.UID)
	t.touched = append(t.touched, m.Pod.UID)
	kind := entityType(m)
	t.count(m.From, kind, -1)
	t.count(m.To, kind, +1)
	p.queued = m.To != record.Gone
	t.setAside(p, false) // a decision says so after the move
	switch {
	case m.Event == flushEvent:
		p.flushed = true
	case p.queued && (m.From == record.InFlight || m.From == record.Gone):
		p.flushed = false
	}
	p.preparing = p.preparing && !p.queued
	switch m.To {
	case record.InFlight:
		if p.first.IsZero() {
			p.first = began
		}
		p.before = append(p.before[:0], p.plugins...)
		t.blame(p, nil)
	case record.Backoff:
		if m.Event == "TriedEarly" { // no decision will name them
			t.blame(p, p.before)
		}
	case record.Gone:
		t.blame(p, nil)
	case record.Gated:
		if m.Hint != "" {
			t.blameAlso(p, m.Hint)
		}
	}
	switch m.To {
	case record.Active, record.Backoff, record.Unschedulable, record.Gated:
		t.m.entered(m)
	}
}

// entered counts a unit that has entered a sub-queue, as upstream does: those that are gated are unschedulable. A unit
// that was unschedulable and is gated from now on was added again by an event, but not by a change of its own pod.
// Of pods by themselves only those count as entities that are active, or that a gate holds: upstream compares where
// they are with what the hint says.
func (m *Metrics) entered(move *record.QueueMove) {
	if unschedulable(move.From) && unschedulable(move.To) && ownChange(move.Event) {
		return
	}
	to := string(move.To)
	if unschedulable(move.To) {
		to = string(record.Unschedulable)
	}
	m.incoming.WithLabelValues(to, move.Event).Inc()
	if kind := entityType(move); kind != singlePod || move.To == record.Active || move.To == record.Gated {
		m.incomingEntities.WithLabelValues(to, move.Event, kind).Inc()
	}
}

func unschedulable(q record.SubQueue) bool { return q == record.Unschedulable || q == record.Gated }

// ownChange reports whether a label is that of a change of the waiting pod itself, or of a request to activate it.
func ownChange(event string) bool {
	return event == plugin.ForceActivate.Label || strings.HasPrefix(event, string(plugin.TargetPod))
}

func (t *Tally) setAside(p *tallied, is bool) {
	if p.aside == is {
		return
	}
	p.aside = is
	if is {
		t.aside++
	} else {
		t.aside--
	}
	t.m.setAsideNow.Set(float64(t.aside))
}

// queued is a sub-queue and a type of units.
type queued struct {
	in   record.SubQueue
	kind string
}

// singlePod is the type of a pod by itself.
const singlePod = "pod"

// entityType labels a unit: a gang, or a pod by itself.
func entityType(m *record.QueueMove) string {
	if m.Gang != "" {
		return "podgroup"
	}
	return singlePod
}

func (t *Tally) count(q record.SubQueue, kind string, by int) {
	switch q {
	case record.Active, record.Backoff, record.Unschedulable, record.Gated:
		t.queues[q] += by
		t.m.pending.WithLabelValues(string(q)).Set(float64(t.queues[q]))
		t.entities[queued{q, kind}] += by
		t.m.queuedEntities.WithLabelValues(string(q), kind).Set(float64(t.entities[queued{q, kind}]))
	}
}

// blame counts the pod under these plugins instead of those before.
func (t *Tally) blame(p *tallied, plugins []string) {
	for _, name := range p.plugins {
		t.m.unschedulable.WithLabelValues(name, p.profile).Dec()
	}
	p.plugins = append(p.plugins[:0], plugins...)
	for _, name := range p.plugins {
		t.m.unschedulable.WithLabelValues(name, p.profile).Inc()
	}
}

// blameAlso counts the pod under more plugins.
func (t *Tally) blameAlso(p *tallied, plugins ...string) {
	for _, name := range plugins {
		if !slices.Contains(p.plugins, name) {
			p.plugins = append(p.plugins, name)
			t.m.unschedulable.WithLabelValues(name, p.profile).Inc()
		}
	}
}

// stepWork is what decisions in the effects of a step come from.
type stepWork uint8

const (
	// endedEarlier is a step that ends attempts of earlier steps: an outcome of a bind, or an answer at Permit.
	endedEarlier stepWork = iota
	// checkedProposals is a step in which attempts of planners begin and end for this process.
	checkedProposals
	// searched is a step with a scheduling cycle.
	searched
)

func workOf(ev engine.Event) stepWork {
	switch ev.(type) {
	case engine.Cycle:
		return searched
	case message.Proposed:
		return checkedProposals
	}
	return endedEarlier
}

func (t *Tally) decision(d *record.Decision, began time.Time, did stepWork) {
	p := t.pod(d.Pod.UID)
	t.touched = append(t.touched, d.Pod.UID)
	if p.profile != d.Profile {
		t.blame(p, nil)
		p.profile = d.Profile
	}
	p.attempt = d.Attempt
	now := time.Now()
	if !t.decided {
		t.decided = true
		t.m.firstDecision.Set(now.Sub(t.start).Seconds())
	}
	if did == searched {
		t.meter.flush(t.m, d)
		if d.Path != "" {
			t.m.paths.WithLabelValues(string(d.Path)).Inc()
		}
	}
	if did != endedEarlier {
		p.began = began
		t.m.algorithm.Observe(now.Sub(began).Seconds())
	}
	switch d.Verdict {
	case record.AttemptFailed:
		t.attempted("error", p, now)
	case record.DoesNotFit:
		t.blameAlso(p, d.Plugins...) // besides the gate that holds it from now on
		t.attempted("unschedulable", p, now)
	case record.SetAside:
		t.blame(p, nil)
		t.m.setAside.Inc()
		t.setAside(p, true)
		t.attempted("error", p, now)
	}
}

func (t *Tally) attempted(result string, p *tallied, now time.Time) {
	t.m.attempts.WithLabelValues(result, p.profile).Inc()
	t.m.attemptDuration.WithLabelValues(result, p.profile).Observe(now.Sub(p.began).Seconds())
}

// Sizes sets how many nodes and bound pods the engine knows, how many pods it assumes, and how many events it keeps for
// pods that are being decided on.
func (t *Tally) Sizes(nodes, bound, assumed, inflightEvents int) {
	t.m.inflightEvents.WithLabelValues("all").Set(float64(inflightEvents))
	t.m.cacheSize.WithLabelValues("nodes").Set(float64(nodes))
	t.m.cacheSize.WithLabelValues("pods").Set(float64(bound + assumed))
	t.m.cacheSize.WithLabelValues("assumed_pods").Set(float64(assumed))
}

// queued reports whether the pod of an event waits.
func (t *Tally) queued(ev engine.Event) bool {
	uid := ""
	switch ev := ev.(type) {
	case engine.PodSet:
		uid = string(ev.Pod.UID)
	case engine.PodGone:
		uid = ev.Pod.UID
	default:
		return false
	}
	p := t.pods[uid]
	return p != nil && p.queued
}

// Oversold returns how many nodes were overcommitted in the last pass of Refresh.
func (t *Tally) Oversold() int { return len(t.periodic.oversold) }

// Refresh sets the gauges that need a pass over all watches, nodes or gangs. It does nothing when the last pass is less
// than a second ago. engine is asked for what it offers of oversoldNodes and gangCensus.
func (t *Tally) Refresh(engine any) {
	now := time.Now()
	if !t.periodic.due(now) {
		return
	}
	t.meter.forget()
	t.handling.forget()
	t.work.report(t.m, t.meter.Work(), t.cpu)
	t.loop = loopSeries{}
	t.periodic.set(engine, t.Watches, now)
}
