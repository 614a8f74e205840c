// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

const (
	// maxGroups is how many groups are worth judging; with more of them rows are judged one by one.
	maxGroups = 256
	// maxFacets is the maximum number of facets that distinguish rows.
	maxFacets = 8
	// maxGroupings bounds the groupings of a Placer; the one not used for the longest time goes first.
	maxGroupings = 256
	// retryAfter is how many decisions pass before rows that fell into too many groups are tried again.
	retryAfter = 1000
)

// grouping is the rows of a class that fit as far as the class can tell, in groups that no wide plugin can
// distinguish. A decision judges and scores a row of each group and knows it of all of them. Pods of a class that are
// distinguished by the same facets share a grouping: those of one owner, whose labels differ in an index, do.
type grouping struct {
	class  *class
	facets []plugin.Facet
	made   uint64 // order.made of the class when the rows were grouped
	seq    uint64 // the store's journal is applied up to here
	used   uint64
	skip   int // decisions for which there are known to be too many groups

	totals []int64 // row -> total by the class, as the rankings have it
	of     []int32 // row -> group, noGroup where the row does not fit
	ids    map[groupValues]int32
	groups []group
	free   []int32 // groups without rows
}

const noGroup int32 = -1

// groupValues are the values of the facets, in their order.
type groupValues [maxFacets]int64

type group struct {
	values groupValues
	rank   ranking
	added  int64 // what wide plugins add to the totals of its rows, in one decision
}

// grouped is a search by groups.
type grouped struct {
	*grouping         // nil when the search is not by groups
	late      bool    // the verdicts of late filters on single rows are not in yet
	fits      []int32 // groups that fit
	at        []int32 // group -> position in fits
	first     []cluster.NodeIdx
	sizes     []int
}

// facets lists what the wide plugins that apply to the pod read; ok is false if one of them does not know.
func (pl *Placer) facets(s cluster.Snapshot, sr *search) (ok bool) {
	pl.facetSpace = pl.facetSpace[:0]
	for i := pl.firstLate; i < len(sr.plans); i++ {
		f := sr.plans[i].Filter
		if f == nil || pl.quiet(s, f) {
			continue
		}
		g, can := f.(plugin.GroupFilter)
		if !can {
			return false
		}
		if pl.facetSpace, ok = g.Facets(s, pl.facetSpace); !ok {
			return false
		}
	}
	for _, sc := range pl.profile.Scorers {
		w, wide := sc.Scorer.(plugin.WideScorer)
		if !wide {
			continue
		}
		if skips, can := sc.Scorer.(plugin.Skipper); can && skips.Skips(s, sr.pod) {
			continue
		}
		g, can := w.(plugin.GroupScorer)
		if !can {
			return false
		}
		if pl.facetSpace, ok = g.ScoreFacets(s, sr.pod, pl.facetSpace); !ok {
			return false
		}
	}
	unique := pl.facetSpace[:0]
	for _, f := range pl.facetSpace {
		if !slices.Contains(unique, f) {
			unique = append(unique, f)
		}
	}
	pl.facetSpace = unique
	return len(unique) > 0 && len(unique) <= maxFacets
}

// group searches by groups, if the result is the same as that of a scan of all rows.
func (pl *Placer) group(s cluster.Snapshot, sr *search) bool {
	if !sr.ranked() || sr.only != nil || sr.pod.Nominated != "" || pl.profile.Search.Strategy != AllNodes || sr.kept.broken != nil {
		return false
	}
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		return false
	}
	if !pl.facets(s, sr) {
		return false
	}
	g := pl.grouping(sr.class, pl.facetSpace)
	before := g.bytes()
	ok := g.follow(s, sr.class, pl.facetSpace)
	pl.groupBytes += g.bytes() - before
	for pl.groupBytes > pl.budget && len(pl.groupings) > 1 {
		pl.dropGrouping()
	}
	if !ok {
		return false
	}
	sr.grouped = grouped{grouping: g, late: true, fits: sr.grouped.fits[:0], at: sr.grouped.at[:0], first: sr.grouped.first[:0], sizes: sr.grouped.sizes[:0]}
	pl.judgeGroups(s, sr)
	if len(sr.class.order.by.extra) > 0 && len(sr.grouped.fits) < g.inUse() {
		sr.grouped.grouping = nil // a row that is left out may be the one that others are measured by
		return false
	}
	return true
}

// grouping finds or makes one.
func (pl *Placer) grouping(c *class, facets []plugin.Facet) *grouping {
	pl.groupUses++
	for _, g := range c.groupings {
		if slices.EqualFunc(g.facets, facets, plugin.Facet.Like) {
			g.used = pl.groupUses
			return g
		}
	}
	if len(pl.groupings) >= maxGroupings {
		pl.dropGrouping()
	}
	g := &grouping{class: c, facets: slices.Clone(facets), ids: map[groupValues]int32{}, used: pl.groupUses}
	pl.groupings, c.groupings = append(pl.groupings, g), append(c.groupings, g)
	return g
}

