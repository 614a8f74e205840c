// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// blockedHost is the engine as core/blocked sees it.
type blockedHost struct{ e *Engine }

func (h blockedHost) Emit(f Effect)                                { h.e.emit(f) }
func (h blockedHost) Now() record.Time                             { return h.e.now }
func (h blockedHost) Pending(uid cluster.UID) bool                 { return h.e.pending[uid] != nil }
func (h blockedHost) Reconsider(key cluster.GangKey, cause string) { h.e.reconsider(key, cause) }

// SearchWithout searches in a trial that is discarded. Its draws are those of the attempt. The answers of foreign code
// belong to the attempt alone, so that a profile with such code has no answer here.
func (h blockedHost) SearchWithout(a gang.Attempt, gone []*cluster.Pod) gang.Answer {
	e := h.e
	prof := e.profiles[a.First().Spec.SchedulerName]
	if prof.Foreign != nil {
		return gang.Answer{Verdict: gang.GaveUp}
	}
	trial := e.store.Trial()
	defer trial.Discard()
	for _, p := range gone {
		trial.Evict(p.UID)
	}
	on := e.ground(prof, &a, trial)
	on.DryRun = true
	ans := gang.Place(a.Need, on)
	for _, i := range slices.Backward(ans.Order) {
		for _, kept := range slices.Backward(ans.Holds[i]) {
			kept.Hold.Release(trial, false)
		}
	}
	return ans
}
