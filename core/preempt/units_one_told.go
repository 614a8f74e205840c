// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// told is a unit of which it is told why it stays.
type told struct {
	pod      *cluster.Pod // one of it
	gang     int32        // its id, noGang for a pod by itself
	row      cluster.NodeIdx
	pods     int
	priority int32
	oldest   record.Time
}

// compare is negative when t is less important than another: less so than which is the order of the search for gangs, but for
// budgets.
func (t *told) compare(other *told) int {
	return cmp.Or(cmp.Compare(t.priority, other.priority), cmp.Compare(t.pods, other.pods), cmp.Compare(other.oldest, t.oldest))
}

// considered tells of units that stay, as units.considered does.
func (o *lone) considered(v Verdict) (list []ConsideredUnit) {
	kept := o.kept()
	for _, t := range o.leastImportant(MostConsidered - min(len(kept), MostConsidered/2)) {
		c := ConsideredUnit{Pod: t.pod, Pods: t.pods, Priority: t.priority, Why: "there is room for all without its going"}
		if t.gang != noGang {
			c.Gang = o.ur.gangs[t.gang].key
		}
		switch {
		case v == NotEligible:
		case !o.helps(&t):
			c.Why = "nothing that it holds is where it would help"
		case v == NotHelpful:
			c.Why = notEnough
		}
		list = append(list, c)
	}
	return append(list, kept[:min(len(kept), MostConsidered-len(list))]...)
}

// leastImportant are so many units that may go and do not, the least important first.
func (o *lone) leastImportant(most int) (list []told) {
	enter := func(t told) (more bool) {
		full := len(list) == most
		if full && t.compare(&list[most-1]) > 0 {
			return false
		}
		after := func(a *told) bool { // whether a is to stand behind t
			d := t.compare(a)
			return d < 0 || d == 0 && byName(a.pod, t.pod) < 0
		}
		if full && !after(&list[most-1]) {
			return true
		}
		if full {
			list = list[:most-1]
		}
		at := slices.IndexFunc(list, func(a told) bool { return after(&a) })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, t)
		return true
	}
	list = make([]told, 0, most)
	for n := range o.ur.rows {
		alone := o.ur.rows[n].alone
		for i := len(alone) - 1; i >= 0; i-- {
			c := &alone[i]
			if stays(o.q, c.priority, "") != "" {
				break
			}
			if o.picky && !o.mayGo(cluster.NodeIdx(n), c.pod) || o.goes(c.pod, noGang) {
				continue
			}
			if !enter(told{c.pod, noGang, cluster.NodeIdx(n), 1, c.priority, c.start}) {
				break
			}
		}
	}
	for id := range o.ur.gangs {
		if id := int32(id); o.lower(id) && !o.goes(nil, id) {
			g := &o.ur.gangs[id]
			t := told{nil, id, cluster.NoNode, len(g.members), g.priority, g.oldest}
			if len(list) == most && t.compare(&list[most-1]) > 0 {
				continue
			}
			t.pod = o.ur.live(id)[0].pod
			enter(t)
		}
	}
	return list
}

// goes tells whether a unit is among the victims.
func (o *lone) goes(p *cluster.Pod, gang int32) bool {
	return slices.ContainsFunc(o.set, func(c choice) bool { return c.pod == p && c.gang == gang })
}

// helps tells whether a unit has a pod on a row where there would be room with all gone.
func (o *lone) helps(t *told) bool {
	if t.gang == noGang {
		return o.enoughOn(t.row)
	}
	return slices.ContainsFunc(o.ur.gangs[t.gang].members, func(pl placed) bool { return o.enoughOn(pl.row) })
}

// enoughOn tells whether a row has room with all gone that may go.
func (o *lone) enoughOn(n cluster.NodeIdx) bool {
	if o.s.Node(n) == nil || !o.rel.AmountsReject(n) || !o.look(n) {
		return false
	}
	row := &o.ur.rows[n]
	o.pool = o.pool[:0]
	for i := range row.alone {
		if c := &row.alone[i]; stays(o.q, c.priority, "") == "" && (!o.picky || o.mayGo(n, c.pod)) {
			o.enterPod(c)
		}
	}
	for i := range row.parts {
		if part := &row.parts[i]; stays(o.q, part.priority, "") == "" && (!o.picky || o.gangMayGo(part.gang)) {
			o.enterPart(part)
		}
	}
	return o.met()
}

// kept are some of those units that may not go, and why.
func (o *lone) kept() (list []ConsideredUnit) {
	for n := range o.ur.rows {
		row := &o.ur.rows[n]
		for i := range row.alone {
			c := &row.alone[i]
			never := ""
			if o.q.Never != nil {
				never = o.q.Never(c.pod)
			}
			if never = stays(o.q, c.priority, never); never == "" {
				if o.picky {
					continue
				}
				break
			}
			if !o.isOwn(cluster.NodeIdx(n), c.pod) {
				list = append(list, ConsideredUnit{Pod: c.pod, Pods: 1, Priority: c.priority, Why: never})
			}
			if len(list) == MostConsidered {
				return list
			}
		}
	}
	for id := range o.ur.gangs {
		g := &o.ur.gangs[id]
		if !g.goesWhole() || int32(id) == o.own || o.lower(int32(id)) {
			continue
		}
		pods := o.ur.live(int32(id))
		list = append(list, ConsideredUnit{Gang: g.key, Pod: pods[0].pod, Pods: len(pods), Priority: g.priority, Why: stays(o.q, g.priority, keeps(o.q, pods))})
		if len(list) == MostConsidered {
			break
		}
	}
	return list
}
