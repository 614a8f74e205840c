// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Effect is something the engine asks the world to do. Every effect is safe to repeat.
type Effect interface{ effect() }

// The effects.
type (
	// Bind asks that a pod be bound to a node, with the UID as precondition.
	Bind struct {
		Pod      record.PodRef
		Node     string
		Decision uint64
		// Via names the foreign code that binds in place of the API call; empty for none.
		Via string `json:",omitempty"`
		// Gang goes into the binding's annotations; nil for a pod that is in no gang of several.
		Gang *GangBind `json:",omitempty"`
	}

	// GangBind is what the binding of a gang's member tells of the gang: see cluster.BoundMark.
	GangBind struct {
		Name   string // as declared
		Quorum int
		// Decision is the number of the one decision that placed the gang; that of Bind is the member's.
		Decision uint64
	}

	// GangWhole tells that as many pods of a gang are bound as it needs, and how long only some of them were.
	GangWhole struct {
		Gang  cluster.GangKey
		Bound int
		Took  record.Time
	}

	// GangHeld reports that capacity is not held any more for a gang, how long it was, and whether the gang got its
	// places. Backfilled counts the pods that used it because they were to end before the gang could start, and
	// Overran those of them that did not.
	GangHeld struct {
		Gang                cluster.GangKey
		Took                record.Time
		Placed              bool
		Backfilled, Overran int `json:",omitempty"`
	}

	// GangStatus asks that the object that declares a gang show how it stands. What the API server has already is not
	// asked for again.
	GangStatus struct {
		Gang cluster.GangKey
		UID  cluster.UID // of the object
		// Scheduled is the condition: true once the quorum is bound, and never false again after that.
		Scheduled       bool
		Reason, Message string // of a condition that is false
		Generation      int64  // of the object
		// Admitted tells controllers that wait for it that they may create the gang's pods (volcano: Inqueue).
		Admitted bool
		// Pending and Bound count the members.
		Pending, Bound int
	}

	// Evict requests the eviction of pods to free capacity for another. The victims but the last go side by side,
	// the last one after them, so that its end cannot be seen before EvictDone (upstream: preemption/executor.go).
	// Each gets the condition DisruptionTarget, is deleted with its UID as precondition, and an event; one that is
	// gone already is no error. Nominations of Denominate are cleared in the API. EvictDone answers.
	Evict struct {
		For        record.PodRef
		Node       string // the nominated one
		Decision   uint64
		Victims    []record.PodRef
		Denominate []record.PodRef `json:",omitempty"`
		// Gang is the gang of For, namespace/name, when it frees capacity for a gang; empty for a pod by itself.
		// GangID identifies it in the events of the victims: the UID of its object, or Gang if it has none.
		// Beside are the other pods of it that are nominated: the evictions are needless only when all of them are
		// placed or gone.
		Gang   string          `json:",omitempty"`
		GangID string          `json:",omitempty"`
		Beside []record.PodRef `json:",omitempty"`
		// Whole tells that gangs are among the victims that only go whole: all victims get the condition before the
		// first of them is deleted, so that a scheduler that starts after a crash can recognize it.
		Whole bool `json:",omitempty"`
		// Finish tells that the victims are what is left of gangs of which others were evicted for For: they go
		// whatever has become of it (rule R5).
		Finish bool `json:",omitempty"`
		// Undo means that the victims are pods of the same gang, which can only have a part of its places; no pod is
		// nominated.
		Undo bool `json:",omitempty"`
		// Agreed are those of Victims that declare that they may be evicted for gangs.
		Agreed []record.PodRef `json:",omitempty"`
	}

	// Wasted reports pods that were evicted for a pod or a gang that did not get a place by it: other pods took the
	// capacity, a node went, it found another place, or is gone.
	Wasted struct {
		For  record.PodRef
		Gang string `json:",omitempty"` // namespace/name of the gang of For
		Pods int
		Why  string
	}

	// PreemptionPaused reports that no pod is evicted for a pod or a gang for a while: capacity that was freed for
	// it went to pods that other schedulers bound, or evicted it again, so many times.
	PreemptionPaused struct {
		For   record.PodRef
		Gang  string `json:",omitempty"`
		Times int
		Until record.Time
	}

	// VictimsStuck reports pods that were evicted for a pod or a gang, are being deleted, and do not go. Other
	// capacity is looked for.
	VictimsStuck struct {
		For  record.PodRef
		Gang string `json:",omitempty"`
		Pods []record.PodRef
	}

	// Recall asks that a Bind be withdrawn if it was not sent yet: BindDone answers the Bind with BindRecalled
	// then. Nothing answers a Recall that comes too late; the Bind is answered with its outcome.
	Recall struct {
		Pod      record.PodRef
		Node     string
		Decision uint64 // of the Bind
	}

	// Rechecked tells that the pods on their way to a node were judged again, because a pod was found bound there
	// that was not decided to be there.
	Rechecked struct {
		Found     record.PodRef // the pod that was found bound
		Node      string
		Pods      int // that were judged again
		Conflicts int // of them, those that do not fit any more
	}

	// Prepare asks that writes be carried out, in order, before the pod is bound; WritesDone answers it.
	Prepare struct {
		Pod      record.PodRef
		Node     string
		Decision uint64
		Writes   []cluster.Write
	}

	// Release asks that writes be carried out that take back those of a Prepare. Nothing answers it.
	Release struct {
		Pod    record.PodRef
		Writes []cluster.Write
	}

	// Nominate asks that status.nominatedNodeName show where a pod is about to be bound, while what it needs is made
	// ready (upstream: NominatedNodeNameForExpectation, KEP-5278).
	Nominate struct {
		Pod  record.PodRef
		Node string
	}

	// Heard has what foreign code answered, for the recording: a replay answers from it.
	Heard struct {
		// Answers are those of extenders in the cycle.
		Answers []Answer `json:",omitempty"`
		// Hosted are those of plugins of kube-scheduler's framework in the Step; see package answers.
		Hosted []byte `json:",omitempty"`
	}

	// Condition asks that the PodScheduled condition be set to False.
	Condition struct {
		Pod        record.PodRef
		Reason     string // Unschedulable, SchedulerError
		Message    string
		Generation int64 // of the pod that was tried, for observedGeneration
		// ClearNomination asks that status.nominatedNodeName be removed with the same patch.
		ClearNomination bool
		// Nominate asks that status.nominatedNodeName be set with the same patch; empty leaves it.
		Nominate string `json:",omitempty"`
	}

	// WriteEvent asks for an events.k8s.io event about a pod.
	WriteEvent struct {
		Pod    record.PodRef
		Type   string // Normal, Warning
		Reason string // Scheduled, FailedScheduling
		Action string // Binding, Scheduling
		Note   string
	}

	// Wake asks for a Tick at this time at the latest. The newest Wake replaces the one before.
	Wake struct{ At record.Time }

	// Moved tells of a unit that changed its sub-queue.
	Moved struct{ Move record.QueueMove }

	// Decided tells of a decision.
	Decided struct{ Decision record.Decision }

	// Publish asks that a frame of the log (package replica) be sent to all planners, before the effects behind it.
	Publish struct {
		First, Last shard.Position
		Frame       []byte
	}

	// Welcome answers Joined: the planner is a member. It is to load the snapshot of the log's last position.
	Welcome struct {
		Name    string
		To      shard.Ordinal
		Session shard.Session
	}

	// Lend asks that a planner get pods of units that are lent to it, in this version.
	Lend struct {
		To   shard.Ordinal
		Unit string
		Pods []*cluster.Pod
	}

	// EndLoan asks that a planner forget pods.
	EndLoan struct {
		To   shard.Ordinal
		Pods []record.PodRef
	}

	// Answers has the answers to a planner's proposals.
	Answers struct {
		To   shard.Ordinal
		List []shard.Answer
	}

	// Propose asks that the arbiter check and carry out a placement.
	Propose struct{ Proposal shard.Proposal }

	// GiveBack asks that the arbiter decide a unit.
	GiveBack struct {
		Session shard.Session
		Unit    string
	}

	// Rejoin asks that the planner join anew, since it cannot follow the log any more.
	Rejoin struct{ Why string }

	// Trouble tells of something that should not have happened and was contained: a panic while handling one
	// object, a pod found on another node than decided.
	Trouble struct {
		Object  string // namespace/name of a pod, or the name of a node
		What    string
		Details string
	}
)

