// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// objectID identifies an object other than a pod or node.
type objectID struct {
	kind cluster.Kind
	key  cluster.ObjectKey
}

// Kill ends a scheduler at once, as the loss of its process or of its lease. Calls that are on the way reach the API
// server, and nothing gets their answers; those that wait are never sent. After a while, the time until another process
// has the lease, a new one begins from lists.
func (w *World) Kill(scheduler int, after time.Duration) {
	old := w.schedulers[scheduler]
	if old.dead {
		return
	}
	old.dead = true
	old.watch, old.answers = fifo[delivery]{}, fifo[engine.Event]{}
	w.changed = w.now
	w.After(after, func() { w.succeed(scheduler) })
}

// succeed starts the successor of a scheduler that was killed.
func (w *World) succeed(scheduler int) {
	old := w.schedulers[scheduler]
	s := newScheduler(w, scheduler, old.Scheduler)
	s.tally, s.sights, s.failsUntil = old.tally, old.sights, old.failsUntil
	s.writes.sent, s.patches.sent = old.writes.sent, old.patches.sent
	w.schedulers[scheduler] = s
	w.changed = w.now
	s.tick()
	for _, n := range w.order {
		s.step(engine.NodeSet{Node: n.Record})
	}
	ids := make([]objectID, 0, len(w.objects))
	for id := range w.objects { // order: sorted below
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b objectID) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key.Namespace, b.key.Namespace),
			cmp.Compare(a.key.Name, b.key.Name))
	})
	for _, id := range ids {
		s.step(engine.ObjectSet{Object: w.objects[id]})
	}
	pods := make([]*Pod, 0, len(w.pods))
	for _, p := range w.pods { // order: sorted below
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.Number, b.Number) })
	for _, p := range pods {
		if s.wants(p.Record) {
			s.step(engine.PodSet{Pod: p.Record})
		}
	}
	s.step(engine.Synced{})
}

// relist drops the versions on its watch that a later one replaces.
func (s *scheduler) relist() {
	newest := map[string]int{} // object -> index of its newest version
	list := s.watch.list[s.watch.head:]
	for i, d := range list {
		newest[objectOf(d.ev)] = i
	}
	var kept []delivery
	for i, d := range list {
		if newest[objectOf(d.ev)] == i {
			kept = append(kept, d)
		}
	}
	s.watch = fifo[delivery]{list: kept}
}

// objectOf identifies the object of a delivery.
func objectOf(ev engine.Event) string {
	switch ev := ev.(type) {
	case engine.PodSet:
		return "pod " + string(ev.Pod.UID)
	case engine.PodGone:
		return "pod " + ev.Pod.UID
	case engine.NodeSet:
		return "node " + ev.Node.Name
	case engine.NodeGone:
		return "node " + ev.Name
	case engine.ObjectSet:
		return fmt.Sprint(objectID{cluster.KindOf(ev.Object), cluster.KeyOf(ev.Object)})
	case engine.ObjectGone:
		return fmt.Sprint(objectID{ev.Kind, ev.Key})
	}
	panic(fmt.Sprintf("sim: a watch of %T", ev))
}
