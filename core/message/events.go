// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Event is an input of the engine.
type Event interface{ event() }

// The events.
type (
	// NodeSet says that a node exists in this version.
	NodeSet struct{ Node *cluster.Node }

	// NodeGone says that a node object was deleted.
	NodeGone struct{ Name string }

	// PodSet says that a pod exists in this version: pending or bound, of this scheduler or another. Pods that
	// have ended (Succeeded, Failed) are PodGone.
	PodSet struct{ Pod *cluster.Pod }

	// PodGone says that a pod was deleted or has ended.
	PodGone struct{ Pod record.PodRef }

	// ObjectSet says that an object other than a pod or node exists in this version.
	ObjectSet struct{ Object cluster.Object }

	// ObjectGone says that such an object was deleted.
	ObjectGone struct {
		Kind cluster.Kind
		Key  cluster.ObjectKey
	}

	// WritesDone answers a Prepare effect.
	WritesDone struct {
		Pod      record.PodRef
		Decision uint64
		Message  string // of the error, empty when all writes were carried out
	}

	// BindDone answers a Bind effect.
	BindDone struct {
		Pod     record.PodRef
		Node    string
		Outcome BindOutcome
		Message string // of the error, empty when bound
		Plugin  string `json:",omitempty"` // that rejected the pod; see BindRejected
	}

	// EvictDone answers an Evict effect.
	EvictDone struct {
		For      record.PodRef
		Decision uint64
		Message  string // of the first error, empty when all victims were deleted
	}

	// Activate asks that pods be tried at once, whatever they wait for, and that reservations which are not ready be
	// asked again, of all pods.
	Activate struct{ Pods []record.PodRef }

	// Nominations says that other code than the engine's changed nominations of pods that wait.
	Nominations struct{ List []record.Nomination }

	// ForeignObject says that an object has changed that the engine does not keep: plugins wait for events of its kind.
	ForeignObject struct {
		// Resource is PLURAL.VERSION.GROUP.
		Resource string
		Change   ForeignChange
		// Old and New are the versions, nil if there is none. A recording does not have them.
		Old, New cluster.Object `json:"-"`
	}

	// Joined says that a planner has joined, in a session of its own: it follows the log and takes units. An arbiter's.
	Joined struct {
		Name    string
		Labels  map[string]string // key -> value
		Weight  shard.Weight
		Session shard.Session
	}

	// Left says that the session of a planner has ended. An arbiter's.
	Left struct{ Name string }

	// Busy says whether the loop is at 60 % of its time or above. An arbiter's.
	Busy struct{ Busy bool }

	// Proposed has proposals of planners. An arbiter's.
	Proposed struct{ List []shard.Proposal }

	// GivenBack says that a planner gives a unit back, since it may need what only the arbiter does. An arbiter's.
	GivenBack struct {
		From    shard.Ordinal
		Session shard.Session
		Unit    string
	}

	// Welcomed says in which session a planner is from now on.
	Welcomed struct {
		Ordinal shard.Ordinal
		Epoch   shard.Epoch
		Session shard.Session
	}

	// Entries has a frame of the arbiter's log (package replica). A planner's.
	Entries struct{ Frame []byte }

	// Lent says that pods of units that are lent to the planner exist in this version. A planner's.
	Lent struct{ Pods []*cluster.Pod }

	// LoanOver says that pods are not lent to the planner any more. A planner's.
	LoanOver struct{ Pods []record.PodRef }

	// Answered has the arbiter's answers to proposals, after the entries of the log that they follow from. A planner's.
	Answered struct{ List []shard.Answer }

	// Promoted says that the planner is the arbiter from now on. What it lists then comes as further events.
	Promoted struct{ Epoch shard.Epoch }

	// Tick says what time it is.
	Tick struct{ Now record.Time }

	// Synced says that the initial lists are complete.
	Synced struct{}

	// Cycle runs one scheduling cycle if a unit is ready.
	Cycle struct{}
)

// ForeignChange is what happened to an object.
type ForeignChange uint8

// The changes.
const (
	ForeignAdded ForeignChange = iota
	ForeignUpdated
	ForeignDeleted
)

// BindOutcome is what became of a bind.
type BindOutcome uint8

// The outcomes. An unknown outcome is not among them: kube re-reads the pod first.
const (
	// Bound: the API server has the pod on the node.
	Bound BindOutcome = iota
	// BindFailed: the API server does not have it on a node; the pod is tried again after an error backoff.
	BindFailed
	// BoundElsewhere: the pod is bound, to another node than asked.
	BoundElsewhere
	// PodVanished: the pod is gone, or another pod of the same name is in its place.
	PodVanished
	// BindRecalled: the bind was withdrawn before it was sent, as a Recall asked or because binds are held for a while.
	BindRecalled
	// BindRejected: a plugin rejected the pod on its node, at PreBind or Bind. The pod is unschedulable, and is tried
	// again after an error backoff: no event wakes it before (upstream requeues it without rejecting plugins).
	BindRejected
)

func (NodeSet) event()       {}
func (NodeGone) event()      {}
func (PodSet) event()        {}
func (PodGone) event()       {}
func (BindDone) event()      {}
func (ObjectSet) event()     {}
func (ObjectGone) event()    {}
func (WritesDone) event()    {}
func (EvictDone) event()     {}
func (Activate) event()      {}
func (Nominations) event()   {}
func (ForeignObject) event() {}
func (Tick) event()          {}
func (Synced) event()        {}
func (Cycle) event()         {}

func (Joined) event()    {}
func (Left) event()      {}
func (Busy) event()      {}
func (Proposed) event()  {}
func (GivenBack) event() {}
func (Welcomed) event()  {}
func (Entries) event()   {}
func (Lent) event()      {}
func (LoanOver) event()  {}
func (Answered) event()  {}
func (Promoted) event()  {}

// Subject returns the object that an event is about, for messages: namespace/name of a pod, the name of a node; empty
// for none.
func Subject(ev Event) string {
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
	return ""
}
