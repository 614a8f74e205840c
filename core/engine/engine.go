// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Profile is a scheduling profile with its plugins made and ordered.
type Profile struct {
	// Name is the schedulerName of the pods it takes.
	Name    string
	Gates   []plugin.Gate
	Filters []plugin.Filter
	Scorers []place.Scorer
	// Wakers are the plugins whose events wake the pods they rejected.
	Wakers []plugin.Waker
	// Reservers take what a pod needs besides room, in this order.
	Reservers []plugin.Reserver
	// Remediers are asked, in this order, when a pod fits nowhere; the first that can do something is the last asked.
	Remediers []plugin.Remedier
	// Preemption is asked after the Remediers; nil evicts nobody.
	Preemption *preempt.Config
	// Search says which of the nodes that fit are ranked.
	Search place.Search
	// Foreign is code that is not native and takes part in this profile's decisions; nil for none.
	Foreign Foreign
}

// Config makes an Engine. All switches are resolved here.
type Config struct {
	// Seed keys the draws among tied nodes.
	Seed     uint64
	Profiles []Profile
	// Less orders the queue of all profiles.
	Less plugin.Less
	// The first and the longest backoff; a longest of 0 turns backoff off.
	InitialBackoff, MaxBackoff record.Time
	// UnschedulableTimeout is how long a rejected pod waits for an event before it is tried anyway.
	UnschedulableTimeout record.Time
	// ClassBytes bounds the memory of classes per profile; 0 means place.DefaultClassBytes.
	ClassBytes int
	// Hold says when room is held for a gang that is blocked; nil means the default.
	Hold *Hold
	// SessionPeriod is the time from the end of a session to the start of the next; 0 means that there are no sessions, and
	// units are tried as soon as they are ready.
	SessionPeriod record.Time
	// Meter may be nil.
	Meter Meter
}

// Engine is the scheduling loop as a state machine. It belongs to one goroutine.
type Engine struct {
	cfg      Config
	meter    Meter
	store    *cluster.Store
	queue    *queue.Queue
	pace     pace
	profiles map[string]*profile // schedulerName -> profile

	// pending holds the newest version of each pod that waits, is in flight or is assumed; a pod leaves when it is seen
	// bound or gone.
	pending map[cluster.UID]*cluster.Pod
	// edited holds those of pending that say that they are in another gang than the one in which they are kept; see keepGang.
	edited map[cluster.UID]*cluster.Pod // pod -> its newest version, as it says
	binds  binds
	// gangs is what is remembered of gangs with a place, and of those whose object was told something.
	gangs     map[cluster.GangKey]*gangState
	evictions *evict.Manager
	// deadlines are all times at which something is to happen, but for those of the queue and of sessions.
	deadlines deadline.Heap
	// hold is the room held for a blocked gang; nil for none.
	hold *hold
	// window is the order in which searches that do not look at all nodes go about them.
	window   *place.Window
	negative negativeResult

	now       record.Time
	decisions uint64
	steps     uint64 // events handled
	synced    bool
	wake      record.Time // the last Wake asked for, 0 none
	heard     []Answer    // what foreign code answered in this cycle
	effects   []Effect
}

// The phases of a tick that handle deadlines; those of evictions come first.
const (
	phaseBinds = evict.Phases + iota // decided pods that wait for something
	phaseHold                        // held capacity; endHold follows each event
)

// profile is a Profile at work.
type profile struct {
	Profile
	placer *place.Placer
	evicts evict.Profile // what core/evict needs of it
}

