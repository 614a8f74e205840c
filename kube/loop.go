// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/instances"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// Stepper is what the loop drives: *engine.Engine.
type Stepper interface {
	// Step takes one event and returns effects that are good until the next Step.
	Step(engine.Event) []engine.Effect
	// Ready reports whether a Cycle would find a unit.
	Ready() bool
	// InFlightEvents counts the events kept for pods that are being decided on.
	InFlightEvents() int
}

// EffectExecutor carries out effects. None of its methods blocks.
type EffectExecutor interface {
	// Bind starts a bind, which is answered once through Loop.Answer.
	Bind(engine.Bind)
	// Recall takes back a bind that was not sent yet, which answers it.
	Recall(engine.Recall)
	// Prepare starts the writes before a bind, which are answered once through Loop.Answer.
	Prepare(engine.Prepare)
	// Release starts the writes that take a Prepare back.
	Release(engine.Release)
	// Evict starts evictions, which are answered once through Loop.Answer.
	Evict(engine.Evict)
	// SetGangStatus starts the writing of a gang's status.
	SetGangStatus(engine.GangStatus)
	// SetCondition starts a status patch.
	SetCondition(engine.Condition)
	// Nominate starts a status patch that shows where a pod is about to be bound.
	Nominate(engine.Nominate)
	// WriteEvent starts the writing of an event.
	WriteEvent(engine.WriteEvent)
}

var _ EffectExecutor = (*effects.Executor)(nil)

// Observer sees every event with its effects, in order, on the loop's goroutine. It must not keep the effects. The
// recorder of --record is one, the page is another. The event is nil for a decision of a local planner, which is not
// among the effects of the engine; there is no recorder then.
type Observer func(engine.Event, []engine.Effect)

// Flight is the flight recorder. The loop calls it on its goroutine.
type Flight interface {
	// Before and After are called around each Step. After must not keep the effects.
	Before(engine.Event)
	After(engine.Event, []engine.Effect)
	// TurnBegan and TurnEnded are called around each turn. deciding reports whether the turn could make decisions,
	// overcommitted is how many nodes were overcommitted when they were last counted.
	TurnBegan()
	TurnEnded(deciding bool, overcommitted int)
}

// The sizes of a turn of the loop.
const (
	// DefaultBatch is how many objects become events between two rounds of cycles.
	DefaultBatch = 512
	// DefaultCycles is how many cycles run between two batches. With 5,000 nodes a scan takes about 50 µs, so news
	// waits for less than 2 ms.
	DefaultCycles = 32
	// DefaultDecidedAhead is how many binds, writes and evictions may be without an outcome before the loop stops
	// deciding: far more than are in flight at once, so that the binder never starves, and few enough that a restart
	// has little to decide again.
	DefaultDecidedAhead = 2048
)

// heartbeat is how long the loop sleeps at most.
const heartbeat = time.Second

// LoopConfig makes a Loop.
type LoopConfig struct {
	Engine   Stepper
	Inbox    *intake.Inbox
	Executor EffectExecutor
	Metrics  *metrics.Metrics
	// Meter is the one the engine was made with; nil when it measures nothing.
	Meter *metrics.Meter
	// Foreign reports that a profile calls foreign code inside a Step: the CPU time of Steps is not measured then.
	Foreign bool
	// Observers are called for each step, in order.
	Observers []Observer
	// Timing records where time goes, for the pods of SchedulerNames; nil for nothing.
	Timing *timing.Recorder
	// Flight may be nil.
	Flight Flight
	// Planners are those of this process; nil for none. The engine is an arbiter then.
	Planners *instances.Runner
	// SchedulerNames are those of the profiles. Pods of others are not reported.
	SchedulerNames []string
	// Batch, Cycles and DecidedAhead are the defaults above when 0.
	Batch, Cycles, DecidedAhead int
}

