// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// stage is how far a decided pod has come.
type stage uint8

const (
	preparing stage = iota // its writes are on the way; WritesDone answers
	waiting                // its writes are done; something it needs is not ready
	binding                // its bind is on the way; BindDone answers
)

// held is what one plugin holds for a pod.
type held struct {
	by        string
	hold      plugin.Reservation
	announced bool // that the pod must wait
}

// flight is a decided pod on its way to its node.
type flight struct {
	unit     *queue.Unit
	pod      *cluster.Pod // as assumed
	node     string
	decision uint64
	stage    stage
	holds    []held
	wrote    bool // Prepare was asked for
	// again is when to ask again whether it can be bound. Invariant: it is not set unless the stage is waiting.
	again   deadline.Entry
	gang    *GangBind // nil for a pod by itself
	retries int       // of the bind of a gang's member
	// before are the plugins that the pod waits for.
	before   []string
	expected bool // its node was shown as the nominated one
	// cancelled is why the pod is not to be bound any more, though the answer to its writes is still to come.
	cancelled string
	// recalled is why the pod does not fit its node any more, though the answer to its writes or its bind is still to
	// come. A bind that is on its way decides; otherwise the pod is tried again.
	recalled string
}

// binds are the decided pods whose bind has no outcome yet.
type binds struct {
	// of holds all of them; the same UID may be in the store as assumed, as confirmed (the watch was faster) or not at all (the
	// pod was deleted meanwhile).
	of map[cluster.UID]*flight // pod -> its flight
	// waiting holds those that wait for something before they are bound. Invariant: each is in of, in the stage waiting.
	waiting   map[cluster.UID]*flight // pod -> its flight
	deadlines *deadline.Heap
}

// add puts a decided pod on its way to its node, in the place of what was on its way for it.
func (b *binds) add(f *flight) {
	if old := b.of[f.pod.UID]; old != nil {
		b.remove(old)
	}
	b.of[f.pod.UID] = f
}

// remove takes a pod off its way.
func (b *binds) remove(f *flight) {
	b.resume(f)
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
func (b *binds) allWaiting() []*flight {
	list := make([]*flight, 0, len(b.waiting))
	for _, f := range b.waiting { // order: sorted below
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *flight) int { return cmp.Compare(a.decision, b.decision) })
	return list
}