// dropGrouping forgets the one not used for the longest time.
func (pl *Placer) dropGrouping() {
	pl.forget(slices.MinFunc(pl.groupings, func(a, b *grouping) int { return cmp.Compare(a.used, b.used) }))
}

func (pl *Placer) forget(g *grouping) {
	pl.groupBytes -= g.bytes()
	same := func(other *grouping) bool { return other == g }
	pl.groupings = slices.DeleteFunc(pl.groupings, same)
	g.class.groupings = slices.DeleteFunc(g.class.groupings, same)
}

// dropGroupings forgets those of a class.
func (pl *Placer) dropGroupings(c *class) {
	for len(c.groupings) > 0 {
		pl.forget(c.groupings[0])
	}
}

// bytes is how much a grouping takes: a group and a total for each row, a summary for each block of each group.
func (g *grouping) bytes() int { return len(g.of) * (4 + 8 + len(g.groups)*16/fanout) }

// follow brings the groups up to date. It reports whether there are few enough of them.
func (g *grouping) follow(s cluster.Snapshot, c *class, facets []plugin.Facet) bool {
	if g.skip > 0 {
		g.skip--
		return false
	}
	changes, next, ok := s.Changes(g.seq)
	rows := c.len()
	switch {
	case !ok || len(changes) > rows || g.made != c.order.made || !slices.Equal(g.facets, facets):
		ok = g.regroup(c, facets)
	default:
		ok = g.update(c, changes)
	}
	g.seq = next
	if !ok {
		g.skip, g.made = retryAfter, 0
	}
	return ok
}

// regroup puts every row into its group.
func (g *grouping) regroup(c *class, facets []plugin.Facet) bool {
	g.facets, g.made = append(g.facets[:0], facets...), c.order.made
	clear(g.ids)
	g.free = g.free[:0]
	for id := len(g.groups) - 1; id >= 0; id-- {
		g.free = append(g.free, int32(id))
		g.groups[id].rank.ranked = 0
	}
	g.totals, g.of = g.totals[:0], g.of[:0]
	for n := range c.len() {
		g.totals = append(g.totals, c.totalAt(n))
	}
	for n, total := range g.totals {
		id := noGroup
		if total != unranked {
			if id = g.idOf(cluster.NodeIdx(n)); id == noGroup {
				return false
			}
		}
		g.of = append(g.of, id)
	}
	for id := range g.groups {
		g.share(int32(id))
	}
	for _, id := range g.of {
		if id != noGroup {
			g.groups[id].rank.ranked++
		}
	}
	return true
}

// share makes a group's ranking one over the rows that are in it.
func (g *grouping) share(id int32) {
	r := &g.groups[id].rank
	r.totals, r.of, r.id = g.totals, g.of, id
	r.sumUp()
}