// Loop is the one goroutine that owns the engine.
type Loop struct {
	cfg   LoopConfig
	start time.Time // of the loop
	clock call.Clock
	wake  record.Time
	// unanswered counts the binds and Prepares without an outcome, evicting the Evicts.
	unanswered, evicting int

	// lead reports whether the lease is certainly ours; set before Run.
	lead func() bool
	// mayDecide is called in the first turn that may decide, a pause aside; may be nil.
	mayDecide func()
	deciding  atomic.Bool
	held      atomic.Bool  // no cycles although deciding: a pause
	lastTurn  atomic.Int64 // nanoseconds since start of the last turn
	synced    chan struct{}

	mu       sync.Mutex
	outcomes []outcome
	asks     []*ask
	ended    bool

	news   chan struct{} // one slot: outcomes, asks or a change of deciding
	events []engine.Event
	tally  *metrics.Tally
	// journeys is nil when no times are recorded.
	journeys *journeys
	spent    metrics.LoopTimes // of the present turn
	// planning is nil without planners.
	planning *planning
	// warnedUngrouped is set once the log has the warning of reportUngrouped.
	warnedUngrouped bool
}

// outcome is a BindDone, WritesDone or EvictDone.
type outcome struct {
	event   engine.Event
	call    timing.Call   // of a bind that was begun
	deletes []timing.Call // of an eviction
}

type ask struct {
	do   func()
	done chan struct{}
}

// ErrLoopEnded is what Ask returns when the loop does not run any more.
var ErrLoopEnded = errors.New("the scheduling loop has ended")

// NewLoop returns a loop that does not decide yet.
func NewLoop(cfg LoopConfig) *Loop {
	if cfg.Batch == 0 {
		cfg.Batch = DefaultBatch
	}
	if cfg.Cycles == 0 {
		cfg.Cycles = DefaultCycles
	}
	if cfg.DecidedAhead == 0 {
		cfg.DecidedAhead = DefaultDecidedAhead
	}
	cfg.Metrics.SetLimit(metrics.DecidedAheadLimit, float64(cfg.DecidedAhead))
	l := &Loop{cfg: cfg, start: time.Now(), clock: cfg.Inbox.Clock(), lead: always, synced: make(chan struct{}),
		news: make(chan struct{}, 1)}
	l.planning = newPlanning(cfg.Planners, cfg.Metrics)
	l.journeys = newJourneys(cfg.Timing, cfg.SchedulerNames)
	l.tally = metrics.NewTally(cfg.Metrics, cfg.Meter, l.start)
	l.tally.MeasureCPU(metrics.NewStepCPU(cfg.Foreign))
	return l
}

func always() bool { return true }

// Decide switches cycles on or off. Off, the loop still takes events, so that a standby knows the cluster when it
// becomes the leader.
func (l *Loop) Decide(on bool) {
	l.deciding.Store(on)
	l.wakeUp()
}

// Hold stops cycles until it is called with false, whatever Decide says.
func (l *Loop) Hold(on bool) {
	l.held.Store(on)
	l.wakeUp()
}

// Synced is closed when the engine knows the initial lists.
func (l *Loop) Synced() <-chan struct{} { return l.synced }

// Stalled is how long ago the last turn was. A sleeping loop turns once a second.
func (l *Loop) Stalled() time.Duration { return time.Since(l.start) - time.Duration(l.lastTurn.Load()) }

// health is the state that a server shows of a loop without leader election.
func (l *Loop) health(ending <-chan struct{}) serve.Health {
	return serve.Health{Leads: func() bool { return true }, Stalled: l.Stalled, Synced: l.Synced(),
		Pods: l.cfg.Inbox.Pods, Ending: ending}
}

// Answer gives the outcome of a bind, of writes or of evictions to the engine: a BindDone, WritesDone or EvictDone.
func (l *Loop) Answer(done engine.Event) { l.answer(outcome{event: done}) }

// AnswerBind is Answer for a bind that was begun, with its moments.
func (l *Loop) AnswerBind(done engine.BindDone, t *call.Trace) {
	l.answer(outcome{event: done, call: l.callOf(t)})
}

