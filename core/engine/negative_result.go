// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// With nothing else to do the queue hands out pods before their backoff is over (KEP-5142). A scheduler that
// decides in microseconds has nothing else to do after almost every event, so that of a thousand pods that wait for
// capacity each would be tried, and notified that it does not fit, at every event that frees capacity for one. Such
// a try is a look: when nothing comes of it the pod rests (queue.Rest), and no effect is emitted. What it may take
// on the way (a place, victims, something that a plugin gives up) it takes.

// changesNothing reports whether an attempt that ended without a place has no effect but to say so again.
func (e *Engine) changesNothing(p *cluster.Pod, a evict.Plan) bool {
	held := e.queue.NominationOf(p.UID)
	switch {
	case a.Verdict == preempt.Evict || a.Paused != 0:
		return false
	case a.Verdict == preempt.NotEligible || a.Verdict == preempt.Failed:
		return held != "" || p.Nominated == ""
	}
	return held == "" && p.Nominated == ""
}

// rest lets a pod rest after a search without a result.
func (e *Engine) rest(unit *queue.Unit, prof *profile, plugins []string, a evict.Plan) {
	p := unit.Members[0]
	// Others may be answered otherwise: by foreign code, from a sample of nodes, or for what the pod is promised.
	known := prof.Foreign == nil && prof.Search.Strategy == place.AllNodes && e.hasNoNomination(p)
	if known && !e.blocked.LetsIn(unit.Members) && !e.search.last.off {
		e.search.last = negativeResult{
			step: e.count.events, namespace: p.Namespace, spec: p.Spec, claims: p.ClaimsHash, plugins: plugins, message: a.Message}
	}
	e.queue.Rest(unit, plugins)
}

// covers reports whether a search for the unit's pod would end as the last one did.
func (r *negativeResult) covers(e *Engine, unit *queue.Unit) bool {
	p := unit.Members[0]
	return r.step+1 == e.count.events && r.spec != nil && unit.Early() &&
		r.spec == p.Spec && r.namespace == p.Namespace && r.claims == p.ClaimsHash && e.hasNoNomination(p) &&
		!e.blocked.LetsIn(unit.Members)
}

// hasNoNomination reports whether no node is nominated for a pod, and no pods were or are to be evicted for it.
func (e *Engine) hasNoNomination(p *cluster.Pod) bool {
	return p.Nominated == "" && e.queue.NominationOf(p.UID) == "" && !e.evictions.HasEvictions(p.UID)
}