// idOf is the group of a row by the values of its facets; noGroup when there are too many. A group that is appended
// for it is not shared yet.
func (g *grouping) idOf(n cluster.NodeIdx) int32 {
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

// update moves rows that changed to where they belong.
func (g *grouping) update(c *class, changes []cluster.NodeIdx) bool {
	g.grow(c.len())
	for i, n := range changes {
		if i > 0 && changes[i-1] == n {
			continue
		}
		was, old := g.of[n], g.totals[n]
		is, total, before := noGroup, c.totalAt(int(n)), len(g.groups)
		if total != unranked {
			if is = g.idOf(n); is == noGroup {
				return false
			}
		}
		if len(g.groups) > before {
			g.share(is)
		}
		g.of[n], g.totals[n] = is, total
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
func (g *grouping) grow(n int) {
	if len(g.of) >= n {
		return
	}
	for len(g.of) < n {
		g.of, g.totals = append(g.of, noGroup), append(g.totals, unranked)
	}
	for id := range g.groups {
		g.share(int32(id))
	}
}

// inUse counts the groups that have rows.
func (g *grouping) inUse() int { return len(g.ids) }

// judgeGroups lists the groups that fit.
func (pl *Placer) judgeGroups(s cluster.Snapshot, sr *search) {
	g := &sr.grouped
	for len(pl.judged) < s.Rows() {
		pl.judged = append(pl.judged, plugin.Fits)
	}
	pl.meter.Plugin(plugin.AtFilter, "")
	for id := range g.groups {
		rank := &g.groups[id].rank
		if rank.ranked == 0 {
			continue
		}
		n := rank.some()
		for i := pl.firstLate; i < len(sr.plans); i++ {
			if f := sr.plans[i].Filter; f != nil {
				f.Column(s, n, n+1, plugin.TagOf(i), pl.judged)
			}
		}
		if pl.judged[n] == plugin.Fits {
			g.fits = append(g.fits, int32(id))
		}
		pl.judged[n] = plugin.Fits
	}
}

// some is a row that is ranked, the first with the best total.
func (r *ranking) some() cluster.NodeIdx { return r.kth(r.top().best, 0) }

// chooseGrouped is choose for a search by groups.
func (pl *Placer) chooseGrouped(s cluster.Snapshot, sr *search, out *Outcome, draw func(n int) int) {
	g := &sr.grouped
	sr.by = sr.class.order.by
	for _, id := range g.fits {
		out.Feasible += g.groups[id].rank.ranked
		g.groups[id].added = 0
	}
	if out.Feasible == 0 {
		return
	}
	if out.Feasible > 1 {
		pl.scoreGroups(s, sr)
		if sr.err != nil {
			out.Err = sr.err
			return
		}
	}
	g.best(out, draw)
}

// scoreGroups lets wide scorers score a row of each group that fits.
func (pl *Placer) scoreGroups(s cluster.Snapshot, sr *search) {
	g := &sr.grouped
	for _, id := range g.fits {
		g.first, g.sizes = append(g.first, g.groups[id].rank.some()), append(g.sizes, g.groups[id].rank.ranked)
	}
	for len(g.at) < len(g.groups) {
		g.at = append(g.at, 0)
	}
	for i, id := range g.fits {
		g.at[id] = int32(i)
	}
	for at, sc := range pl.profile.Scorers {
		w, wide := sc.Scorer.(plugin.GroupScorer)
		if !wide {
			continue
		}
		pl.meter.Plugin(plugin.AtPreScore, sc.Name())
		score, err := w.PrepareGroups(s, sr.pod, g.first, g.sizes)
		if err != nil {
			sr.err = preScoreError(sc, err)
			return
		}
		if score == nil {
			continue
		}
		pl.meter.Plugin(plugin.AtScore, sc.Name())
		sr.scoreWide(s, sc, at, score, g.first)
		part := &sr.parts[len(sr.parts)-1]
		for i, id := range g.fits {
			g.groups[id].added += part.weight * part.normalised[i]
		}
	}
}

// best chooses among the groups.
func (g *grouped) best(out *Outcome, draw func(n int) int) {
	top := summary{best: unranked}
	for _, id := range g.fits {
		m := g.groups[id].rank.top()
		top.add(m.best+g.groups[id].added, m.rows)
	}
	out.Total, out.Tied = top.best, int(top.rows)
	if out.Tied == 1 {
		out.Node = g.kth(top.best, 0)
		out.RunnerUp, out.RunnerUpTotal = g.next(out.Node)
		return
	}
	k, other := checkedDraw(draw, out.Tied), 0
	if k == 0 {
		other = 1
	}
	out.Node, out.RunnerUp, out.RunnerUpTotal = g.kth(top.best, k), g.kth(top.best, other), top.best
}

// kth is ranking.kth over all groups: the k-th row, in index order, of those that have the total, which is the best.
func (g *grouped) kth(total int64, k int) cluster.NodeIdx {
	wings := 0
	for _, id := range g.fits {
		wings = max(wings, len(g.groups[id].rank.wings))
	}
	// count sums the rows of one stretch that have the total, over groups.
	count := func(stretch func(r *ranking) summary) (rows int) {
		for _, id := range g.fits {
			if m := stretch(&g.groups[id].rank); m.rows > 0 && m.best+g.groups[id].added == total {
				rows += int(m.rows)
			}
		}
		return rows
	}
	for w := range wings {
		rows := count(func(r *ranking) summary { return r.wings[w] })
		if k >= rows {
			k -= rows
			continue
		}
		for b := w * fanout; ; b++ {
			rows := count(func(r *ranking) summary { return r.blocks[b] })
			if k >= rows {
				k -= rows
				continue
			}
			for n := b * fanout; ; n++ {
				if id := g.of[n]; id != noGroup && g.totals[n]+g.groups[id].added == total && slices.Contains(g.fits, id) {
					if k == 0 {
						return cluster.NodeIdx(n)
					}
					k--
				}
			}
		}
	}
	return cluster.NoNode
}

// next is ranking.next over all groups.
func (g *grouped) next(winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	second, best := cluster.NoNode, int64(0)
	for _, id := range g.fits {
		rank, added := &g.groups[id].rank, g.groups[id].added
		n, total := cluster.NoNode, int64(0)
		if g.of[winner] == id {
			n, total = rank.next(winner)
		} else {
			total = rank.top().best
			n = rank.kth(total, 0)
		}
		if n != cluster.NoNode && (second == cluster.NoNode || total+added > best || total+added == best && n < second) {
			second, best = n, total+added
		}
	}
	return second, best
}
