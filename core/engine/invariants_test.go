// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// Invariants checks the invariants that are labelled on the fields of the engine's state. It must be called between
// two steps, and panics with the first one that does not hold.
func Invariants(e *Engine) {
	for _, check := range []func(*Engine) string{pendingInvariants, bindsInvariants, gangsInvariants} {
		if broken := check(e); broken != "" {
			panic(cluster.Broken("after " + fmt.Sprint(e.count.events) + " events: " + broken))
		}
	}
	if err := e.evictions.CheckInvariants(); err != nil {
		panic(cluster.Broken("after " + fmt.Sprint(e.count.events) + " events: evictions: " + err.Error()))
	}
	if err := e.blocked.CheckInvariants(); err != nil {
		panic(cluster.Broken("after " + fmt.Sprint(e.count.events) + " events: blocked gangs: " + err.Error()))
	}
}

func pendingInvariants(e *Engine) (broken string) {
	s := e.store.Snapshot()
	for uid, p := range e.pending { // order: any message will do
		_, _, assumed, holds := s.PodOn(uid)
		switch {
		case p.UID != uid:
			return fmt.Sprintf("pod %s is pending as %s", p.UID, uid)
		case holds && !assumed && e.binds.of[uid] == nil:
			return fmt.Sprintf("pod %s is pending and confirmed on a node", uid)
		}
	}
	for sub := range e.queue.Counts() { // order: any message will do
		e.queue.Each(sub, func(u *queue.Unit) {
			for _, p := range u.Members {
				if e.pending[p.UID] == nil {
					broken = fmt.Sprintf("pod %s waits and is not pending", p.UID)
				}
			}
		})
	}
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, assumed bool) {
			if assumed && e.pending[p.UID] == nil {
				broken = fmt.Sprintf("pod %s is assumed and not pending", p.UID)
			}
		})
	}
	return broken
}

func bindsInvariants(e *Engine) string {
	for uid, f := range e.binds.of { // order: any message will do
		switch {
		case f.pod.UID != uid:
			return fmt.Sprintf("the flight of pod %s is kept for %s", f.pod.UID, uid)
		case (f.stage == waiting) != (e.binds.waiting[uid] == f):
			return fmt.Sprintf("the flight of pod %s is in stage %d, waiting: %v", uid, f.stage, e.binds.waiting[uid] == f)
		case f.stage != waiting && f.again.At() != 0:
			return fmt.Sprintf("the flight of pod %s is in stage %d with a deadline", uid, f.stage)
		case len(f.unit.Members) != 1 || f.unit.Members[0].UID != uid:
			return fmt.Sprintf("the flight of pod %s has a unit of other pods", uid)
		}
	}
	for uid, f := range e.binds.waiting { // order: any message will do
		if e.binds.of[uid] != f {
			return fmt.Sprintf("pod %s waits and is not on its way", uid)
		}
	}
	return ""
}

func gangsInvariants(e *Engine) string {
	for uid, p := range e.gangs.edited { // order: any message will do
		kept := e.pending[uid]
		if kept == nil || kept.Gang == nil || p.Gang != nil && p.Gang.Key == kept.Gang.Key {
			return fmt.Sprintf("pod %s is in no gang but the one that it names", uid)
		}
	}
	for key, st := range e.gangs.of { // order: any message will do
		switch {
		case key == (cluster.GangKey{}):
			return "something is remembered of no gang"
		case st.partialSince > e.now:
			return fmt.Sprintf("gang %s is in part since %d, at %d", key, st.partialSince, e.now)
		case e.store.Snapshot().GangHolds(key) == 0 && !e.queue.HasGang(key) && st.told == (GangStatus{}):
			return fmt.Sprintf("gang %s has no pods and is remembered", key)
		}
	}
	return ""
}
