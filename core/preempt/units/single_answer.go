// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// confirm makes the dry run that an answer needs, and completes the answer. The what-if check is invalid afterwards.
func (o *singlePod) confirm(a *Answer) (ok bool) {
	o.candidates.reset()
	d := &dryRuns{q: o.q, candidates: o.candidates, base: o.q.Trial.Checkpoint()}
	d.start = d.base
	defer d.end()
	ok = true
	switch a.Verdict {
	case preempt.NotEligible:
		o.candidates.terminating = o.terminating
		d.begin()
		ok = d.fits()
	case preempt.Evict:
		list := o.load(o.victims)
		o.candidates.order()
		a.Rows, ok = d.placesWithout(list, o.goingWith())
		a.Loss, a.Victims, a.Minimum = o.candidates.loss(list), o.candidates.victims(list), true
	}
	a.Tried = d.tried
	return ok
}

// consideredUnit is a unit that is not evicted and that the answer reports.
type consideredUnit struct {
	pod      *cluster.Pod // one of its pods
	gang     int32        // id, noGang for a single pod
	row      cluster.NodeIdx
	pods     int
	priority int32
	oldest   record.Time
}

// compare is negative if t is less important than another, in the order of the search for gangs without budgets.
func (t *consideredUnit) compare(other *consideredUnit) int {
	return cmp.Or(cmp.Compare(t.priority, other.priority), cmp.Compare(t.pods, other.pods),
		cmp.Compare(other.oldest, t.oldest))
}

// considered lists units that are not evicted, as candidates.considered does.
func (o *singlePod) considered(v preempt.Verdict) (list []Considered) {
	kept := o.excluded()
	for _, t := range o.leastImportant(MaxConsidered - min(len(kept), MaxConsidered/2)) {
		c := Considered{Pod: t.pod, Pods: t.pods, Priority: t.priority, Why: "there is room for all without its going"}
		if t.gang != noGang {
			c.Gang = o.index.gangs[t.gang].key
		}
		switch {
		case v == preempt.NotEligible:
		case !o.helps(&t):
			c.Why = "nothing that it holds is where it would help"
		case v == preempt.NotHelpful:
			c.Why = notEnough
		}
		list = append(list, c)
	}
	return append(list, kept[:min(len(kept), MaxConsidered-len(list))]...)
}

// leastImportant lists up to most units that may be evicted and are not, the least important first.
func (o *singlePod) leastImportant(most int) (list []consideredUnit) {
	enter := func(t consideredUnit) (more bool) {
		full := len(list) == most
		if full && t.compare(&list[most-1]) > 0 {
			return false
		}
		after := func(a *consideredUnit) bool { // reports whether a comes after t
			d := t.compare(a)
			return d < 0 || d == 0 && victim.CompareNames(a.pod, t.pod) < 0
		}
		if full && !after(&list[most-1]) {
			return true
		}
		if full {
			list = list[:most-1]
		}
		at := slices.IndexFunc(list, func(a consideredUnit) bool { return after(&a) })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, t)
		return true
	}
	list = make([]consideredUnit, 0, most)
	for n := range o.index.rows {
		alone := o.index.rows[n].pods
		for i := len(alone) - 1; i >= 0; i-- {
			c := &alone[i]
			if whyStays(o.q, c.Priority, "") != "" {
				break
			}
			if o.selective && !o.mayGo(cluster.NodeIdx(n), c.Pod) || o.isVictim(c.Pod, noGang) {
				continue
			}
			if !enter(consideredUnit{c.Pod, noGang, cluster.NodeIdx(n), 1, c.Priority, c.Start}) {
				break
			}
		}
	}
	for id := range o.index.gangs {
		if id := int32(id); o.mayEvictGang(id) && !o.isVictim(nil, id) {
			g := &o.index.gangs[id]
			t := consideredUnit{nil, id, cluster.NoNode, len(g.members), g.priority, g.oldest}
			if len(list) == most && t.compare(&list[most-1]) > 0 {
				continue
			}
			t.pod = o.index.live(id)[0].pod
			enter(t)
		}
	}
	return list
}

// isVictim reports whether a unit is among the victims.
func (o *singlePod) isVictim(p *cluster.Pod, gang int32) bool {
	return slices.ContainsFunc(o.victims, func(c choice) bool { return c.pod == p && c.gang == gang })
}

// helps reports whether a unit has a pod on a row with enough capacity if all units are evicted.
func (o *singlePod) helps(t *consideredUnit) bool {
	if t.gang == noGang {
		return o.enoughOn(t.row)
	}
	return slices.ContainsFunc(o.index.gangs[t.gang].members, func(pl podAt) bool { return o.enoughOn(pl.row) })
}

// enoughOn reports whether a row has enough capacity with all units evicted that may be.
func (o *singlePod) enoughOn(n cluster.NodeIdx) bool {
	if o.s.Node(n) == nil || !o.whatIf.AmountsReject(n) || !o.measure(n) {
		return false
	}
	row := &o.index.rows[n]
	o.pool = o.pool[:0]
	for i := range row.pods {
		if c := &row.pods[i]; whyStays(o.q, c.Priority, "") == "" && (!o.selective || o.mayGo(n, c.Pod)) {
			o.addPod(c)
		}
	}
	for i := range row.parts {
		if part := &row.parts[i]; whyStays(o.q, part.priority, "") == "" && (!o.selective || o.gangMayGo(part.gang)) {
			o.addGangPart(part)
		}
	}
	return o.met()
}

// excluded lists some of the units that may not be evicted, with the reason.
func (o *singlePod) excluded() (list []Considered) {
	for n := range o.index.rows {
		row := &o.index.rows[n]
		for i := range row.pods {
			c := &row.pods[i]
			never := ""
			if o.q.Never != nil {
				never = o.q.Never(c.Pod)
			}
			if never = whyStays(o.q, c.Priority, never); never == "" {
				if o.selective {
					continue
				}
				break
			}
			if !o.isOwn(cluster.NodeIdx(n), c.Pod) {
				list = append(list, Considered{Pod: c.Pod, Pods: 1, Priority: c.Priority, Why: never})
			}
			if len(list) == MaxConsidered {
				return list
			}
		}
	}
	seen := make([]bool, len(o.index.gangs)) // id -> it was visited
	for n := range o.index.rows {
		for i := range o.index.rows[n].parts { // in the order of the rows: ids depend on what was searched before
			id := o.index.rows[n].parts[i].gang
			if seen[id] || id == o.own || o.mayEvictGang(id) {
				continue
			}
			seen[id] = true
			g, pods := &o.index.gangs[id], o.index.live(id)
			list = append(list, Considered{Gang: g.key, Pod: pods[0].pod, Pods: len(pods), Priority: g.priority,
				Why: whyStays(o.q, g.priority, whyGangStays(o.q, pods))})
			if len(list) == MaxConsidered {
				return list
			}
		}
	}
	return list
}

// goingWith returns the terminating pods on the row of the best set whose capacity is counted on.
func (o *singlePod) goingWith() []*cluster.Pod {
	return slices.DeleteFunc(slices.Clone(o.index.rows[o.best.Row].terminating), o.isStuck)
}
