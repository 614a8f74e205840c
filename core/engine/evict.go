// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// evictDone learns what became of an Evict. Pods that could not be evicted to undo a gang are still there, and the gang's
// next attempt asks again.
func (e *Engine) evictDone(ev EvictDone) {
	e.departed(ev)
	if e.evictionDone(ev) || e.clearanceDone(ev) {
		return
	}
	if p := e.pending[cluster.UID(ev.For.UID)]; p != nil && p.Gang != nil {
		e.reconsider(p.Gang.Key, "its other pods were taken back")
	}
}
