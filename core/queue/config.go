// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Config is constant for the life of a Queue.
type Config struct {
	// InitialBackoff is the backoff after the first failure; it doubles with each further failure up to MaxBackoff. A
	// MaxBackoff of 0 disables backoff.
	InitialBackoff, MaxBackoff record.Time
	// UnschedulableTimeout is how long a unit waits for an event before it is tried without one.
	UnschedulableTimeout record.Time
	// PopFromBackoff lets Pop take units from the backoff queue when the active queue is empty (upstream:
	// SchedulerPopFromBackoffQ, KEP-5142). With it, backoffs end at whole seconds.
	PopFromBackoff bool
	// Less orders the active queue; nil orders by age alone.
	Less plugin.Less
	// OldestFirst orders units that Less finds equal by their oldest pod and then by name (rule R13), not by arrival.
	OldestFirst bool
	// Profiles are the gates and wakes of each profile.
	Profiles map[string]Profile // scheduler name -> gates and wakes
	// Gangs answers questions about pods that declare a gang; nil schedules each of them on its own.
	Gangs Gangs
	// State is the cluster state that gates read.
	State cluster.Snapshot
	// Meter may be nil.
	Meter Meter
	// Nominator may be nil.
	Nominator plugin.Nominator
}

// Meter observes the queue's events and hint calls. The queue never reads time, and no decision depends on a Meter.
type Meter interface {
	// Happened observes that something changed.
	Happened(plugin.Event)
	// Ask observes the start of a call of a plugin's hint, and Answered its end. failed: the hint panicked. It is not a
	// value of plugin.Hint, because hints return that type and cannot return this.
	Ask()
	Answered(plugin string, ev plugin.Event, hint plugin.Hint, failed bool)
	// Did observes an amount of work.
	Did(work record.Work, n int)
	// StaysGated observes that an event woke a unit and that its gate is still shut: a move from Gated to Gated.
	StaysGated(record.QueueMove)
}

// noMeter observes nothing.
type noMeter struct{}

func (noMeter) Happened(plugin.Event)                            {}
func (noMeter) Ask()                                             {}
func (noMeter) Did(record.Work, int)                             {}
func (noMeter) Answered(string, plugin.Event, plugin.Hint, bool) {}
func (noMeter) StaysGated(record.QueueMove)                      {}

// Profile is the part of a profile that the queue uses, in plugin order.
type Profile struct {
	Gates []plugin.Gate
	Wakes []PluginWakes
}

// PluginWakes are the events for which one plugin registered.
type PluginWakes struct {
	Plugin string
	Wakes  []plugin.Wake
}

// profile is a prepared Profile.
type profile struct {
	name  string         // kept
	gates []plugin.Gate  // derived: from the configuration
	wakes []registration // derived: from the configuration. In plugin order
}

// selfOpening reports whether the owner of the gate with this name activates the pods behind it.
func (p *profile) selfOpening(gate string) bool {
	return slices.ContainsFunc(p.gates, func(g plugin.Gate) bool {
		_, is := g.(plugin.SelfOpening)
		return is && g.Name() == gate
	})
}

// registration is one wake of one plugin.
type registration struct {
	plugin string
	plugin.Wake
}

func newProfile(name string, p Profile) *profile {
	ready := &profile{name: name, gates: p.Gates}
	for _, pw := range p.Wakes {
		for _, w := range pw.Wakes {
			ready.wakes = append(ready.wakes, registration{pw.Plugin, w})
		}
	}
	return ready
}
