// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"iter"
	"maps"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// View is what questions (package core/question) read of an engine between two Steps. No method changes a decision:
// pods, units and objects are shared and must not be written to, and what Trial and Suppose do to the cluster ends
// with them.
type View struct{ e *Engine }

// View returns the engine's read-only view. It stays valid as long as the engine; its results do until the next Step.
func (e *Engine) View() View { return View{e} }

// Now returns the time of the last tick, or that of the open session.
func (v View) Now() record.Time { return v.e.now }

// Config returns what the engine was made with, defaults included.
func (v View) Config() Config { return v.e.cfg }

// Snapshot reads the cluster.
func (v View) Snapshot() cluster.Snapshot { return v.e.store.Snapshot() }

// Profile returns the profile of a scheduler name with the plugins that the engine added, nil for a name that no
// profile has. The set of profiles never changes, so any goroutine may call it.
func (v View) Profile(schedulerName string) *Profile {
	if prof := v.e.profiles[schedulerName]; prof != nil {
		return &prof.Profile
	}
	return nil
}

// Placer returns the search for nodes of a profile, which must exist, with the caches of the scheduling cycle. It
// must not be used inside a supposition. After a panic in it, the pod must be dropped from it (place.Placer.Drop).
func (v View) Placer(schedulerName string) *place.Placer { return v.e.profiles[schedulerName].placer }

// Waiting is the part of the queue that questions read.
type Waiting interface {
	place.Nominations
	// Lookup returns the unit of a pod and its sub-queue.
	Lookup(uid cluster.UID) (*queue.Unit, record.SubQueue, bool)
	// Gang returns the unit of a gang's waiting pods, nil for none.
	Gang(key cluster.GangKey) *queue.Unit
	// Apart returns the waiting pods of a group that are scheduled one by one.
	Apart(key cluster.GangKey) []*cluster.Pod
	// Each visits the units of a sub-queue in order, EachGang the units of gangs in no order.
	Each(sub record.SubQueue, visit func(*queue.Unit))
	EachGang(visit func(*queue.Unit))
	// Counts returns the number of units per sub-queue.
	Counts() map[record.SubQueue]int
	// InFlightEvents returns the number of events kept for units in flight.
	InFlightEvents() int
	// NominationOf returns the node nominated for a pod, empty for none.
	NominationOf(uid cluster.UID) string
}

// Queue reads the queue and its nominations.
func (v View) Queue() Waiting { return v.e.queue }

// NominationsFor returns the nominations that a search for a node of a pod respects.
func (v View) NominationsFor(p *cluster.Pod) place.Nominations {
	return v.e.blocked.NominationsFor([]*cluster.Pod{p})
}

// Pending returns a pod that waits, is in flight or is assumed, in its newest version; nil for none.
func (v View) Pending(uid cluster.UID) *cluster.Pod { return v.e.pending[uid] }

// AllPending returns these pods in no order.
func (v View) AllPending() iter.Seq[*cluster.Pod] {
	return maps.Values(v.e.pending) // order: the caller expects none
}

// BeforeBind returns what a decided pod waits for before it is bound; none for other pods.
func (v View) BeforeBind(uid cluster.UID) []string {
	if f := v.e.binds.of[uid]; f != nil {
		return f.before
	}
	return nil
}

// Trial opens a trial on the cluster as it is, in which the engine's own caches may be used. The caller must call
// end, which takes back what was done. The revision of the store increases with each change in the trial.
func (v View) Trial() (trial *cluster.Trial, end func()) {
	v.e.store.Begin()
	return v.e.store.Trial(), v.e.store.Abort
}

// Suppose opens a supposition, which the caller must end. Caches that follow the store must be new ones in it.
func (v View) Suppose() *cluster.Supposition { return v.e.store.Suppose() }
