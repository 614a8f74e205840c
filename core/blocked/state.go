// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Host is what the package needs of the engine.
type Host interface {
	// Emit appends an effect.
	Emit(message.Effect)
	// Now is the time of the last tick.
	Now() record.Time
	// Pending reports whether a pod of ours is not bound yet.
	Pending(cluster.UID) bool
	// Reconsider asks the gates of a gang again.
	Reconsider(key cluster.GangKey, cause string)
	// SearchWithout returns what a search for the places of a gang would find if some pods were gone. Nothing changes.
	SearchWithout(a gang.Attempt, gone []*cluster.Pod) gang.Answer
}

// Hold says when capacity is held.
type Hold struct {
	// After is how long a gang must have been blocked.
	After record.Time
	// For is how long it is held at most; 0 where none ever is.
	For record.Time
	// Backfill lets pods that are known to end before the gang can start use what is held.
	Backfill bool
}

// ScaleUp limits how long a blocked gang requests nodes from an autoscaler.
type ScaleUp struct {
	// For is how long it does since it was first blocked, and after each pause; 0 means without limit.
	For record.Time
	// Pause is how long it does not. Must be more than 0 if For is.
	Pause record.Time
}

// Config makes Gangs.
type Config struct {
	// Cluster is read as it is at each call.
	Cluster cluster.Snapshot
	Queue   *queue.Queue
	Host    Host
	Hold    Hold
	ScaleUp ScaleUp
	// Sessions: each gang is tried in each session, so that a hold needs no deadline to begin.
	Sessions bool
	// Deadlines are those of the engine. The phases of this package are FirstPhase and those after it, Phases of them.
	Deadlines  *deadline.Heap
	FirstPhase deadline.Phase
}

// The phases of a tick that handle deadlines, counted from Config.FirstPhase.
const (
	phaseHold     deadline.Phase = iota // held capacity; Check follows each event
	phaseScaleUp                        // gangs that request nodes for a limited time
	phaseDue                            // gangs that may hold capacity from now on
	phaseBackfill                       // pods on held capacity that are to be gone
	// Phases is how many there are.
	Phases
)

// Gangs owns what is known of the blocked gangs of one scheduler. It belongs to one goroutine.
type Gangs struct {
	cfg Config // derived: given to New
	// of holds the gangs that were rejected at least once. Invariant: a pod of each waits or has a place.
	of map[cluster.GangKey]*history // kept; gang -> what is known of it
	// hold is nil for none. Invariant: between two steps its gang is in of and waits for capacity, behind no gate.
	hold *hold // kept
	// budget limits the time of all holds.
	budget budget // kept
	// due are the gangs to be tried so that they get the hold. Invariant: these are the ones whose dueAt has come, and
	// the first of them that waits for capacity is about to be tried, unless a gang before it holds capacity.
	due map[cluster.GangKey]bool // derived: of dueAt. Gang -> true
	// look is set if another one of them may be the one to be tried.
	look bool // derived: not set between two steps
}

// history is what is known of a gang that was rejected. It is made by the gang's first rejection and goes with its
// last pod.
type history struct {
	// since is when it was first rejected for want of capacity since it last had a place, 0 for not so. Invariant: it
	// is not later than now.
	since record.Time // kept
	// noHoldUntil is when it may hold capacity again.
	noHoldUntil record.Time // kept
	// noPlace reports whether its last attempt found no place. An attempt beside the hold of another gang that found
	// none does not count.
	noPlace bool // kept
	// firstPlaced is how many pods its best attempt placed at since.
	firstPlaced int // kept
	// spared is where its best attempt put its pods, if it waits for capacity. Invariant: at most mostSpared places.
	spared []sparedPlace // kept
	// scaleUp is when the gang begins or ceases to request nodes; not set if it never does. Invariant: between two
	// steps it is later than now.
	scaleUp deadline.Entry // kept
	// dueAt is when the gang is to be tried, so that it gets the hold: a whole second, or when another gang kept it
	// from that; 0 for not at all. Invariant: it is 0 for the gang that holds capacity.
	dueAt record.Time    // kept
	due   deadline.Entry // derived: at dueAt, as long as that is later than now
	// verdict is how its last search ended.
	verdict gang.Verdict // kept
}

// sparedPlace is a place that a blocked gang could use.
type sparedPlace struct {
	pod  *cluster.Pod // kept
	node string       // kept
}

// hold is capacity that is held for a gang.
type hold struct {
	gang  cluster.GangKey // kept
	since record.Time     // kept
	until deadline.Entry  // kept; Invariant: between two steps it is later than now.
	pods  []*cluster.Pod  // kept; that are nominated for it
	// backfill is who else may use the capacity.
	backfill backfill // kept
}

// New makes Gangs that know of no blocked gang.
func New(cfg Config) *Gangs {
	return &Gangs{cfg: cfg, of: map[cluster.GangKey]*history{}, due: map[cluster.GangKey]bool{}}
}

// historyOf returns what is known of a gang, which is nothing yet at its first rejection.
func (g *Gangs) historyOf(key cluster.GangKey) *history {
	h := g.of[key]
	if h == nil {
		h = &history{
			scaleUp: deadline.Entry{Phase: g.cfg.FirstPhase + phaseScaleUp},
			due:     deadline.Entry{Phase: g.cfg.FirstPhase + phaseDue},
		}
		g.of[key] = h
	}
	return h
}

// unit returns the unit of a gang if it waits, behind no gate and not set aside; nil otherwise.
func (g *Gangs) unit(key cluster.GangKey) *queue.Unit {
	if u := g.cfg.Queue.Gang(key); u != nil && u.Gate == "" && u.Aside == "" {
		return u
	}
	return nil
}

// holder returns the unit that holds capacity; nil when none does.
func (g *Gangs) holder() *queue.Unit {
	if g.hold == nil {
		return nil
	}
	return g.cfg.Queue.Gang(g.hold.gang)
}