// AnswerEvict is Answer for an eviction, with the moments of its deletes in the order of the victims.
func (l *Loop) AnswerEvict(done engine.EvictDone, deletes []call.Trace) {
	o := outcome{event: done, deletes: make([]timing.Call, len(deletes))}
	for i := range deletes {
		o.deletes[i] = l.callOf(&deletes[i])
	}
	l.answer(o)
}

// callOf returns the moments of a job by the clock of the loop; those of a job that was not begun are 0.
func (l *Loop) callOf(t *call.Trace) (c timing.Call) {
	if !t.Begun.IsZero() {
		c = timing.Call{Begun: l.clock.At(t.Begun), Released: t.Released, FirstByte: t.FirstByte, Request: t.Request}
	}
	return c
}

func (l *Loop) answer(o outcome) {
	l.mu.Lock()
	l.outcomes = append(l.outcomes, o)
	l.mu.Unlock()
	l.wakeUp()
}

// Ask runs do on the loop's goroutine between two batches and returns when it has run. do must not call Step.
func (l *Loop) Ask(ctx context.Context, do func()) error {
	a := &ask{do: do, done: make(chan struct{})}
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return ErrLoopEnded
	}
	l.asks = append(l.asks, a)
	l.mu.Unlock()
	l.wakeUp()
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	// Once Ask has returned, do must not write any more: take the ask back, or wait for it to end.
	l.mu.Lock()
	for i, waiting := range l.asks {
		if waiting == a {
			l.asks = append(l.asks[:i], l.asks[i+1:]...)
			l.mu.Unlock()
			if l.hasEnded() {
				return ErrLoopEnded
			}
			return ctx.Err()
		}
	}
	l.mu.Unlock()
	<-a.done
	return nil
}

func (l *Loop) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *Loop) wakeUp() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *Loop) now() record.Time { return l.clock.Now() }

// Run turns the loop until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("loop")
	defer l.end()
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for ctx.Err() == nil {
		if l.turn(log) {
			continue
		}
		timer.Reset(l.rest())
		began := time.Now()
		select {
		case <-ctx.Done():
		case <-l.news:
		case <-l.cfg.Inbox.Ready():
		case <-l.planning.ready():
		case <-timer.C:
		}
		l.spent[l.resting()] += time.Since(began)
		l.planning.rested(time.Since(began))
	}
}

// resting is why the loop rests. It is asked after the rest, but before anything is taken.
func (l *Loop) resting() metrics.LoopState {
	switch {
	case !l.cfg.Engine.Ready():
		return metrics.LoopIdle
	case l.held.Load() || !l.deciding.Load() || !l.lead():
		return metrics.LoopHeld
	case l.unanswered+l.evicting >= l.cfg.DecidedAhead:
		return metrics.LoopLimited
	}
	return metrics.LoopIdle
}

// end fails the asks that will not run any more.
func (l *Loop) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, a := range l.asks {
		close(a.done)
	}
}

// rest is how long to sleep when nothing happens.
func (l *Loop) rest() time.Duration {
	if l.wake == 0 {
		return heartbeat
	}
	return min(heartbeat, max(0, time.Duration(l.wake-l.now())))
}

