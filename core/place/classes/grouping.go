// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// maxGroups is the maximum number of groups; with more of them it is cheaper to evaluate rows one by one.
	maxGroups = 256
	// MaxFacets is the maximum number of facets of a Grouping.
	MaxFacets = 8
	// retryAfter is the number of decisions before a Grouping with too many groups is tried again.
	retryAfter = 1000
)

// Grouping is the rows of a class that fit as far as the class can tell, in groups that no uncached plugin can
// distinguish. A decision evaluates a row of each group, and the result holds for all of them. Pods of a class that are
// distinguished by the same facets share a Grouping: those of one owner, whose labels differ in an index, do.
type Grouping struct {
	class      *Class
	facets     []plugin.Facet
	generation uint64 // order.generation of the class when the rows were grouped; 0 if they have to be grouped anew
	seq        uint64 // the store's journal is applied up to here
	used       uint64 // the number of the last use
	skip       int    // decisions for which there are known to be too many groups

	totals  []int64               // row -> total by the class
	groupOf []int32               // row -> group, noGroup where the row does not fit. Invariant: as long as totals
	ids     map[groupValues]int32 // values -> group. Invariant: exactly the groups with rows
	groups  []group
	free    []int32 // groups without rows. Invariant: len(free) + len(ids) == len(groups)
}

const noGroup int32 = -1

// groupValues are the values of the facets, in their order.
type groupValues [MaxFacets]int64

type group struct {
	values groupValues
	rank   ranking // Invariant: it ranks the rows whose groupOf is this group, by totals of the Grouping
}

// Groups returns the number of groups, with those without rows. Groups are numbered from 0.
func (g *Grouping) Groups() int { return len(g.groups) }

// InUse returns the number of groups that have rows.
func (g *Grouping) InUse() int { return len(g.ids) }

// First returns the first row with the best total of a group; ok is false for a group without rows.
func (g *Grouping) First(id int) (n cluster.NodeIdx, ok bool) {
	rank := &g.groups[id].rank
	if rank.ranked == 0 {
		return cluster.NoNode, false
	}
	return rank.first(), true
}

// bytes is the number of bytes that a Grouping takes: a group and a total for each row, a summary for each block of
// each group.
func (g *Grouping) bytes() int { return len(g.groupOf) * (4 + 8 + len(g.groups)*16/fanout) }

// update brings the groups up to date. It reports whether there are few enough of them.
func (g *Grouping) update(s cluster.Snapshot, facets []plugin.Facet) bool {
	if g.skip > 0 {
		g.skip--
		return false
	}
	changes, next, known := s.Changes(g.seq)
	current := g.generation == g.class.order.generation && slices.Equal(g.facets, facets)
	var ok bool
	if known && current && len(changes) <= g.class.len() {
		g.class.work.meter.Did(record.RowsCaughtUp, len(changes))
		ok = g.move(changes)
	} else {
		g.class.work.meter.Did(record.RowsCaughtUp, g.class.len())
		ok = g.regroup(facets)
	}
	g.seq = next
	if !ok {
		g.skip, g.generation = retryAfter, 0
	}
	return ok
}

// regroup puts every row into its group.
func (g *Grouping) regroup(facets []plugin.Facet) bool {
	g.facets, g.generation = append(g.facets[:0], facets...), g.class.order.generation
	clear(g.ids)
	g.free = g.free[:0]
	for id := len(g.groups) - 1; id >= 0; id-- {
		g.free = append(g.free, int32(id))
		g.groups[id].rank.ranked = 0
	}
	g.totals, g.groupOf = g.totals[:0], g.groupOf[:0]
	for n := range g.class.len() {
		g.totals = append(g.totals, g.class.totalAt(n))
	}
	for n, total := range g.totals {
		id := noGroup
		if total != unranked {
			if id = g.idOf(cluster.NodeIdx(n)); id == noGroup {
				return false
			}
		}
		g.groupOf = append(g.groupOf, id)
	}
	for id := range g.groups {
		g.share(int32(id))
	}
	for _, id := range g.groupOf {
		if id != noGroup {
			g.groups[id].rank.ranked++
		}
	}
	return true
}

// share makes the ranking of a group one over the rows that are in it.
func (g *Grouping) share(id int32) {
	r := &g.groups[id].rank
	r.totals, r.of, r.id = g.totals, g.groupOf, id
	r.summarize()
}

// idOf is the group of a row by the values of its facets; noGroup when there are too many. A group that is appended
// for it is not shared yet.
func (g *Grouping) idOf(n cluster.NodeIdx) int32 {
	var values groupValues
	for i := range g.facets {
		values[i] = g.facets[i].Of(n)
	}
	if id, known := g.ids[values]; known {
		return id
	}
	var id int32
	switch last := len(g.free) - 1; {
	case last >= 0:
		id, g.free = g.free[last], g.free[:last]
	case len(g.groups) == maxGroups:
		return noGroup
	default:
		id = int32(len(g.groups))
		g.groups = append(g.groups, group{})
	}
	g.ids[values], g.groups[id].values = id, values
	return id
}

// move puts rows that changed into their groups.
func (g *Grouping) move(changes []cluster.NodeIdx) bool {
	g.grow(g.class.len())
	for i, n := range changes {
		if i > 0 && changes[i-1] == n {
			continue
		}
		was, old := g.groupOf[n], g.totals[n]
		is, total, before := noGroup, g.class.totalAt(int(n)), len(g.groups)
		if total != unranked {
			if is = g.idOf(n); is == noGroup {
				return false
			}
		}
		if len(g.groups) > before {
			g.share(is)
		}
		g.groupOf[n], g.totals[n] = is, total
		if was == is {
			if is != noGroup {
				g.groups[is].rank.changed(n, old, total)
			}
			continue
		}
		if was != noGroup {
			g.groups[was].rank.changed(n, old, unranked)
			if g.groups[was].rank.ranked == 0 {
				delete(g.ids, g.groups[was].values)
				g.free = append(g.free, was)
			}
		}
		if is != noGroup {
			g.groups[is].rank.changed(n, unranked, total)
		}
	}
	return true
}

// grow extends the columns to n rows.
func (g *Grouping) grow(n int) {
	if len(g.groupOf) >= n {
		return
	}
	for len(g.groupOf) < n {
		g.groupOf, g.totals = append(g.groupOf, noGroup), append(g.totals, unranked)
	}
	for id := range g.groups {
		g.share(int32(id))
	}
}
