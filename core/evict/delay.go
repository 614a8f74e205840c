// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// An autoscaler creates nodes for pods with the condition Unschedulable. A pod that evicts others at once never has
// that condition for long enough, so the autoscaler replaces the victims' capacity instead. With preempt.Config.After a
// unit evicts no pods before it has been unschedulable for that long.
//
// The time counts from the first attempt that rejected the unit, until it is bound or gone: other attempts, an attempt
// that placed it and whose bind failed, and pods that join a gang do not start it anew. What an earlier process saw is
// read from the pods' conditions. Those show the time of a gate too (the status False is the same), so they count only
// for units that this process has not rejected yet.
//
// A unit for which a search found victims, or that did not search because of the delay, is tried at its end. Ends are
// whole seconds: units that were rejected in one burst are then tried in the order of the queue, and not in the order
// in which they were rejected.
//
// Rejected: the creation of the pod as the start, since a pod that waited behind a gate was no reason for new nodes; a
// search for the victims of gangs during the delay, whose only use would be the message.

// DelayedMessage has no time in it: a condition that changes with the time would be written each time.
const DelayedMessage = "preemption: no pod is evicted for it before it has waited for new nodes (preemption.after)."

// delays knows since when units have been unschedulable, of profiles that delay evictions.
type delays struct {
	deadlines *deadline.Heap  // derived: given to New
	of        map[Unit]*delay // kept
	// ends are the ends that a unit waits for. Invariant: they are in the order of their times, none is without a unit,
	// u is in the one at of[u].end exactly if that is not 0, and due is at the first of them.
	ends []*delayEnd    // derived: the units by the ends of their delays
	due  deadline.Entry // derived: at the first of ends
}

// delay is that of one unit.
type delay struct {
	since record.Time // kept
	end   record.Time // kept; when the unit is to be tried again, 0 for no time
}

// delayEnd is a time at which delays end.
type delayEnd struct {
	at    record.Time
	units map[Unit]bool // unit -> true
}

// begin notes that a unit was rejected. since is when it was first, as far as that is known without this package.
func (ds *delays) begin(u Unit, since record.Time) {
	if ds.of[u] == nil {
		ds.of[u] = &delay{since: since}
	}
}

// wait has a unit tried again at the end of its delay. begin must have been called for it.
func (ds *delays) wait(u Unit, until record.Time) {
	d := ds.of[u]
	if d.end == until {
		return
	}
	ds.leave(u)
	d.end = until
	i, known := ds.find(until)
	if !known {
		ds.ends = slices.Insert(ds.ends, i, &delayEnd{until, map[Unit]bool{}})
		ds.deadlines.Set(&ds.due, ds.ends[0].at)
	}
	ds.ends[i].units[u] = true
}

// leave has a unit wait for no end.
func (ds *delays) leave(u Unit) {
	d := ds.of[u]
	if d.end == 0 {
		return
	}
	i, _ := ds.find(d.end)
	d.end = 0
	if delete(ds.ends[i].units, u); len(ds.ends[i].units) == 0 {
		ds.ends = slices.Delete(ds.ends, i, i+1)
		ds.setDue()
	}
}

func (ds *delays) find(at record.Time) (i int, known bool) {
	return slices.BinarySearchFunc(ds.ends, at, func(e *delayEnd, at record.Time) int { return cmp.Compare(e.at, at) })
}

func (ds *delays) setDue() {
	ds.deadlines.Stop(&ds.due)
	if len(ds.ends) > 0 {
		ds.deadlines.Set(&ds.due, ds.ends[0].at)
	}
}

// remove forgets a unit that is bound or gone.
func (ds *delays) remove(u Unit) {
	if ds.of[u] != nil {
		ds.leave(u)
		delete(ds.of, u)
	}
}

// takeOver returns the units whose delays have ended, which wait for no end any more.
func (ds *delays) takeOver(now record.Time) (over []Unit) {
	n := 0
	for ; n < len(ds.ends) && ds.ends[n].at <= now; n++ {
		for u := range ds.ends[n].units { // order: sorted below
			ds.of[u].end = 0
			over = append(over, u)
		}
	}
	ds.ends = slices.Delete(ds.ends, 0, n)
	ds.setDue()
	slices.SortFunc(over, func(a, b Unit) int { return cmp.Or(a.Gang.Compare(b.Gang), cmp.Compare(a.Pod, b.Pod)) })
	return over
}

// delayEnds returns the end of a delay that began at a time, rounded up to a whole second; 0 if it is over.
func (m *Manager) delayEnds(prof *Profile, since record.Time) record.Time {
	end := since + prof.Preemption.After
	if part := end % record.Second; part > 0 {
		end += record.Second - part
	}
	if end <= m.host.Now() {
		return 0
	}
	return end
}

// rejectedSince returns since when a unit has been unschedulable, given its pods of which need must have a place. A
// unit that was not rejected yet is taken to be rejected now.
func (m *Manager) rejectedSince(u Unit, pods []*cluster.Pod, need int) record.Time {
	if d := m.delays.of[u]; d != nil {
		return d.since
	}
	now := m.host.Now()
	times := make([]record.Time, 0, len(pods))
	for _, p := range pods {
		if at := p.UnschedulableSince; at != 0 && at < now {
			times = append(times, at)
		} else {
			times = append(times, now)
		}
	}
	slices.Sort(times)
	if need > len(times) {
		return now
	}
	return times[max(need, 1)-1]
}

// delayOf notes that a unit was rejected, and returns until when it evicts no pods; 0 if it may.
func (m *Manager) delayOf(prof *Profile, u Unit, pods []*cluster.Pod, need int) record.Time {
	if prof.Preemption.After == 0 {
		return 0
	}
	m.delays.begin(u, m.rejectedSince(u, pods, need))
	return m.delayEnds(prof, m.delays.of[u].since)
}

// delayedUntil is delayOf for a question: it notes nothing.
func (m *Manager) delayedUntil(prof *Profile, u Unit, pods []*cluster.Pod, need int) record.Time {
	if prof.Preemption.After == 0 {
		return 0
	}
	return m.delayEnds(prof, m.rejectedSince(u, pods, need))
}

// delayed is the plan of a unit that evicts no pods before a time, at which it is tried again.
func (m *Manager) delayed(u Unit, until record.Time) Plan {
	m.delays.wait(u, until)
	return Plan{Verdict: preempt.NotHelpful, Message: DelayedMessage, Delayed: until}
}

// delayOfGang is delayOf for the gang of an attempt.
func (m *Manager) delayOfGang(prof *Profile, a gang.Attempt) record.Time {
	if a.Answer.Verdict == gang.Failed {
		return 0 // an error, which no node cures
	}
	return m.delayOf(prof, Unit{Gang: a.Gang}, a.Need.Members, a.Need.Quorum)
}

// endDelays tries the units whose delays have ended.
func (m *Manager) endDelays() {
	var pods []record.PodRef
	for _, unit := range m.delays.takeOver(m.host.Now()) {
		u := m.queue.Gang(unit.Gang)
		if !unit.isGang() {
			u, _, _ = m.queue.Lookup(unit.Pod)
		}
		if u != nil && u.Gang == unit.Gang { // a pod may have joined a gang, which has a delay of its own
			pods = append(pods, u.Pod().Ref())
		}
	}
	m.queue.Activate(pods)
}
