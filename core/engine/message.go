// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

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
)

// StepName numbers the steps of the cycle, for the Meter.
type StepName uint8

// Meter receives where the work is. The engine never reads time: kube's Meter does, replay's is empty, and effects
// never depend on it.
type Meter interface {
	// Enter starts a numbered step of the cycle; it ends the step before.
	Enter(step StepName)
	// Plugin starts one plugin's work at a point, and ends what was started before in the step. An empty name
	// stands for what several plugins do at once.
	Plugin(at plugin.Point, name string)
	// Leave ends the cycle.
	Leave()
	// Meter observes events, hints and amounts of work, inside cycles and outside.
	queue.Meter
}

// NoMeter measures nothing.
type NoMeter struct{}

func (NoMeter) Enter(StepName)                                   {}
func (NoMeter) Plugin(plugin.Point, string)                      {}
func (NoMeter) Leave()                                           {}
func (NoMeter) Did(record.Work, int)                             {}
func (NoMeter) Happened(plugin.Event)                            {}
func (NoMeter) Ask()                                             {}
func (NoMeter) Answered(string, plugin.Event, plugin.Hint, bool) {}
func (NoMeter) StaysGated(record.QueueMove)                      {}
