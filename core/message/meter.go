// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
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
