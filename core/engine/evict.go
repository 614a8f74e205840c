// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// doomed is a pod of a gang whose eviction was asked for, and that is not seen to go yet.
type doomed struct {
	gang     cluster.GangKey
	of       string // UID of the pod in whose name it goes
	decision uint64
}

// doom notes whose eviction is asked for. They do not count any more where their gang is asked how many of it have a place:
// otherwise a pod of it that waits would be placed beside them, and stay alone when they have gone (rule R5).
func (e *Engine) doom(f Evict) {
	s := e.store.Snapshot()
	var heard []cluster.GangKey
	for _, v := range f.Victims {
		uid := cluster.UID(v.UID)
		key, in := s.HeldGang(uid)
		if !in {
			continue
		}
		if _, already := e.doomed[uid]; !already {
			e.doomedOf[key]++
		}
		e.doomed[uid] = doomed{key, f.For.UID, f.Decision}
		heard = append(heard, key)
	}
	e.retell(heard, "pods of it are evicted")
}

// spareDoomed forgets that a pod was to be evicted: it is seen to go, is gone, or stays.
func (e *Engine) spareDoomed(uid cluster.UID) {
	d, is := e.doomed[uid]
	if !is {
		return
	}
	delete(e.doomed, uid)
	if e.doomedOf[d.gang]--; e.doomedOf[d.gang] == 0 {
		delete(e.doomedOf, d.gang)
	}
}

// gangStaying is how many pods of a gang have a place and are neither going nor asked to go.
func (e *Engine) gangStaying(key cluster.GangKey) int {
	n := e.gangLive(key)
	if e.doomedOf[key] == 0 {
		return n
	}
	for _, m := range e.store.Snapshot().GangMembers(key) {
		if _, goes := e.doomed[m.Pod.UID]; goes && !m.Pod.Terminating {
			n--
		}
	}
	return n
}

// evictDone learns what became of an Evict. Pods that could not be evicted to undo a gang are still there, and the gang's
// next attempt asks again.
func (e *Engine) evictDone(ev EvictDone) {
	e.refund(ev)
	if ev.Message != "" {
		e.reprieve(ev)
	}
	e.departed(ev)
	if e.evictionDone(ev) || e.clearanceDone(ev) {
		return
	}
	if p := e.pending[cluster.UID(ev.For.UID)]; p != nil && p.Gang != nil {
		e.reconsider(p.Gang.Key, "its other pods were taken back")
	}
}

// reprieve takes back that pods are to go, since their eviction failed. Those that were deleted nevertheless are seen to go.
func (e *Engine) reprieve(failed EvictDone) {
	var heard []cluster.GangKey
	for uid, d := range e.doomed { // order: each stands apart, and retell sorts
		if d.of == failed.For.UID && d.decision == failed.Decision {
			e.spareDoomed(uid)
			heard = append(heard, d.gang)
		}
	}
	e.retell(heard, "pods of it were not evicted")
}

// retell has gangs looked at again.
func (e *Engine) retell(gangs []cluster.GangKey, cause string) {
	slices.SortFunc(gangs, func(a, b cluster.GangKey) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range slices.Compact(gangs) {
		e.reconsider(key, cause)
	}
}
