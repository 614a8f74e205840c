// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Capture is a cluster snapshot, or a recording, as a trace: the nodes, pods and other objects of its beginning, and
// later the changes of nodes, the arrivals of pods and their ends, at their times. The decisions are made anew.
type Capture struct {
	// Began is the time of the scheduler when its lists were complete.
	Began record.Time

	initial []engine.Event
	later   []timed
	now     record.Time
	synced  bool
}

// timed is an event at a virtual time.
type timed struct {
	at time.Duration
	ev engine.Event
}

// Add adds an event of the recording, in its order. What a scheduler asked for and its own effects are left out.
func (c *Capture) Add(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.Tick:
		c.now = max(c.now, ev.Now)
		if !c.synced {
			c.Began = c.now
		}
	case engine.Synced:
		c.synced = true
	case engine.NodeSet, engine.NodeGone, engine.PodSet, engine.PodGone, engine.ObjectSet, engine.ObjectGone:
		if !c.synced {
			c.initial = append(c.initial, ev)
			return
		}
		c.later = append(c.later, timed{time.Duration(c.now - c.Began), ev})
	}
}

// Length returns the time from the end of the initial lists to the last event.
func (c *Capture) Length() time.Duration {
	if len(c.later) == 0 {
		return 0
	}
	return c.later[len(c.later)-1].at
}

// SchedulerNames returns the scheduler names of the pods that were pending.
func (c *Capture) SchedulerNames() (list []string) {
	add := func(ev engine.Event) {
		if set, is := ev.(engine.PodSet); is && set.Pod.NodeName == "" &&
			!slices.Contains(list, set.Pod.Spec.SchedulerName) {
			list = append(list, set.Pod.Spec.SchedulerName)
		}
	}
	for _, ev := range c.initial {
		add(ev)
	}
	for _, t := range c.later {
		add(t.ev)
	}
	return list
}

// Load creates what was there at the beginning, and requests the rest.
func (c *Capture) Load(w *sim.World, _ int) ([]*sim.Workload, error) {
	for _, ev := range c.initial {
		apply(w, ev)
	}
	var next func(i int)
	next = func(i int) {
		for ; i < len(c.later); i++ {
			if c.later[i].at > w.Now() {
				w.At(c.later[i].at, func() { next(i) })
				return
			}
			apply(w, c.later[i].ev)
		}
	}
	if len(c.later) > 0 {
		w.At(c.later[0].at, func() { next(0) })
	}
	return nil, nil
}

// apply carries out a recorded change. A version of a pod that is there changes nothing but its deletion: where it is
// bound and what its status says is decided anew.
func apply(w *sim.World, ev engine.Event) {
	switch ev := ev.(type) {
	case engine.NodeSet:
		if n := w.Node(ev.Node.Name); n != nil {
			w.SetRecord(n, ev.Node)
		} else {
			w.AddRecord(ev.Node)
		}
	case engine.NodeGone:
		if n := w.Node(ev.Name); n != nil {
			w.Remove(n)
		}
	case engine.ObjectSet:
		if !decidedAnew(w, ev.Object) {
			w.ShowObject(ev.Object)
		}
	case engine.ObjectGone:
		w.DropObject(ev.Kind, ev.Key)
	case engine.PodSet:
		p := w.Pod(ev.Pod.UID)
		if p == nil {
			p = create(w, ev.Pod)
		}
		if ev.Pod.Terminating {
			w.Delete(p, sim.Deleted)
		}
	case engine.PodGone:
		if p := w.Pod(cluster.UID(ev.Pod.UID)); p != nil {
			w.Vanish(p, sim.Deleted)
		}
	}
}

// decidedAnew reports whether a recorded version of a claim or a volume follows from a decision of the recording, which
// is made anew: later versions of a claim, and volumes that were made for one.
func decidedAnew(w *sim.World, obj cluster.Object) bool {
	if !w.Started() {
		return false
	}
	switch o := obj.(type) {
	case *v1.PersistentVolumeClaim:
		return w.HasClaim(cluster.KeyOf(o))
	case *v1.PersistentVolume:
		return o.Spec.ClaimRef != nil
	}
	return false
}

// create creates a pod as it was first seen, without what its scheduler wrote.
func create(w *sim.World, seen *cluster.Pod) *sim.Pod {
	rec := *seen
	rec.Nominated, rec.Condition, rec.UnschedulableSince = "", cluster.Condition{}, 0
	rec.Terminating, rec.GoneBy, rec.DeletedAt, rec.Preempted, rec.EvictionPending = false, 0, 0, false, false
	return w.Create(w.TemplateOf(&rec), sim.NewPod{Name: rec.Name, UID: rec.UID, Node: rec.NodeName})
}
