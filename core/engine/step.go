// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// New makes an engine that knows no nodes and no pods.
func New(cfg Config) *Engine {
	if cfg.Meter == nil {
		cfg.Meter = NoMeter{}
	}
	if cfg.ClassBytes == 0 {
		cfg.ClassBytes = place.DefaultClassBytes
	}
	if cfg.Hold == nil {
		cfg.Hold = &Hold{After: blocked.DefaultHoldAfter, For: blocked.DefaultHoldFor}
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
			p.Foreign = &listener{p.Foreign, e}
			p.Wakers = append(slices.Clone(p.Wakers), foreignWakes{})
		}
		if p.Preemption != nil && !p.Preemption.Sync {
			gate := plugin.DefaultPreemption{Preempting: func(uid cluster.UID) bool { return e.evictions.Preempting(uid) }}
			p.Gates, p.Wakers = append(slices.Clone(p.Gates), gate), append(slices.Clone(p.Wakers), gate)
		}
		placer := place.New(place.Profile{
			Filters: p.Filters, Scorers: p.Scorers, Search: p.Search, Window: e.search.window, Foreign: p.Foreign,
		}, e.cfg.Meter, cfg.ClassBytes)
		e.profiles[p.Name] = &profile{p, placer, evict.Profile{
			Placer: placer, Preemption: p.Preemption, Reservers: p.Reservers, Foreign: p.Foreign,
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
	})
	e.evictions = evict.New(evict.Config{
		Store: e.store, Queue: e.queue, Host: evictHost{e}, Meter: e.cfg.Meter, Deadlines: &e.deadlines, Seed: cfg.Seed,
		StallTime: cmp.Or(cfg.Hold.For, blocked.DefaultHoldFor), // as long as a hold, also where none is made
	})
	e.blocked = blocked.New(blocked.Config{
		Cluster: e.store.Snapshot(), Queue: e.queue, Host: blockedHost{e}, Hold: *cfg.Hold, ScaleUp: cfg.ScaleUp,
		Deadlines: &e.deadlines, FirstPhase: phaseBlocked,
	})
	e.pace = steady{e}
	if cfg.SessionPeriod > 0 {
		e.pace = &sessions{e: e, period: cfg.SessionPeriod}
	}
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
	e.pace.take(ev)
	e.blocked.Check()
	e.reportFreed()
	e.tellMoves()
	at, _ := e.queue.NextTick()
	if at = e.pace.wake(deadline.First(at, e.deadlines.Next())); at != 0 && at != e.out.wake {
		e.out.wake = at
		e.emit(Wake{At: at})
	}
	return e.out.effects
}

// step runs one event as a transaction. A panic in it rolls the store back; a broken invariant of the store is not
// contained.
func (e *Engine) step(ev Event) {
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
	case Tick:
		e.tick(ev.Now)
	case Synced:
		e.count.synced = true
		e.evictions.TakeOver()
	case Cycle:
		e.cycle(&inHand)
	default:
		panic(fmt.Sprintf("engine: event of type %T", ev))
	}
	for _, key := range e.queue.TakeShut() {
		e.blocked.Changed(key)
	}
	e.reportFreed()
}

// contain deals with a panic while an event was handled: the pod in hand waits until it changes, and the executor
// of effects is notified.
func (e *Engine) contain(ev Event, inHand *queue.Unit, cause string) {
	e.trouble(objectOf(ev, inHand), "panic while handling engine."+reflect.TypeOf(ev).Name(), cause)
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

func objectOf(ev Event, inHand *queue.Unit) string {
	switch ev := ev.(type) {
	case NodeSet:
		return ev.Node.Name
	case NodeGone:
		return ev.Name
	case PodSet:
		return ev.Pod.Key()
	case PodGone:
		return ev.Pod.Key()
	case BindDone:
		return ev.Pod.Key()
	case EvictDone:
		return ev.For.Key()
	case WritesDone:
		return ev.Pod.Key()
	case ObjectSet:
		return fmt.Sprint(cluster.KindOf(ev.Object), " ", cluster.KeyOf(ev.Object))
	case ObjectGone:
		return fmt.Sprint(ev.Kind, " ", ev.Key)
	}
	if inHand != nil {
		return inHand.Members[0].Key()
	}
	return ""
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
	if due&(1<<phaseBinds) != 0 {
		e.binds.askAgain(e.binds.due(now))
	}
	e.blocked.Tick(due)
}

// Now is the time of the last tick, or that of the session under way.
func (e *Engine) Now() record.Time { return e.now }

// Ready reports whether a Cycle would find a unit.
func (e *Engine) Ready() bool { return e.count.synced && e.pace.ready() }

// Binding is the number of decided pods whose bind has no outcome.
func (e *Engine) Binding() int { return len(e.binds.of) }

// InFlightEvents returns the number of events kept for units in flight; 0 at rest.
func (e *Engine) InFlightEvents() int { return e.queue.InFlightEvents() }

// Snapshot reads the store; good until the next Step.
func (e *Engine) Snapshot() cluster.Snapshot { return e.store.Snapshot() }
