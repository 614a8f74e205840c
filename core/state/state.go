// SPDX-License-Identifier: Apache-2.0

// Package state owns the facts of an engine as data: what a new engine must have to go on as the one before.
//
// The parts that a package of core owns are made and restored there; the engine joins them (engine.State,
// engine.Resume). The form in recordings is that of package recording.
package state

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// State is the facts of an engine between two Steps, without its configuration and its caches. Taking one copies small
// structs and pointers to immutable records, so that it may be encoded (core/recording) while the engine goes on. It
// is read only; lists that come from maps are in no order before Sort.
type State struct {
	Now       record.Time
	Decisions uint64
	Synced    bool
	Wake      record.Time      // the last Wake asked for
	Answers   []message.Answer // of foreign code, before a panic that ended their cycle
	Cluster   cluster.State
	Queue     queue.State
	Evictions evict.ManagerState
	Blocked   blocked.State
	Window    place.WindowState
	Pending   []*cluster.Pod
	Edited    []*cluster.Pod // see gangs.edited
	Flights   []Flight       // in the order of their decisions
	Gangs     []Gang
	Session   *Session // nil if units are not tried in sessions
}

// Flight is a decided pod on its way to its node.
type Flight struct {
	Unit                int // index in Queue.Units
	Pod                 *cluster.Pod
	Node                string
	Decision            uint64
	Stage               string
	Reserved            []Reserved
	Wrote               bool
	Again               record.Time
	Gang                *message.GangBind
	Retries             int
	Before              []string
	Expected            bool
	Cancelled, Recalled string
	Preempted           bool
}

// Reserved is what one plugin reserved for a pod. Facts is nil if the plugin's reservations have no form as data:
// such a State cannot be resumed.
type Reserved struct {
	By        string
	Facts     any
	Announced bool
}

// Gang is what is remembered of a gang.
type Gang struct {
	Gang         cluster.GangKey
	Quorum       int
	PartialSince record.Time
	Complete     bool
	Told         message.GangStatus
}

// Session is the pace of an engine that tries units in sessions.
type Session struct {
	Clock, Due, Tried record.Time
	Open              bool
	Left              []int // indexes in Queue.Units; -1 for a unit that is gone
	Kept              []message.Event
}

// Sort brings what is in no order into one, so that equal states have equal encodings.
func (st *State) Sort() {
	byUID := func(a, b *cluster.Pod) int { return cmp.Compare(a.UID, b.UID) }
	st.Cluster.Sort()
	st.Evictions.Sort()
	st.Blocked.Sort()
	slices.SortFunc(st.Pending, byUID)
	slices.SortFunc(st.Edited, byUID)
	slices.SortFunc(st.Gangs, func(a, b Gang) int { return a.Gang.Compare(b.Gang) })
}
