// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
	// Style is how gangs get their places, for comparison; nil is one decision for all members.
	Style *Style
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
	// binding holds the decided pods whose bind has no outcome yet; the same UID may be in the store as assumed, as
	// confirmed (the watch was faster) or not at all (the pod was deleted meanwhile).
	binding map[cluster.UID]*flight
	// waiters holds those of binding that wait for something before they are bound, and some that did.
	waiters map[cluster.UID]*flight // pod -> its flight
	// gangs is what is remembered of gangs with a place, and of those whose object was told something.
	gangs map[cluster.GangKey]*gangState
	// evictions are those asked for by pods that are pending, and those that have no answer yet.
	evictions map[cluster.UID]*eviction // preemptor -> its last eviction
	// victimsOf are the victims of evictions. An entry is there exactly as long as that eviction is.
	victimsOf map[cluster.UID][]cluster.UID // victim -> the pods that it is to make room for
	// knocks are in the order of their times.
	knocks []knock
	// clearances are what gangs asked for that wait, and those that have no answer yet.
	clearances map[cluster.GangKey]*clearance // gang -> its last eviction
	victims    preempt.Finder
	// departures are gangs that go whole and whose eviction was asked for, until all of it was carried out.
	departures map[cluster.GangKey]*departure // victim -> how far it is
	doomed     map[cluster.UID]doomed         // pod of a gang -> the eviction that was asked for
	doomedOf   map[cluster.GangKey]int        // gang -> how many of doomed are of it, never 0
	// thrash is what befell room that was made by evictions; settled are pods that got their place by them, asked those
	// that were to be evicted. Both as long as the pods are there.
	thrash         map[thrashKey]*thrash // owner -> its losses
	settled, asked map[cluster.UID]bool  // pod -> true
	// paused are the owners for whose pause's end somebody waits; thrashSwept is when owners were last forgotten.
	paused      []thrashKey
	thrashSwept record.Time
	// hold is the room held for a blocked gang; nil for none.
	hold *hold
	// barred are pods, or the first ones of gangs, that evict nobody because of strict budgets.
	barred []record.PodRef
	// charges are the victims that strict budgets were charged with. An entry is there until the eviction has its answer.
	charges map[charged][]cluster.UID // eviction -> victims
	// failures is how often in a row evictions for a pod failed.
	failures map[cluster.UID]int // preemptor -> failures
	// rests are the victims in units of evictions that failed: the rest of them is asked for first (answer A15).
	rests map[cluster.UID][]cluster.UID // preemptor -> victims
	// looks are when victims in units are looked at, whether they go; the first is the next.
	looks []look
	// lobby is where members of gangs wait for each other, where a Style has them decided one by one; nil otherwise.
	lobby *lobby
	// window is the order in which searches that do not look at all nodes go about them.
	window *place.Window
	barren barren
	plain  bool // of tests: no look stands for another, see barren

	now       record.Time
	decisions uint64
	synced    bool
	wake      record.Time // the last Wake asked for, 0 none
	heard     []Answer    // what foreign code answered in this cycle
	effects   []Effect
}