func (Bind) effect()      {}
func (Recall) effect()    {}
func (Rechecked) effect() {}
func (Evict) effect()     {}
func (Wasted) effect()    {}

func (PreemptionPaused) effect() {}
func (VictimsStuck) effect()     {}
func (GangStatus) effect()       {}
func (GangWhole) effect()        {}
func (GangHeld) effect()         {}
func (Prepare) effect()          {}
func (Heard) effect()            {}
func (Nominate) effect()         {}
func (Release) effect()          {}
func (Condition) effect()        {}
func (WriteEvent) effect()       {}
func (Wake) effect()             {}
func (Moved) effect()            {}
func (Decided) effect()          {}
func (Trouble) effect()          {}
func (Publish) effect()          {}
func (Welcome) effect()          {}
func (Lend) effect()             {}
func (EndLoan) effect()          {}
func (Answers) effect()          {}
func (Propose) effect()          {}
func (GiveBack) effect()         {}
func (Rejoin) effect()           {}

// Answer is one answer of an extender, as it stands in a recording.
type Answer struct {
	Rejected map[string]place.ForeignRejection `json:",omitempty"` // of Filter: node name -> why it does not fit
	Scores   []place.ForeignScore              `json:",omitempty"` // of Score
	Victims  []place.ForeignVictims            `json:",omitempty"` // of Preempt
	Err      string                            `json:",omitempty"` // of Filter and Preempt
}
