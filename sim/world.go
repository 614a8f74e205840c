// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Epoch is the schedulers' time at virtual time 0, unless a Setup has another: the engine takes 0 for no time.
const Epoch = 1000 * record.Second

// World is a simulated API server with its nodes, pods, controllers and schedulers, on virtual time.
type World struct {
	setup  Setup
	now    time.Duration // Invariant: it never decreases.
	agenda agenda
	// version is the newest resource version.
	version    uint64
	names      *resource.Names
	intake     *convert.Intake
	pods       map[cluster.UID]*Pod // UID -> pod that is not gone
	created    uint64               // number of pods
	pending    int                  // number of pods that are not gone and have no node
	nodes      map[string]*Node     // name -> node that is not gone
	order      []*Node              // the same, in the order in which they joined
	schedulers []*scheduler
	budgets    []*budget
	changed    time.Duration // when a pod or node changed last, but for statuses of waiting pods
	storage    storageObjects
	objects    map[objectID]cluster.Object // kind and key -> newest version of an object other than pods and nodes
	partial    int                         // pods of gangs that have a node while their gang is not whole
	started    bool                        // the initial lists are complete
}

// New returns a World without nodes and pods, at time 0.
func New(setup Setup) *World {
	if setup.Ideal && len(setup.Schedulers) != 1 {
		panic(fmt.Sprintf("sim: an ideal API server with %d schedulers", len(setup.Schedulers)))
	}
	if setup.Observer == nil {
		setup.Observer = NoObserver{}
	}
	if setup.Epoch == 0 {
		setup.Epoch = Epoch
	}
	w := &World{setup: setup, names: resource.NewNames(), intake: convert.NewIntake(),
		pods: map[cluster.UID]*Pod{}, nodes: map[string]*Node{}, storage: storageObjects{
			claims: map[cluster.ObjectKey]*v1.PersistentVolumeClaim{}, volumes: map[string]*v1.PersistentVolume{},
			classes: map[string]StorageClass{}}, objects: map[objectID]cluster.Object{}}
	for i, s := range setup.Schedulers {
		w.schedulers = append(w.schedulers, newScheduler(w, i, s))
	}
	return w
}

// Now returns the virtual time.
func (w *World) Now() time.Duration { return w.now }

// Intake converts API objects to the records of this World.
func (w *World) Intake() *convert.Intake { return w.intake }

// Seed returns the seed of the run.
func (w *World) Seed() uint64 { return w.setup.Seed }

// Pending returns how many pods have no node.
func (w *World) Pending() int { return w.pending }

// Nodes returns the nodes in the order in which they joined. The caller must not change the list.
func (w *World) Nodes() []*Node { return w.order }

// Node returns a node by name, nil if there is none.
func (w *World) Node(name string) *Node { return w.nodes[name] }

// At has do called at a time, after what was requested for that time before. A time in the past is now.
func (w *World) At(at time.Duration, do func()) { w.agenda.add(max(at, w.now), false, do) }

// After has do called after a while.
func (w *World) After(d time.Duration, do func()) { w.At(w.now+d, do) }

// retryAfter is After for what repeats as long as pods wait.
func (w *World) retryAfter(d time.Duration, do func()) { w.agenda.add(w.now+d, true, do) }

// record returns a virtual time as schedulers see it.
func (w *World) record(at time.Duration) record.Time { return w.setup.Epoch + record.Time(at) }

// publish shows an object, other than a pod, to every scheduler.
func (w *World) publish(ev engine.Event) {
	for _, s := range w.schedulers {
		s.see(ev)
	}
}

// SetObject creates or changes an object other than a pod or node.
func (w *World) SetObject(obj cluster.Object) {
	obj.SetResourceVersion(w.nextVersion())
	w.ShowObject(obj)
}

// ShowObject creates or changes such an object whose version was set before.
func (w *World) ShowObject(obj cluster.Object) {
	w.objects[objectID{cluster.KindOf(obj), cluster.KeyOf(obj)}] = obj
	w.publish(engine.ObjectSet{Object: obj})
	w.keepStorage(obj)
}

// DropObject deletes an object other than a pod or node.
func (w *World) DropObject(kind cluster.Kind, key cluster.ObjectKey) {
	delete(w.objects, objectID{kind, key})
	w.dropStorage(kind, key)
	w.publish(engine.ObjectGone{Kind: kind, Key: key})
}

// Pod returns a pod that is not gone by its UID, nil if there is none.
func (w *World) Pod(uid cluster.UID) *Pod { return w.pods[uid] }

func (w *World) nextVersion() string {
	w.version++
	return strconv.FormatUint(w.version, 10)
}

// Start ends the initial lists: schedulers begin to decide, and what is created from now on is seen with the delay of
// the watch.
func (w *World) Start() {
	for _, s := range w.schedulers {
		s.step(engine.Synced{})
		s.tick()
	}
	w.started = true
}

// Started reports whether the initial lists are complete.
func (w *World) Started() bool { return w.started }

// Binding returns how many pods have a node in a scheduler and no outcome of their bind.
func (w *World) Binding() (n int) {
	for _, s := range w.schedulers {
		n += s.engine.Binding()
	}
	return n
}

// Tallies returns what was counted for each scheduler.
func (w *World) Tallies() []Tally {
	out := make([]Tally, len(w.schedulers))
	for i, s := range w.schedulers {
		out[i] = *s.tally
	}
	return out
}

// Freeze stops the watch of a scheduler until a time; then everything arrives that it missed.
func (w *World) Freeze(scheduler int, until time.Duration) {
	s := w.schedulers[scheduler]
	s.frozenUntil = max(s.frozenUntil, until)
	w.At(until, func() { w.changed = w.now })
}

// Relist is Freeze for a watch that is lost: then the scheduler reads lists, and sees of each object the newest version
// alone, or that it is gone.
func (w *World) Relist(scheduler int, until time.Duration) {
	w.Freeze(scheduler, until)
	w.At(until, func() { w.schedulers[scheduler].relist() })
}

// FailCalls makes each bind of every scheduler fail until a time, as an API server that is down.
func (w *World) FailCalls(until time.Duration) {
	for _, s := range w.schedulers {
		s.failsUntil = max(s.failsUntil, until)
	}
	w.At(until, func() { w.changed = w.now })
}

// NoObserver observes nothing. Observers embed it.
type NoObserver struct{}

// Passing does nothing.
func (NoObserver) Passing(*World, time.Duration) {}

// Advanced does nothing.
func (NoObserver) Advanced(*World) {}

// Created does nothing.
func (NoObserver) Created(*World, *Pod) {}

// Bound does nothing.
func (NoObserver) Bound(*World, *Pod) {}

// Running does nothing.
func (NoObserver) Running(*World, *Pod) {}

// Ended does nothing.
func (NoObserver) Ended(*World, *Pod, End) {}

// NodesChanged does nothing.
func (NoObserver) NodesChanged(*World) {}
