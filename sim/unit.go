// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// wanted is how many pods a unit should have now.
func (u *Unit) wanted() int {
	switch {
	case u.stopped:
		return 0
	case u.Workload.Kind == Job:
		return min(u.size, u.completions()-u.won)
	}
	return u.size
}

// completions is how many pods of a Job must succeed.
func (u *Unit) completions() int {
	if u.Workload.Completions > 0 {
		return u.Workload.Completions
	}
	return u.size
}

// active is how many of its pods do not terminate.
func (u *Unit) active() (n int) {
	for _, p := range u.live {
		if !p.Record.Terminating {
			n++
		}
	}
	return n
}

// fill creates the pods that a unit lacks.
func (u *Unit) fill() {
	switch kind := u.Workload.Kind; {
	case kind == StatefulSet:
		u.fillOrdered()
		return
	case kind == Gang && len(u.live) > 0:
		return
	}
	for n := u.active(); n < u.wanted(); n++ {
		u.create()
	}
}

func (u *Unit) create() {
	l, w := u.Workload, u.w
	n := NewPod{Name: fmt.Sprintf("%s-%d", u.Name, u.made), Owner: u}
	if l.Kind == Pods && u.size == 1 {
		n.Name = u.Name
	}
	work, fails := u.fate()
	switch l.Kind {
	case Gang:
		if u.size > 1 { // one pod needs no declaration to be placed as a whole
			n.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation,
				Namespace: u.template.record.Namespace, Name: u.Name}, Size: u.size}
		}
	case Pods:
		n.Work, n.Fails = work, fails
		if u.size == 1 {
			n.Work = u.work
		}
	default:
		n.Work, n.Fails = work, fails
	}
	u.made++
	u.live = append(u.live, w.Create(u.template, n))
}

// fate draws how long the next pod works, and whether it fails then.
func (u *Unit) fate() (work time.Duration, fails bool) {
	l, seed, number := u.Workload, u.w.setup.Seed, uint64(u.number)<<20|uint64(u.made)
	return l.Work.draw(mix(seed, streamDuration, l.index, number)),
		unit(mix(seed, streamFailure, l.index, number)) < l.FailRate
}

// Scale changes the number of pods of a ReplicaSet or a StatefulSet. It deletes the newest pods first, and those with
// the highest numbers.
func (u *Unit) Scale(size int) {
	u.size = max(size, 0)
	size = u.size
	if u.Workload.Kind == StatefulSet {
		u.fill()
		return
	}
	for i := len(u.live) - 1; i >= 0 && u.active() > size; i-- {
		if i < len(u.live) {
			u.w.Delete(u.live[i], Deleted)
		}
	}
	u.fill()
}

// Binds counts a pod that got its node.
func (u *Unit) Binds(*Pod) {
	if u.bound++; u.bound >= u.size {
		u.whole = true
	}
	u.recount()
}

// recount updates the World's count of pods that hold a node for a gang that is not whole.
func (u *Unit) recount() {
	n := u.partial()
	u.w.partial += n - u.counted
	u.counted = n
}

// partial is how many pods of a gang hold a node while the gang is not whole.
func (u *Unit) partial() int {
	if u.Workload.Kind != Gang || u.whole {
		return 0
	}
	return u.bound
}

// Runs counts a running pod. A gang begins its work with the last of them.
func (u *Unit) Runs(*Pod) {
	u.running++
	if u.Workload.Kind == StatefulSet {
		u.later()
	}
	if u.running < u.wanted() {
		return
	}
	if u.Started < 0 {
		u.Started = u.w.now
	}
	if u.Workload.Kind != Gang || u.work <= 0 {
		return
	}
	run := u.run
	u.w.After(u.work, func() { u.endRun(run) })
}

// endRun ends the work of a gang, unless it was created again meanwhile or its nodes have failed.
func (u *Unit) endRun(run int) {
	if u.run != run || u.stopped || u.running < u.size {
		return
	}
	for _, p := range u.live {
		if p.node == nil || p.node.failed {
			return
		}
	}
	l := u.Workload
	if unit(mix(u.w.setup.Seed, streamFailure, l.index, uint64(u.number)<<20|uint64(run))) < l.FailRate {
		u.failures++
		u.restart()
		return
	}
	u.stopped = true
	u.Finished = u.w.now
	for _, p := range slices.Clone(u.live) {
		u.w.Finish(p)
	}
}

// Leaves follows a pod that terminates or has ended.
func (u *Unit) Leaves(p *Pod, how End) {
	if p.BoundAt >= 0 {
		u.bound--
	}
	if p.Started >= 0 {
		u.running--
	}
	defer u.recount()
	switch {
	case u.stopped:
	case u.Workload.Kind == Gang:
		u.restart()
	case u.Workload.Kind == Job && how == Succeeded:
		u.won++
	case u.Workload.Kind == Job && how == Failed:
		u.failures++
	}
}

// restart deletes all pods of a gang. They are created again when the last of them is gone.
func (u *Unit) restart() {
	u.run++
	u.whole = false
	u.Restarts++
	if u.failures > u.Workload.Retries {
		u.stopped, u.GaveUp = true, true
	}
	again := u.stopped
	u.stopped = true // the deletions here are no reasons for another restart
	for _, p := range slices.Clone(u.live) {
		u.w.Delete(p, Deleted)
	}
	u.stopped = again
	if !u.stopped && len(u.live) == 0 {
		u.later()
	}
}

// Ended follows a pod that is gone.
func (u *Unit) Ended(p *Pod, how End) {
	if i := slices.Index(u.live, p); i >= 0 {
		u.live = slices.Delete(u.live, i, i+1)
	}
	if u.ordered != nil {
		u.ordered.drop(p)
	}
	switch kind := u.Workload.Kind; {
	case u.stopped:
	case kind == Pods:
		if how == Succeeded {
			u.won++
		}
		if len(u.live) == 0 {
			u.stopped = true
			if u.won == u.size {
				u.Finished = u.w.now
			}
		}
	case kind == Job && u.won >= u.completions():
		u.stopped = true
		u.Finished = u.w.now
	case kind == Job && u.failures > u.Workload.Retries:
		u.stopped, u.GaveUp = true, true
		for _, p := range slices.Clone(u.live) {
			u.w.Delete(p, Deleted)
		}
	case kind == Gang && len(u.live) > 0:
	default:
		if kind != Gang && u.active() < u.wanted() && how != Succeeded {
			u.Restarts++
		}
		u.later()
	}
}

// later lets the controller act.
func (u *Unit) later() {
	if u.waiting {
		return
	}
	u.waiting = true
	u.w.After(max(u.w.setup.Model.Controller, time.Nanosecond), func() {
		u.waiting = false
		u.fill()
	})
}