// New makes an engine that knows no nodes and no pods.
func New(cfg Config) *Engine {
	if cfg.Meter == nil {
		cfg.Meter = NoMeter{}
	}
	if cfg.ClassBytes == 0 {
		cfg.ClassBytes = place.DefaultClassBytes
	}
	if cfg.Hold == nil {
		cfg.Hold = &Hold{After: DefaultHoldAfter, For: DefaultHoldFor}
	}
	e := &Engine{
		cfg:      cfg,
		meter:    cfg.Meter,
		store:    cluster.NewStore(),
		profiles: map[string]*profile{},
		pending:  map[cluster.UID]*cluster.Pod{},
		gangs:    map[cluster.GangKey]*gangState{},
		window:   place.NewWindow(),

		edited: map[cluster.UID]*cluster.Pod{},
	}
	e.binds = binds{map[cluster.UID]*flight{}, map[cluster.UID]*flight{}, &e.deadlines}
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
			Filters: p.Filters, Scorers: p.Scorers, Search: p.Search, Window: e.window, Foreign: p.Foreign,
		}, e.meter, cfg.ClassBytes)
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
		Meter:                e.meter,
	})
	e.evictions = evict.New(evict.Config{
		Store: e.store, Queue: e.queue, Host: evictHost{e}, Meter: e.meter, Deadlines: &e.deadlines, Seed: cfg.Seed,
		StallTime: cmp.Or(cfg.Hold.For, DefaultHoldFor), // as long as a hold, also where none is made
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
	clear(e.effects)
	e.effects = e.effects[:0]
	e.pace.take(ev)
	e.endHold()
	e.reportFreed()
	e.tellMoves()
	at, ok := e.queue.NextTick()
	if next := e.deadlines.Next(); next != 0 && (!ok || next < at) {
		at, ok = next, true
	}
	if at, ok = e.pace.wake(at, ok); ok && at != e.wake {
		e.wake = at
		e.emit(Wake{at})
	}
	return e.effects
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
	e.steps++
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
		e.writesDone(ev)
	case BindDone:
		e.bindDone(ev)
	case EvictDone:
		e.evictDone(ev)
	case Activate:
		e.queue.Activate(ev.Pods)
	case Tick:
		e.tick(ev.Now)
	case Synced:
		e.synced = true
		e.evictions.TakeOver()
	case Cycle:
		e.cycle(&inHand)
	default:
		panic(fmt.Sprintf("engine: event of type %T", ev))
	}
	for _, key := range e.queue.TakeShut() {
		e.otherWaits(key)
	}
	e.reportFreed()
}

// contain deals with a panic while an event was handled: the pod in hand waits until it changes, and the world is told.
func (e *Engine) contain(ev Event, inHand *queue.Unit, cause string) {
	e.emit(Trouble{Object: objectOf(ev, inHand), What: fmt.Sprintf("panic while handling %T", ev), Details: cause})
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
	e.otherWaits(inHand.Gang)
	e.decided(record.Decision{
		Number: e.decisions, At: e.now, Revision: e.store.Snapshot().Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Attempt: inHand.Attempts, Verdict: record.SetAside, Message: message,
	})
	for _, m := range inHand.Members {
		e.tell(m, ReasonError, message, false)
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

// emit appends an effect, after the moves that came before it.
func (e *Engine) emit(f Effect) {
	e.tellMoves()
	e.effects = append(e.effects, f)
}

func (e *Engine) tellMoves() {
	for _, m := range e.queue.TakeMoves() {
		e.effects = append(e.effects, Moved{m})
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
	if due&(1<<phaseBinds) != 0 {
		e.askAgain(e.binds.due(now))
	}
}

// Now is the time of the last tick, or that of the session under way.
func (e *Engine) Now() record.Time { return e.now }

// Ready tells whether a Cycle would find a unit.
func (e *Engine) Ready() bool { return e.synced && e.pace.ready() }

// Binding is the number of decided pods whose bind has no outcome.
func (e *Engine) Binding() int { return len(e.binds.of) }

// InFlightEvents returns the number of events kept for units in flight; 0 at rest.
func (e *Engine) InFlightEvents() int { return e.queue.InFlightEvents() }

// Snapshot reads the store; good until the next Step.
func (e *Engine) Snapshot() cluster.Snapshot { return e.store.Snapshot() }
