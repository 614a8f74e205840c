// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/kumiki-scheduler/kumiki/core/message"

// The events and effects of the engine; package message describes them.
type (
	Event            = message.Event
	NodeSet          = message.NodeSet
	NodeGone         = message.NodeGone
	PodSet           = message.PodSet
	PodGone          = message.PodGone
	ObjectSet        = message.ObjectSet
	ObjectGone       = message.ObjectGone
	WritesDone       = message.WritesDone
	BindDone         = message.BindDone
	EvictDone        = message.EvictDone
	Activate         = message.Activate
	Nominations      = message.Nominations
	ForeignObject    = message.ForeignObject
	Tick             = message.Tick
	Synced           = message.Synced
	Cycle            = message.Cycle
	BindOutcome      = message.BindOutcome
	Effect           = message.Effect
	Bind             = message.Bind
	GangBind         = message.GangBind
	GangWhole        = message.GangWhole
	GangHeld         = message.GangHeld
	GangStatus       = message.GangStatus
	Evict            = message.Evict
	Wasted           = message.Wasted
	PreemptionPaused = message.PreemptionPaused
	VictimsStuck     = message.VictimsStuck
	Recall           = message.Recall
	Rechecked        = message.Rechecked
	Prepare          = message.Prepare
	Release          = message.Release
	Nominate         = message.Nominate
	Heard            = message.Heard
	Condition        = message.Condition
	WriteEvent       = message.WriteEvent
	Wake             = message.Wake
	Moved            = message.Moved
	Decided          = message.Decided
	Trouble          = message.Trouble
	Answer           = message.Answer
)

// The outcomes of a bind.
const (
	Bound          = message.Bound
	BindFailed     = message.BindFailed
	BoundElsewhere = message.BoundElsewhere
	PodVanished    = message.PodVanished
	BindRecalled   = message.BindRecalled
	BindRejected   = message.BindRejected
)

// What measures the engine; package message describes it.
type (
	StepName = message.StepName
	Meter    = message.Meter
	NoMeter  = message.NoMeter
)
