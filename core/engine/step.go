// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/arbiter"
	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/pace"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/record"
)

// New makes an engine that knows no nodes and no pods. One of several instances is the arbiter; see Follow.
func New(cfg Config) *Engine {
	e := newEngine(cfg)
	if cfg.Instances != nil {
		e.becomeArbiter(replica.NewWriter(cfg.Instances.Epoch))
	}
	return e
}

func newEngine(cfg Config) *Engine {
	if cfg.Meter == nil {
		cfg.Meter = NoMeter{}
	}
	if cfg.ClassBytes == 0 {
		cfg.ClassBytes = place.DefaultClassBytes
	}
	if cfg.Instances != nil && cfg.SessionPeriod > 0 {
		panic("engine: one of several instances cannot work in sessions")
	}
	if cfg.Hold == nil {
		cfg.Hold = &Hold{After: blocked.DefaultHoldAfter, For: blocked.DefaultHoldFor, Backfill: true}
	}
	e := &Engine{
		cfg:      cfg,
		store:    cluster.NewStore(),
		profiles: map[string]*profile{},
		pending:  map[cluster.UID]*cluster.Pod{},
	}
	e.binds = binds{e, map[cluster.UID]*flight{}, map[cluster.UID]*flight{}, &e.deadlines}
	e.gangs = gangs{e, map[cluster.GangKey]*gangState{}, map[cluster.UID]*cluster.Pod{}}
	e.search.window = place.NewWindow()
	e.store.SetMeter(cfg.Meter)
	waking := map[string]queue.Profile{}
	for _, p := range cfg.Profiles {
		if e.profiles[p.Name] != nil {
			panic(fmt.Sprintf("engine: two profiles of the name %q", p.Name))
		}
		if p.Foreign != nil {
			p.Foreign = e.listener(p.Foreign)
			p.Wakers = append(slices.Clone(p.Wakers), place.ForeignWaker{})
		}
		if p.Preemption != nil && !p.Preemption.Sync {
			gate := plugin.DefaultPreemption{Preempting: func(uid cluster.UID) bool { return e.evictions.Preempting(uid) }}
			p.Gates, p.Wakers = append(slices.Clone(p.Gates), gate), append(slices.Clone(p.Wakers), gate)
		}
		if cfg.Instances != nil {
			lent := func(p *cluster.Pod) (string, bool) { return e.role.lent(p) }
			p.Gates = append(slices.Clone(p.Gates), arbiter.Gate{Lent: lent})
		}
		placer := place.New(place.Profile{
			Filters: p.Filters, Scorers: p.Scorers, Search: p.Search, Window: e.search.window, Foreign: p.Foreign,
		}, e.cfg.Meter, cfg.ClassBytes)
		e.profiles[p.Name] = &profile{p, placer, evict.Profile{
			Placer: placer, Preemption: p.Preemption, Reservers: p.Reservers, Foreign: p.Foreign,
			Placements: p.Placements,
		}}
		waking[p.Name] = wakes(p)
	}
	e.queue = queue.New(queue.Config{
		InitialBackoff:       cfg.InitialBackoff,
		MaxBackoff:           cfg.MaxBackoff,
		UnschedulableTimeout: cfg.UnschedulableTimeout,
		PopFromBackoff:       true,
		Less:                 cfg.Less,
		OldestFirst:          cfg.SessionPeriod > 0,
		Profiles:             waking,
		Gangs:                gangRules{e},
		State:                e.store.Snapshot(),
		Meter:                e.cfg.Meter,
		Nominator:            cfg.Nominator,
	})
	e.evictions = evict.New(evict.Config{
		Store: e.store, Queue: e.queue, Host: evictHost{e}, Meter: e.cfg.Meter, Deadlines: &e.deadlines, Seed: cfg.Seed,
		StallTime: cmp.Or(cfg.Hold.For, blocked.DefaultHoldFor), // as long as a hold, also where none is made
	})
	e.blocked = blocked.New(blocked.Config{
		Cluster: e.store.Snapshot(), Queue: e.queue, Host: blockedHost{e}, Hold: *cfg.Hold, ScaleUp: cfg.ScaleUp,
		Sessions: cfg.SessionPeriod > 0, Deadlines: &e.deadlines, FirstPhase: phaseBlocked,
	})
	e.pace = pace.New(e.step, &e.count.synced, e.queue, cfg.SessionPeriod)
	e.role = alone{e}
	return e
}

func wakes(p Profile) queue.Profile {
	out := queue.Profile{Gates: p.Gates}
	for _, w := range p.Wakers {
		out.Wakes = append(out.Wakes, queue.PluginWakes{Plugin: w.Name(), Wakes: w.Wakes()})
	}
	return out
}

