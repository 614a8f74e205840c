// SPDX-License-Identifier: Apache-2.0

package question

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GangList reports on every gang: those whose pods wait or have a node, and those that an object declares. It searches
// no places, so its cost grows with the number of pods in gangs alone.
func (i Inspector) GangList() record.GangList {
	r := record.GangList{At: i.view.Now()}
	for _, key := range i.gangKeys() {
		e := i.gangEntry(key, i.view.Queue().Gang(key))
		r.Gangs = append(r.Gangs, e)
		r.Counts.Gangs++
		if e.Waiting > 0 {
			r.Counts.Waiting++
		}
		if e.PartialSince != 0 {
			r.Counts.Partial++
		}
	}
	return r
}

// gangKeys returns the keys of all gangs, sorted.
func (i Inspector) gangKeys() (keys []cluster.GangKey) {
	s := i.view.Snapshot()
	i.view.Queue().EachGang(func(u *queue.Unit) { keys = append(keys, u.Gang) })
	s.EachHeldGang(func(key cluster.GangKey) { keys = append(keys, key) })
	cluster.Each(s, func(g *cluster.Gang) bool {
		keys = append(keys, g.Key)
		return true
	})
	slices.SortFunc(keys, cluster.GangKey.Compare)
	return slices.Compact(keys)
}

// gangEntry reports on a gang, whose waiting unit may be nil.
func (i Inspector) gangEntry(key cluster.GangKey, u *queue.Unit) record.GangEntry {
	var waiting []*cluster.Pod
	if u != nil {
		waiting = u.Members
	}
	live, bound := i.view.Snapshot().GangCounts(key)
	e := record.GangEntry{
		Name: key.String(), Source: string(key.Source), Bound: bound, Coming: live - bound, Waiting: len(waiting),
		Where: record.Gone, PartialSince: i.view.Gangs().History(key).PartialSince,
	}
	e.Quorum, e.Stated = i.view.Gangs().Quorum(key, waiting)
	e.Desired = max(e.Quorum, i.desired(key, waiting, live))
	e.Priority = i.gangPriority(key)
	if held, ok := i.view.Gangs().Held(); ok && held.Gang == key {
		e.Holds, _ = i.heldCapacity(key)
	}
	if u != nil {
		wait, first := i.gangWait(u), u.Pod().Ref()
		e.Pod, e.Where, e.Since, e.Attempts = &first, wait.where, u.Since, u.Attempts
		e.Gate, e.Reason, e.BackoffUntil = u.Gate, wait.reason, wait.backoffUntil
		e.Missing = wait.missing(e.Quorum, live)
		e.Plugins = slices.Clone(u.Plugins)
	} else if e.OneByOne = i.oneByOne(key); e.OneByOne {
		for _, p := range i.view.Queue().Apart(key) {
			_, e.Where, _ = i.view.Queue().Lookup(p.UID)
			e.Waiting++
		}
	}
	return e
}
