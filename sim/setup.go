// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Setup is what a World is made of, besides what is created in it.
type Setup struct {
	Seed       uint64
	Schedulers []Scheduler
	// Epoch is the schedulers' time at virtual time 0; 0 means the constant Epoch.
	Epoch record.Time
	Model Model
	// Ideal turns the API server into one whose calls and watches take no time and lose nothing, without statuses, and
	// stops the clock of the cluster while the scheduler decides. There must be one scheduler.
	Ideal bool
	// Observer sees what happens; nil for none.
	Observer Observer
}

// Stepper is a scheduler in the form of the engine.
type Stepper interface {
	// Step takes one event and returns effects that are good until the next Step.
	Step(engine.Event) []engine.Effect
	// Ready reports whether a Cycle would try a unit.
	Ready() bool
	// Binding returns how many pods have a node and no outcome of their bind.
	Binding() int
}

// Scheduler is one scheduler of a run.
type Scheduler struct {
	Name string
	Make func() Stepper
	// Of several copies, each receives only the pending pods of its share: those whose UID hashes to Copy. Copies of 0
	// or 1 turn that off. Every scheduler sees every bound pod.
	Copy, Copies int
}

// Model is how long things take and how often they fail. The zero value is a cluster in which everything happens at
// once.
type Model struct {
	// Decision is what one attempt for one pod takes; an attempt for a gang takes as much for each placement tried.
	Decision time.Duration
	// Decisions are other durations of an attempt, for searches that took a path.
	Decisions map[record.Path]time.Duration // path -> duration
	// Watch is the delay from a change to the scheduler's sight of it. The order of changes is kept. A distribution by
	// quantiles, which was measured, is drawn once for each watchWindow: changes that are close have like delays.
	Watch Durations
	// Sight is the delay from the creation of a pod to the scheduler's first sight of it; zero for Watch.
	Sight Durations
	// Call is the latency of a call to the API server.
	Call Durations
	// Answer is the delay from the handling of a bind or another write, which the watch shows, to the answer.
	Answer Durations
	// Calls are other latencies of binds and evictions, by how many are on the way, ascending. Beyond the last, its
	// latency holds.
	Calls []CallLatency
	// Loads are the same by how many were sent in the last LoadWindow, itself included, and go before Calls.
	Loads []CallLatency
	// InFlight is how many binds and evictions of a scheduler are on the way at a time, and how many status patches; 0
	// for no limit.
	InFlight int
	// Failed and Lost are the shares of binds that fail without effect, and of those whose answer is lost. Half of the
	// latter have bound the pod. The scheduler learns the outcome by reading the pod after Reread.
	Failed, Lost float64
	Reread       time.Duration
	// Kubelet is the delay from the bind to the kubelet's admission, Start that from the admission to the start.
	Kubelet, Start Durations
	// Stop is how long a pod takes to stop, at most its grace period.
	Stop Durations
	// Controller is the delay with which controllers and the garbage collector act.
	Controller time.Duration
	// Detect is the time after which a failed node gets the taint for unreachable nodes, and Remove that after which
	// its pods are deleted with it.
	Detect, Remove time.Duration
	// Volume is the delay with which the volume controller binds a claim to a volume that a scheduler chose, and with
	// which a provisioner makes one.
	Volume Durations
}

// CallLatency is the latency of a call while at most InFlight are on the way, itself included; in Model.Loads, were
// sent recently.
type CallLatency struct {
	InFlight int
	Latency  Durations
}

// LoadWindow is how long a call counts for the load after it was sent.
const LoadWindow = 100 * time.Millisecond

// watchWindow is how long the delay of the watch stays the same.
const watchWindow = 100 * time.Millisecond

// draws returns the number of a draw of a delay of the watch.
func draws(d *Durations, now time.Duration, number uint64) uint64 {
	if d.Shape == Quantiles {
		return uint64(now / watchWindow)
	}
	return number
}

// call returns the latency of calls while so many are on the way, and were sent recently.
func (m *Model) call(inFlight, recent int) Durations {
	list, n := m.Calls, inFlight
	if len(m.Loads) > 0 {
		list, n = m.Loads, recent
	}
	for _, c := range list {
		if n <= c.InFlight {
			return c.Latency
		}
	}
	if last := len(list); last > 0 {
		return list[last-1].Latency
	}
	return m.Call
}

// decision returns the duration of an attempt whose search took a path.
func (m *Model) decision(p record.Path) time.Duration {
	if d, is := m.Decisions[p]; is {
		return d
	}
	return m.Decision
}

// DefaultModel is a cluster in good health. The values are assumptions, and docs/simulator.md lists them.
func DefaultModel() Model {
	return Model{
		Decision: time.Millisecond, Watch: Durations{Shape: Uniform, A: 2 * time.Millisecond, B: 10 * time.Millisecond},
		Call: Durations{Shape: Uniform, A: 3 * time.Millisecond, B: 12 * time.Millisecond}, InFlight: 64,
		Reread: 10 * time.Second, Kubelet: Durations{Shape: Uniform, A: 5 * time.Millisecond, B: 50 * time.Millisecond},
		Start: Always(time.Second), Stop: Always(time.Second), Controller: 100 * time.Millisecond,
		Detect: 40 * time.Second, Remove: 300 * time.Second,
		Volume: Durations{Shape: Uniform, A: 500 * time.Millisecond, B: 3 * time.Second},
	}
}

// Observer sees what happens in a World, in its order.
type Observer interface {
	// Passing is called before time advances to to.
	Passing(w *World, to time.Duration)
	// Advanced is called after it.
	Advanced(w *World)
	// Created, Bound, Running and Ended follow a pod. A pod that was deleted before it had a node is only Ended.
	Created(*World, *Pod)
	Bound(*World, *Pod)
	Running(*World, *Pod)
	Ended(*World, *Pod, End)
	// NodesChanged is called when a node joins or leaves.
	NodesChanged(*World)
}

// End is how a pod ended.
type End uint8

// The ends.
const (
	Succeeded End = iota
	Failed
	Rejected // by the kubelet: the node has no capacity for it
	Evicted  // for another pod
	Drained  // from its node
	Lost     // with its node
	Deleted  // by its controller or the user
)

// String returns the name of an end.
func (e End) String() string {
	return [...]string{"succeeded", "failed", "rejected", "evicted", "drained", "lost", "deleted"}[e]
}