// Step takes one event and returns the effects it asks for, good until the next Step.
func (e *Engine) Step(ev Event) []Effect {
	clear(e.out.effects)
	e.out.effects = e.out.effects[:0]
	if e.cfg.Answers != nil {
		e.cfg.Answers.Begin()
	}
	e.pace.Take(ev)
	e.role.proceed(ev)
	e.blocked.Check()
	e.reportFreed()
	e.blocked.TryDue() // after what came free has woken gangs
	e.tellMoves()
	at, _ := e.queue.NextTick()
	if at = e.pace.Wake(deadline.First(at, e.deadlines.Next())); at != 0 && at != e.out.wake {
		e.out.wake = at
		e.emit(Wake{At: at})
	}
	if e.cfg.Answers != nil {
		if answers := e.cfg.Answers.End(); len(answers) > 0 {
			e.emit(Heard{Hosted: answers})
		}
	}
	e.role.end()
	return e.out.effects
}

// step runs one event as a transaction.
func (e *Engine) step(ev Event) { e.atomic(ev, func(inHand **queue.Unit) { e.handle(ev, inHand) }) }

// atomic runs what belongs to an event as a transaction. A panic in it rolls the store back; a broken invariant of the
// store is not contained.
func (e *Engine) atomic(ev Event, do func(inHand **queue.Unit)) {
	e.store.Begin()
	var inHand *queue.Unit
	defer func() {
		r := recover()
		if r == nil {
			e.store.Commit()
			return
		}
		if broken, ok := r.(cluster.Broken); ok {
			panic(broken)
		}
		e.store.Abort()
		e.contain(ev, inHand, fmt.Sprint(r))
	}()
	e.count.events++
	do(&inHand)
	for _, key := range e.queue.TakeShut() {
		e.blocked.Changed(key)
	}
	e.reportFreed()
}

// handle handles an event.
func (e *Engine) handle(ev Event, inHand **queue.Unit) {
	switch ev := ev.(type) {
	case NodeSet:
		e.setNode(ev.Node)
	case NodeGone:
		e.deleteNode(ev.Name)
	case PodSet:
		e.setPod(ev.Pod)
	case PodGone:
		e.deletePod(cluster.UID(ev.Pod.UID))
	case ObjectSet:
		e.setObject(ev.Object)
	case ObjectGone:
		e.deleteObject(ev.Kind, ev.Key)
	case WritesDone:
		e.binds.writesDone(ev)
	case BindDone:
		e.binds.bindDone(ev)
	case EvictDone:
		e.evictDone(ev)
	case Activate:
		e.queue.Activate(ev.Pods)
		e.binds.askAgain(e.binds.allWaiting())
	case Nominations:
		e.nominateOthers(ev.List)
	case ForeignObject:
		e.otherChanged(ev)
	case Tick:
		e.tick(ev.Now)
	case Synced:
		e.count.synced = true
		e.evictions.TakeOver()
	case Cycle:
		e.cycle(inHand)
	default:
		if !e.role.handle(ev) {
			panic(fmt.Sprintf("engine: event of type %T", ev))
		}
	}
}

// contain deals with a panic while an event was handled: the pod in hand waits until it changes, and the executor
// of effects is notified.
func (e *Engine) contain(ev Event, inHand *queue.Unit, cause string) {
	object := message.Subject(ev)
	if inHand != nil {
		object = inHand.Members[0].Key()
	}
	e.trouble(object, "panic while handling engine."+reflect.TypeOf(ev).Name(), cause)
	if inHand == nil {
		return
	}
	p := inHand.Members[0]
	for _, m := range inHand.Members {
		e.profiles[m.Spec.SchedulerName].placer.Drop(m)
	}
	e.evictions.Abandon(evict.Unit{Gang: inHand.Gang})
	e.evictions.Abandon(evict.Unit{Pod: p.UID}) // what was requested was requested; nothing must hold the pod back
	message := "set aside until the pod changes: handling it panicked: " + cause
	e.queue.SetAside(inHand, message)
	e.blocked.Changed(inHand.Gang)
	e.decided(record.Decision{
		Number: e.count.decisions, At: e.now, Revision: e.store.Snapshot().Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Attempt: inHand.Attempts, Verdict: record.SetAside, Message: message,
	})
	for _, m := range inHand.Members {
		e.tell(m, ReasonError, message, notShown(m))
	}
}

func (e *Engine) tick(now record.Time) {
	if now < e.now {
		return // clocks step back; the engine's does not
	}
	e.now = now
	e.store.SetNow(now)
	e.queue.Tick(now)
	e.tellWaiting()
	due := e.deadlines.Due(now)
	e.evictions.Tick(due)
	e.role.due()
	if due&(1<<phaseBinds) != 0 {
		e.binds.askAgain(e.binds.due(now))
	}
	e.blocked.Tick(due)
}

// Now is the time of the last tick, or that of the session under way.
func (e *Engine) Now() record.Time { return e.now }

// Ready reports whether a Cycle would find a unit.
func (e *Engine) Ready() bool { return e.count.synced && e.role.ready() && e.pace.Ready() }

// Binding is the number of decided pods whose bind has no outcome.
func (e *Engine) Binding() int { return len(e.binds.of) }

// InFlightEvents returns the number of events kept for units in flight; 0 at rest.
func (e *Engine) InFlightEvents() int { return e.queue.InFlightEvents() }

// Snapshot reads the store; good until the next Step.
func (e *Engine) Snapshot() cluster.Snapshot { return e.store.Snapshot() }