// profile is a Profile at work.
type profile struct {
	Profile
	placer *place.Placer
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
		binding:  map[cluster.UID]*flight{},
		waiters:  map[cluster.UID]*flight{},
		gangs:    map[cluster.GangKey]*gangState{},
		window:   place.NewWindow(),

		evictions:  map[cluster.UID]*eviction{},
		rests:      map[cluster.UID][]cluster.UID{},
		failures:   map[cluster.UID]int{},
		victimsOf:  map[cluster.UID][]cluster.UID{},
		clearances: map[cluster.GangKey]*clearance{},
		departures: map[cluster.GangKey]*departure{},
		edited:     map[cluster.UID]*cluster.Pod{},
		thrash:     map[thrashKey]*thrash{},
		settled:    map[cluster.UID]bool{},
		asked:      map[cluster.UID]bool{},
		charges:    map[charged][]cluster.UID{},
		doomed:     map[cluster.UID]doomed{},
		doomedOf:   map[cluster.GangKey]int{},
	}
	e.lobby = newLobby(e, cfg.Style)
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
			gate := plugin.DefaultPreemption{Preempting: e.preempting}
			p.Gates, p.Wakers = append(slices.Clone(p.Gates), gate), append(slices.Clone(p.Wakers), gate)
		}
		e.lobby.join(&p)
		e.profiles[p.Name] = &profile{p, place.New(place.Profile{
			Filters: p.Filters, Scorers: p.Scorers, Search: p.Search, Window: e.window, Foreign: p.Foreign,
		}, e.meter, cfg.ClassBytes)}
		waking[p.Name] = wakes(p)
	}
	var gangs queue.Gangs = gangRules{e}
	if e.lobby != nil {
		gangs = nil // each pod is queued by itself
	}
	e.queue = queue.New(queue.Config{
		InitialBackoff:       cfg.InitialBackoff,
		MaxBackoff:           cfg.MaxBackoff,
		UnschedulableTimeout: cfg.UnschedulableTimeout,
		PopFromBackoff:       true,
		Less:                 e.lobby.order(cfg.Less),
		OldestFirst:          cfg.SessionPeriod > 0,
		Profiles:             waking,
		Gangs:                gangs,
		State:                e.store.Snapshot(),
		Meter:                e.meter,
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
	if e.hold != nil && (!ok || e.hold.until < at) {
		at, ok = e.hold.until, true
	}
	if end := e.nextStall(); end != 0 && (!ok || end < at) {
		at, ok = end, true
	}
	if hear := e.nextKnock(); hear != 0 && (!ok || hear < at) {
		at, ok = hear, true
	}
	if look := e.nextFinish(); look != 0 && (!ok || look < at) {
		at, ok = look, true
	}
	if end := e.nextPauseEnd(); end != 0 && (!ok || end < at) {
		at, ok = end, true
	}
	if look := e.nextLook(); look != 0 && (!ok || look < at) {
		at, ok = look, true
	}
	if ask := e.nextAsk(); ask != 0 && (!ok || ask < at) {
		at, ok = ask, true
	}
	if look := e.lobby.nextLook(); look != 0 && (!ok || look < at) {
		at, ok = look, true
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
	looked := e.forgetBarren()
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
		e.findDepartures()
		e.findClearances()
	case Cycle:
		e.cycle(&inHand, looked)
	default:
		panic(fmt.Sprintf("engine: event of type %T", ev))
	}
	for _, key := range e.queue.TakeShut() {
		e.otherWaits(key)
	}
	e.reportFreed()
	e.lobby.settle()
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
	delete(e.clearances, inHand.Gang)
	e.endEviction(p.UID) // what was asked for has been asked for; nothing must hold the pod back
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

// emit asks for an effect, after telling of the moves that came before it.
func (e *Engine) emit(f Effect) {
	e.tellMoves()
	if f, is := f.(Evict); is {
		for _, v := range f.Victims {
			e.asked[cluster.UID(v.UID)] = true
		}
		if !f.Undo && !f.Finish {
			f.Whole = e.departing(f)
		}
		e.effects = append(e.effects, f)
		e.doom(f)
		return
	}
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
	e.endPauses()
	e.finishDepartures()
	e.endStalled()
	e.hearKnocks()
	e.lookAtVictims()
	e.askAgain(false)
	e.lobby.tick()
}

// Now is the time of the last tick, or that of the session under way.
func (e *Engine) Now() record.Time { return e.now }

// Ready tells whether a Cycle would find a unit.
func (e *Engine) Ready() bool { return e.synced && e.pace.ready() }

// Binding is the number of decided pods whose bind has no outcome.
func (e *Engine) Binding() int { return len(e.binding) }

// Snapshot reads the store; good until the next Step.
func (e *Engine) Snapshot() cluster.Snapshot { return e.store.Snapshot() }
