// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// add puts a decided pod on its way to its node, and replaces what was on its way for it.
func (b *binds) add(f *flight) {
	if old := b.of[f.pod.UID]; old != nil {
		b.remove(old)
	}
	b.of[f.pod.UID] = f
}

// remove takes a pod off its way.
func (b *binds) remove(f *flight) {
	b.resume(f)
	b.e.queue.EndWatch(f.unit)
	delete(b.of, f.pod.UID)
}

// wait has a pod wait before it is bound, at most until a time; 0 for no such time.
func (b *binds) wait(f *flight, again record.Time) {
	f.stage = waiting
	b.waiting[f.pod.UID] = f
	f.again.Phase = phaseBinds
	b.deadlines.Set(&f.again, again)
}

// resume ends the wait of a pod. It may be called for one that does not wait.
func (b *binds) resume(f *flight) {
	delete(b.waiting, f.pod.UID)
	b.deadlines.Stop(&f.again)
}

// due returns the pods that wait and whose time has come, in the order of their decisions.
func (b *binds) due(now record.Time) []*flight {
	return slices.DeleteFunc(b.allWaiting(), func(f *flight) bool { return f.again.At() == 0 || f.again.At() > now })
}

// allWaiting returns the pods that wait, in the order of their decisions.
func (b *binds) allWaiting() []*flight { return inOrder(b.waiting) }

// all returns the decided pods, in the order of their decisions.
func (b *binds) all() []*flight { return inOrder(b.of) }

func inOrder(flights map[cluster.UID]*flight) []*flight {
	list := make([]*flight, 0, len(flights))
	for _, f := range flights { // order: sorted below
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *flight) int { return cmp.Compare(a.decision, b.decision) })
	return list
}
