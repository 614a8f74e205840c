// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Host is what the manager needs of the engine.
type Host interface {
	// Emit appends an effect.
	Emit(Effect)
	// Now is the time of the last tick.
	Now() record.Time
	// Profile returns the profile of a scheduler name, nil for that of another scheduler.
	Profile(schedulerName string) *Profile
	// Pending reports whether a pod of ours is not bound yet, and PendingPods how many there are.
	Pending(cluster.UID) bool
	PendingPods() int

	// Quorum returns how many pods of a gang must have a place, given those that wait; DecidedQuorum how many had to
	// by its last decision, 0 for none.
	Quorum(key cluster.GangKey, waiting []*cluster.Pod) int
	DecidedQuorum(cluster.GangKey) int
	// Need returns what a search for the placements of a gang would be asked now.
	Need(*queue.Unit) gang.Need
	// GangsBlocked reports whether gangs wait that were rejected for want of capacity.
	GangsBlocked() bool
	// Reconsider asks the gates of a gang again.
	Reconsider(key cluster.GangKey, cause string)
	// EndHold gives up the capacity that is held for a gang, if any is.
	EndHold(key cluster.GangKey, why string)
	// Denominated shows in the status of pods behind a gate that nothing is nominated for them any more.
	Denominated(pods []*cluster.Pod, reason string)

	// Withdrawable reports whether a pod is decided and its bind was not sent yet, Withdrawn whether it is on its way
	// back to the queue.
	Withdrawable(cluster.UID) bool
	Withdrawn(cluster.UID) bool
	// Withdraw takes a decided pod back, because another gets the capacity: by is how the event names that, to how the
	// record does.
	Withdraw(uid cluster.UID, by, to, node string)
}

// Profile is what the manager needs of a scheduling profile.
type Profile struct {
	Placer     *place.Placer
	Preemption *preempt.Config // nil evicts no pods
	Reservers  []plugin.Reserver
	Placements plugin.Placements
	Foreign    place.Foreign // nil for none
}

// EvictsForGangs reports whether the profile evicts pods for gangs.
func (p *Profile) EvictsForGangs() bool { return p.Preemption != nil && !p.Preemption.PodsOnly }

// Config makes a Manager.
type Config struct {
	Store *cluster.Store
	Queue *queue.Queue
	Host  Host
	Meter place.Meter
	// Deadlines are those of the engine.
	Deadlines *deadline.Heap
	// Seed keys the draws among tied nodes.
	Seed uint64
	// StallTime is for how long the capacity of a gang is kept that cannot be tried.
	StallTime record.Time
}

// Manager owns the evictions of one scheduler. It belongs to one goroutine.
type Manager struct {
	store     *cluster.Store // derived: given to New
	queue     *queue.Queue   // derived: given to New
	host      Host           // derived: given to New
	deadlines *deadline.Heap // derived: given to New
	meter     place.Meter    // derived: given to New
	seed      uint64         // derived: given to New
	stallTime record.Time    // derived: given to New
	finder    units.Finder   // kept; its budgets

	// of are the evictions requested by units that wait, and those that have no answer yet; gangs is how many are of
	// gangs. Invariant: of[u].unit == u.
	of    map[Unit]*Eviction // kept
	gangs int                // derived: counts evictions of gangs
	// byVictim are the evictions that a pod leaves for. Invariant: an entry is there exactly as long as that eviction
	// is.
	byVictim map[cluster.UID][]*Eviction // kept; the order of a list is that of wake-ups; victim -> evictions
	// whole are gangs that go whole and whose eviction was requested, until all of it was carried out.
	whole   map[cluster.GangKey]*wholeEviction // kept; victim -> how far it is
	pending pendingEvictions                   // kept
	pauses  pauses                             // kept
	delays  delays                             // kept
	budgets budgets                            // kept
	// placedByPreemption are pods that got their placement by evictions, evictionRequested those that were to be
	// evicted. Both as long as the pods are there.
	placedByPreemption, evictionRequested map[cluster.UID]bool // kept; pod -> true
	// terminating are the bound pods that terminate, with the time at which that was first seen: by this scheduler's
	// clock, or by the API server's if that is earlier and the pod was not known before.
	terminating map[cluster.UID]record.Time // kept; pod -> since when
	// deferred are the wake-ups that wait a little for victims that terminate. Invariant: they are in the order of
	// their times, and wakeDue is at the first of them.
	deferred []deferredWakeup // kept
	wakeDue  deadline.Entry   // derived: at the first of deferred
	// checks are when victims in units are checked, whether they terminate. Invariant: they are in the order of their
	// times, and checkDue is at the first of them.
	checks   []victimCheck  // kept
	checkDue deadline.Entry // derived: at the first of checks

	synced bool // kept
}

// New makes a manager that knows of no evictions.
func New(cfg Config) *Manager {
	m := &Manager{
		store: cfg.Store, queue: cfg.Queue, host: cfg.Host, deadlines: cfg.Deadlines, meter: cfg.Meter,
		seed: cfg.Seed, stallTime: cfg.StallTime,
		of:       map[Unit]*Eviction{},
		byVictim: map[cluster.UID][]*Eviction{},
		whole:    map[cluster.GangKey]*wholeEviction{},
		pending:  pendingEvictions{of: map[cluster.UID]pending{}, count: map[cluster.GangKey]int{}},
		pauses: pauses{queue: cfg.Queue, emit: cfg.Host.Emit, deadlines: cfg.Deadlines,
			of: map[Owner]*losses{}},
		delays: delays{deadlines: cfg.Deadlines, of: map[Unit]*delay{},
			due: deadline.Entry{Phase: phaseDelays}},
		placedByPreemption: map[cluster.UID]bool{},
		evictionRequested:  map[cluster.UID]bool{},
		terminating:        map[cluster.UID]record.Time{},
		wakeDue:            deadline.Entry{Phase: phaseWakes},
		checkDue:           deadline.Entry{Phase: phaseChecks},
	}
	m.budgets = budgets{queue: cfg.Queue, finder: &m.finder, charges: map[charge][]cluster.UID{}}
	return m
}
