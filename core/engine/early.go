// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// With nothing else to do the queue hands out pods before their backoff is over (KEP-5142). A scheduler that decides in
// microseconds has nothing else to do after almost every event, so that of a thousand pods that wait for room each would be
// tried, and told that it does not fit, at every event that makes room for one. Such a try is a look: when nothing comes of
// it the pod rests (queue.Rest), and nobody is told. What it may take on the way (a place, victims, something that a plugin
// gives up) it takes.

// changesNothing tells whether an attempt that ended without a place has no effect but to say so again.
func (e *Engine) changesNothing(p *cluster.Pod, a evict.Plan) bool {
	held := e.queue.NominationOf(p.UID)
	switch {
	case a.Verdict == preempt.Evict || a.Paused != 0 || e.lobby.seats(p):
		return false
	case a.Verdict == preempt.NotEligible || a.Verdict == preempt.Failed:
		return held != "" || p.Nominated == ""
	}
	return held == "" && p.Nominated == ""
}

// barren is the kind of the pod that was looked for last, in vain, and the plugins that rejected it. It is forgotten when
// anything else happens, be it only that time goes on, so others of the kind behind it need not be looked for.
type barren struct {
	namespace string
	spec      *cluster.PodSpec // nil for none
	claims    uint64
	plugins   []string
	message   string // of the search for victims
}

// forgetBarren is called by every step.
func (e *Engine) forgetBarren() (was barren) {
	was = e.barren
	e.barren = barren{}
	return was
}

// rest lets a pod rest that was looked for in vain.
func (e *Engine) rest(unit *queue.Unit, prof *profile, plugins []string, a evict.Plan) {
	p := unit.Members[0]
	// Others may be answered otherwise: by foreign code, from a sample of nodes, or for what the pod is promised.
	if prof.Foreign == nil && prof.Search.Strategy == place.AllNodes && e.hasNoPromise(p) && !e.plain {
		e.barren = barren{namespace: p.Namespace, spec: p.Spec, claims: p.ClaimsHash, plugins: plugins, message: a.Message}
	}
	e.queue.Rest(unit, plugins)
}

// covers tells whether a look for the unit's pod would end as the last one did.
func (b *barren) covers(e *Engine, unit *queue.Unit) bool {
	p := unit.Members[0]
	return b.spec != nil && unit.Early() && b.spec == p.Spec && b.namespace == p.Namespace && b.claims == p.ClaimsHash && e.hasNoPromise(p)
}

// hasNoPromise tells that no node is promised to a pod and nobody was evicted for it.
func (e *Engine) hasNoPromise(p *cluster.Pod) bool {
	return p.Nominated == "" && e.queue.NominationOf(p.UID) == "" && !e.evictions.HasEvicted(p.UID) && !e.lobby.seats(p)
}
