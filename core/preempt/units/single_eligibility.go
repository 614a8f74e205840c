// SPDX-License-Identifier: Apache-2.0

package units

import (
	"math"
	"slices"
	"sort"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// mayGo reports whether a single pod may be evicted, apart from its priority.
func (o *singlePod) mayGo(n cluster.NodeIdx, p *cluster.Pod) bool {
	if o.q.Never != nil && whyStays(o.q, math.MinInt32, o.q.Never(p)) != "" {
		return false
	}
	return !o.isOwn(n, p)
}

// isOwn reports whether a pod on a row is of the preemptor's own gang.
func (o *singlePod) isOwn(n cluster.NodeIdx, p *cluster.Pod) bool {
	if o.own == noGang || !slices.Contains(o.index.rows[n].gangs, o.own) {
		return false
	}
	key, in := o.s.HeldGang(p.UID)
	return in && key == o.q.Own
}

// gangMayGo reports whether a gang that is evicted whole may be evicted, apart from its priority.
func (o *singlePod) gangMayGo(id int32) bool {
	if o.barred[id] == unasked {
		o.barred[id] = no
		if id == o.own || whyStays(o.q, math.MinInt32, whyGangStays(o.q, o.index.live(id))) != "" {
			o.barred[id] = yes
		}
	}
	return o.barred[id] == no
}

// violates reports whether the eviction of a pod alone violates a budget.
func (o *singlePod) violates(p *cluster.Pod) bool {
	for _, at := range o.budgets.About(p) {
		if !o.budgets.Granted(at, p) && o.budgets.Allows(at) < 1 {
			return true
		}
	}
	return false
}

// gangViolates reports whether the eviction of one of a gang's pods alone violates a budget.
func (o *singlePod) gangViolates(id int32) bool {
	if o.violating[id] == unasked {
		o.violating[id] = no
		if slices.ContainsFunc(o.index.gangs[id].members, func(pl podAt) bool { return o.violates(pl.pod) }) {
			o.violating[id] = yes
		}
	}
	return o.violating[id] == yes
}

// count returns the number of units that may be evicted.
func (o *singlePod) count() (units int) {
	for n := range o.index.rows {
		alone := o.index.rows[n].pods
		lower := alone[sort.Search(len(alone), func(i int) bool { return whyStays(o.q, alone[i].Priority, "") == "" }):]
		if !o.selective {
			units += len(lower)
			continue
		}
		for i := range lower {
			if o.mayGo(cluster.NodeIdx(n), lower[i].Pod) {
				units++
			}
		}
	}
	for id := range o.index.gangs {
		if o.mayEvictGang(int32(id)) {
			units++
		}
	}
	return units
}

// mayEvictGang reports whether a gang is evicted whole and may be evicted.
func (o *singlePod) mayEvictGang(id int32) bool {
	g := &o.index.gangs[id]
	return g.goesWhole() && whyStays(o.q, g.priority, "") == "" && (!o.selective || o.gangMayGo(id))
}
