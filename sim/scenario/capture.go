// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
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
	// Arrive returns when a pod was created that was first seen at a time; nil for then.
	Arrive func(p *cluster.Pod, seen record.Time) record.Time

	initial []engine.Event
	later   []timed
	bound   map[cluster.UID]time.Duration // UID -> when the pod was first seen with a node
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
		if !c.synced || c.Began == 0 {
			c.Began = c.now
		}
	case engine.Synced:
		c.synced = true
	case engine.NodeSet, engine.NodeGone, engine.PodSet, engine.PodGone, engine.ObjectSet, engine.ObjectGone:
		if !c.synced {
			c.initial = append(c.initial, ev)
			return
		}
		at := time.Duration(c.now - c.Began)
		c.later = append(c.later, timed{at, ev})
		c.noteBound(ev, at)
	}
}

func (c *Capture) noteBound(ev engine.Event, at time.Duration) {
	set, is := ev.(engine.PodSet)
	if !is || set.Pod.NodeName == "" {
		return
	}
	if _, known := c.bound[set.Pod.UID]; !known {
		if c.bound == nil {
			c.bound = map[cluster.UID]time.Duration{}
		}
		c.bound[set.Pod.UID] = at
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
		c.apply(w, timed{ev: ev})
	}
	later := c.arrivals()
	var next func(i int)
	next = func(i int) {
		for ; i < len(later); i++ {
			if later[i].at > w.Now() {
				w.At(later[i].at, func() { next(i) })
				return
			}
			c.apply(w, later[i])
		}
	}
	if len(later) > 0 {
		w.At(later[0].at, func() { next(0) })
	}
	return nil, nil
}

// arrivals returns the changes in the order of their times, with pods at the times of their creation.
func (c *Capture) arrivals() []timed {
	if c.Arrive == nil {
		return c.later
	}
	list, seen := slices.Clone(c.later), map[cluster.UID]bool{}
	for i, t := range list {
		set, is := t.ev.(engine.PodSet)
		if !is || seen[set.Pod.UID] {
			continue
		}
		if seen[set.Pod.UID] = true; set.Pod.NodeName != "" {
			continue
		}
		p := *set.Pod
		p.Created = max(c.Began, c.Arrive(set.Pod, c.Began+record.Time(t.at)))
		list[i] = timed{time.Duration(p.Created - c.Began), engine.PodSet{Pod: &p}}
	}
	slices.SortStableFunc(list, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	return list
}

// apply carries out a recorded change. A version of a pod that is there changes nothing but its deletion: where it is
// bound and what its status says is decided anew.
func (c *Capture) apply(w *sim.World, t timed) {
	switch ev := t.ev.(type) {
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
			c.end(w, p, t.at, func() { w.Delete(p, sim.Deleted) })
		}
	case engine.PodGone:
		if p := w.Pod(cluster.UID(ev.Pod.UID)); p != nil {
			c.end(w, p, t.at, func() { w.Vanish(p, sim.Deleted) })
		}
	}
}

// end ends a pod as it ended at a time. A pod that was bound before its end is bound here first, and then ends as long
// after that as in the recording: what deleted it may have waited for the bind.
func (c *Capture) end(w *sim.World, p *sim.Pod, at time.Duration, do func()) {
	bound, was := c.bound[p.Record.UID]
	o, is := p.Owner.(*untilBound)
	if !was || !is || p.Record.NodeName != "" {
		do()
		return
	}
	o.then = append(o.then, func() { w.After(at-bound, do) })
}

// untilBound owns a recorded pod. It keeps what happens once the pod is bound.
type untilBound struct{ then []func() }

// Binds does what was kept.
func (o *untilBound) Binds(*sim.Pod) {
	for _, do := range o.then {
		do()
	}
	o.then = nil
}

// Runs does nothing.
func (*untilBound) Runs(*sim.Pod) {}

// Leaves does nothing.
func (*untilBound) Leaves(*sim.Pod, sim.End) {}

// Ended does nothing.
func (*untilBound) Ended(*sim.Pod, sim.End) {}

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
	return w.Create(w.TemplateOf(&rec), sim.NewPod{Name: rec.Name, UID: rec.UID, Node: rec.NodeName,
		Owner: &untilBound{}})
}
