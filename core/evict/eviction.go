// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/record"
)

// State is where an eviction is in its life.
type State uint8

// The states. docs/design/0009-engine-structure.md shows the transitions.
const (
	// Planned: victims were chosen; nothing is requested yet.
	Planned State = iota
	// Requested: a request has no answer yet.
	Requested
	// Draining: all that was requested was carried out, or there was nothing to request; the victims terminate.
	Draining
	// Failed: a victim could not be evicted. The rest is requested again.
	Failed
	// Placed: the unit got its placement by it.
	Placed
	// Wasted: the unit did not get its placement by it.
	Wasted
)

// Unit is for what pods are evicted: a gang, or a pod by itself.
type Unit struct {
	Gang cluster.GangKey // zero for a pod by itself
	Pod  cluster.UID     // empty for a gang
}

func (u Unit) isGang() bool { return u.Gang != (cluster.GangKey{}) }

// Eviction is what is evicted for one unit.
type Eviction struct {
	unit  Unit  // kept
	state State // kept
	// asked is the pod in whose name the requests are, and decision the newest one that requested some.
	asked    record.PodRef // kept
	decision uint64        // kept
	// draw keys the draws of the dry run of a gang: the search for places after it takes the same ones, and so finds
	// the same.
	draw uint64 // kept
	// node is the nominated one of a pod by itself; owner is what losses and waste of it count for.
	node  string // kept
	owner Owner  // kept
	// left are the victims, those of a gang only while they are not gone. order is the order in which those of a pod
	// by itself were added, and after a failure the rest of them.
	left  map[cluster.UID]leaving // kept; victim -> how it goes
	order []cluster.UID           // kept
	// from are the nodes of all victims, evicted is how many of these were to be deleted and are not accounted for yet.
	from    map[string]bool // kept; node -> victims were there
	evicted int             // kept
	// failures is how often in a row requests failed; a gang requests the rest at retry.
	failures int         // kept
	retry    record.Time // kept
	// byUnits: the victims of a pod by itself were searched by preemption units.
	byUnits bool // kept
	// wakeAt is when the deferred wake-up of a pod by itself is due, or was; 0 for none.
	wakeAt record.Time // kept
	// denominated: nominations of others took the capacity of a gang, and its own are gone.
	denominated bool // kept
	// taken: another scheduler bound a pod to a node of it meanwhile.
	taken bool // kept
	stuck      // kept
	// stalled is since when a gang cannot be tried because of its own pods, 0 for not so.
	stalled record.Time // kept
	// stallEnd is when a stalled gang gives its capacity up. Invariant: it is set exactly while stalled is.
	stallEnd deadline.Entry // derived: follows from stalled
}

// leaving is how a victim goes.
type leaving uint8

const (
	deleted   leaving = iota + 1
	withdrawn         // it is decided and not bound yet, and comes back to the queue
	awaited           // it terminates for another reason; no pod was evicted in its place
)

// any reports whether a victim is as asked.
func (ev *Eviction) any(is func(cluster.UID, leaving) bool) bool {
	for uid, how := range ev.left { // order: any match will do
		if is(uid, how) {
			return true
		}
	}
	return false
}

// victims returns the victims of a pod by itself that leave in one way, in the order in which they were added.
func (ev *Eviction) victims(how leaving) (list []cluster.UID) {
	for _, uid := range ev.order {
		if ev.left[uid] == how {
			list = append(list, uid)
		}
	}
	return list
}

// current returns the eviction of a pod by itself that is under way or over, nil for none: what has failed counts no
// more.
func (m *Manager) current(uid cluster.UID) *Eviction {
	if ev := m.of[Unit{Pod: uid}]; ev != nil && ev.state != Failed {
		return ev
	}
	return nil
}

// gang returns the eviction of a gang, nil for none.
func (m *Manager) gang(key cluster.GangKey) *Eviction { return m.of[Unit{Gang: key}] }

// ofGangs returns those of gangs by decision; those that a scheduler before this one requested have none, and go by
// name.
func (m *Manager) ofGangs() []*Eviction {
	if m.gangs == 0 {
		return nil
	}
	list := make([]*Eviction, 0, m.gangs)
	for _, ev := range m.of { // order: sorted below
		if ev.unit.isGang() {
			list = append(list, ev)
		}
	}
	slices.SortFunc(list, func(a, b *Eviction) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), a.unit.Gang.Compare(b.unit.Gang))
	})
	return list
}

// add replaces the unit's last eviction.
func (m *Manager) add(ev *Eviction) {
	m.remove(ev.unit)
	m.of[ev.unit] = ev
	if ev.unit.isGang() {
		m.gangs++
	}
	for uid := range ev.left { // order: each stands apart
		m.byVictim[uid] = append(m.byVictim[uid], ev)
	}
}

// remove forgets the eviction of a unit.
func (m *Manager) remove(u Unit) {
	ev := m.of[u]
	if ev == nil {
		return
	}
	delete(m.of, u)
	m.deadlines.Stop(&ev.stallEnd)
	if u.isGang() {
		m.gangs--
	}
	for uid := range ev.left { // order: each stands apart
		m.unindex(ev, uid)
	}
}

// addVictim adds a victim of a gang, or changes how it leaves. The eviction must be in m.of.
func (m *Manager) addVictim(ev *Eviction, uid cluster.UID, how leaving) {
	if ev.left[uid] == 0 {
		m.byVictim[uid] = append(m.byVictim[uid], ev)
	}
	ev.left[uid] = how
}

// dropVictim forgets a victim of a gang. The eviction must be in m.of.
func (m *Manager) dropVictim(ev *Eviction, uid cluster.UID) {
	if ev.left[uid] == 0 {
		return
	}
	delete(ev.left, uid)
	m.unindex(ev, uid)
}

func (m *Manager) unindex(ev *Eviction, uid cluster.UID) {
	list := slices.DeleteFunc(m.byVictim[uid], func(other *Eviction) bool { return other == ev })
	if m.byVictim[uid] = list; len(list) == 0 {
		delete(m.byVictim, uid)
	}
}

// fail notes that a pod by itself could not have its victims evicted. Their rest stays known, if they were searched by
// preemption units, until the next attempt.
func (m *Manager) fail(ev *Eviction) {
	for uid := range ev.left { // order: each stands apart
		m.unindex(ev, uid)
	}
	var rest []cluster.UID
	if ev.byUnits {
		rest = ev.victims(deleted)
	}
	*ev = Eviction{unit: ev.unit, state: Failed, asked: ev.asked, failures: ev.failures, order: rest}
}

// stays reports whether a victim has its place and does not terminate yet.
func stays(s cluster.Snapshot, uid cluster.UID) bool {
	p, _, _, there := s.PodOn(uid)
	return there && !p.Terminating
}

// there reports whether a pod has its place.
func there(s cluster.Snapshot, uid cluster.UID) bool {
	_, _, _, there := s.PodOn(uid)
	return there
}

// report is the effect that reports useless evictions.
func (ev *Eviction) report(pods int, why string) Waste {
	return Waste{For: ev.asked, Gang: gangName(ev.unit.Gang), Pods: pods, Why: why}
}
