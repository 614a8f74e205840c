// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Config is fixed for the life of a Queue.
type Config struct {
	// InitialBackoff is the wait after the first failure; it doubles with each further one up to MaxBackoff. A
	// MaxBackoff of 0 disables backoff.
	InitialBackoff, MaxBackoff record.Time
	// UnschedulableTimeout is how long a unit waits for an event before it is tried anyway.
	UnschedulableTimeout record.Time
	// PopFromBackoff lets Pop take units from the backoff queue when the active queue is empty (upstream:
	// SchedulerPopFromBackoffQ, KEP-5142). With it, backoffs end at whole seconds.
	PopFromBackoff bool
	// Less orders the active queue; nil means by age alone.
	Less plugin.Less
	// OldestFirst orders units that Less finds equal by their oldest pod and then by name (rule R13), not by arrival.
	OldestFirst bool
	// Profiles are what the profiles say of their pods.
	Profiles map[string]Profile // scheduler name -> gates and wakes
	// Gangs is asked about pods that say that they are in a gang; nil schedules each of them by itself.
	Gangs Gangs
	// State is the cluster that gates look at.
	State cluster.Snapshot
	// Meter may be nil.
	Meter Meter
}

// Meter is told what the queue hears of and asks. The queue never reads time, and nothing depends on what a Meter does.
type Meter interface {
	// Happened says that something changed.
	Happened(plugin.Event)
	// Ask starts a question to the hint of a plugin, and Answered ends it. A hint that panicked failed.
	Ask()
	Answered(plugin string, ev plugin.Event, hint plugin.Hint, failed bool)
}

// noMeter is told in vain.
type noMeter struct{}

func (noMeter) Happened(plugin.Event)                            {}
func (noMeter) Ask()                                             {}
func (noMeter) Answered(string, plugin.Event, plugin.Hint, bool) {}

// Profile is the part of a profile that the queue works with, in plugin order.
type Profile struct {
	Gates []plugin.Gate
	Wakes []PluginWakes
}

// PluginWakes is what one plugin registered for.
type PluginWakes struct {
	Plugin string
	Wakes  []plugin.Wake
}

// profile is a Profile made ready.
type profile struct {
	name  string
	gates []plugin.Gate
	wakes []registration // in plugin order
}

// selfOpening reports whether whoever owns the gate of this name brings back what waits behind it.
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
		nodeAdd, nodeTaint := false, false
		for _, w := range pw.Wakes {
			ready.wakes = append(ready.wakes, registration{pw.Plugin, w})
			if w.Event.Resource == plugin.NodeObject {
				nodeAdd = nodeAdd || w.Event.Action&plugin.Add != 0
				nodeTaint = nodeTaint || w.Event.Action&plugin.UpdateNodeTaint != 0
			}
		}
		// A node is often added with a taint that goes later. Upstream registers the second event for whoever
		// asked for the first only (pkg/scheduler/scheduler.go, buildQueueingHintMap).
		if nodeAdd && !nodeTaint {
			ready.wakes = append(ready.wakes, registration{pw.Plugin, plugin.Wake{
				Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeTaint},
			}})
		}
	}
	return ready
}