// turn runs one batch of events and one round of cycles. It reports whether there is more to do at once.
func (l *Loop) turn(log klog.Logger) (more bool) {
	began := time.Now()
	defer func() {
		l.spent[metrics.LoopOther] += time.Since(began) - l.spent.Steps()
		l.tally.Spent(&l.spent)
	}()
	l.lastTurn.Store(int64(time.Since(l.start)))
	l.cfg.Metrics.Heartbeat.SetToCurrentTime()
	if l.cfg.Flight != nil {
		l.cfg.Flight.TurnBegan()
	}
	now := l.now()
	if l.wake != 0 && now >= l.wake {
		l.wake = 0
	}
	l.step(log, engine.Tick{Now: now}, moments{})

	for _, done := range l.takeOutcomes() {
		if _, evicted := done.event.(engine.EvictDone); evicted {
			l.evicting--
		} else {
			l.unanswered--
		}
		l.step(log, done.event, moments{call: done.call, deletes: done.deletes})
	}
	var taken int
	l.events, taken = l.cfg.Inbox.Take(l.events[:0], l.cfg.Batch)
	received := l.cfg.Inbox.Received()
	for i, ev := range l.events {
		l.step(log, ev, moments{received: received[i]})
		if _, is := ev.(engine.Synced); is {
			l.knows(log)
		}
		l.events[i] = nil
	}

	l.takePlanned(log, now)

	cycles := 0
	decides := l.deciding.Load() && l.lead() && !l.cfg.Inbox.Behind()
	if decides {
		if l.mayDecide != nil {
			l.mayDecide()
			l.mayDecide = nil
		}
		l.reportUngrouped(log)
		l.stepProposals(log)
		for ; !l.held.Load() && l.planning.gathered() && cycles < l.cfg.Cycles &&
			l.unanswered+l.evicting < l.cfg.DecidedAhead && l.cfg.Engine.Ready(); cycles++ {
			l.step(log, engine.Cycle{}, moments{})
		}
	}
	nodes, bound := l.cfg.Inbox.Known()
	l.tally.Sizes(nodes, bound, l.unanswered, l.cfg.Engine.InFlightEvents())
	l.tally.Refresh(l.cfg.Engine)
	l.answerAsks()
	if l.cfg.Flight != nil {
		l.cfg.Flight.TurnEnded(decides && !l.held.Load(), l.tally.Oversold())
	}
	return taken == l.cfg.Batch || cycles == l.cfg.Cycles
}

// knows notes that the engine knows the initial lists.
func (l *Loop) knows(log klog.Logger) {
	close(l.synced)
	nodes, bound := l.cfg.Inbox.Known()
	log.Info("The cluster is known", "nodes", nodes, "boundPods", bound,
		"sinceLists", time.Since(l.cfg.Inbox.Listed()).Seconds())
}

func (l *Loop) takeOutcomes() []outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.outcomes
	l.outcomes = nil
	return out
}

func (l *Loop) answerAsks() {
	l.mu.Lock()
	asks := l.asks
	l.asks = nil
	l.mu.Unlock()
	for _, a := range asks {
		a.do()
		close(a.done)
	}
}

// step gives one event to the engine and hands its effects on. m has what is known of the event's times.
func (l *Loop) step(log klog.Logger, ev engine.Event, m moments) {
	m.began = l.clock.Now()
	if l.cfg.Flight != nil {
		l.cfg.Flight.Before(ev)
	}
	l.tally.Begin(ev)
	effects := l.cfg.Engine.Step(ev)
	m.ended = l.clock.Now()
	l.tally.End()
	if l.journeys != nil {
		l.journeys.step(ev, effects, m)
	}
	if l.cfg.Flight != nil {
		l.cfg.Flight.After(ev, effects)
	}
	for _, see := range l.cfg.Observers {
		see(ev, effects)
	}
	now := l.clock.Now()
	l.spent.Step(ev, time.Duration(m.ended-m.began), time.Duration(now-m.ended))
	l.tally.Took(ev, effects, l.clock.Time(m.began), time.Duration(now-m.began))
	logStep(log, effects)
	l.planning.carry(effects)
	l.execute(effects)
}

// execute hands effects on.
func (l *Loop) execute(effects []engine.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			l.unanswered++
			l.cfg.Executor.Bind(f)
		case engine.Recall:
			l.cfg.Executor.Recall(f)
		case engine.Prepare:
			l.unanswered++
			l.cfg.Executor.Prepare(f)
		case engine.Release:
			l.cfg.Executor.Release(f)
		case engine.Evict:
			l.evicting++
			l.cfg.Executor.Evict(f)
		case engine.GangStatus:
			l.cfg.Executor.SetGangStatus(f)
		case engine.Condition:
			l.cfg.Executor.SetCondition(f)
		case engine.Nominate:
			l.cfg.Executor.Nominate(f)
		case engine.WriteEvent:
			l.cfg.Executor.WriteEvent(f)
		case engine.Wake:
			l.wake = f.At
		}
	}
}
