// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Class is the pods that node-local plugins cannot distinguish, with what these plugins say about them: a verdict and
// scores for each row. It is valid until its Cache is used again.
//
// A class is in one of two forms. In the full form it has a column of verdicts and columns of scores (results); in the
// compact form it has two bytes for each row (compact), and Verdicts writes them out.
type Class struct {
	results // in the compact form without columns
	compact compact
	order   order
	spec    *cluster.PodSpec
	work    *workspace
	seq     uint64 // in the full form: the store's journal is applied up to here
	size    int    // bytes that it counts for

	newer, older *Class // list by last use
}

// environment is what the classes of a Cache have in common.
type environment struct {
	profile
	work   workspace
	shared sharedClasses
}

// isCompact reports whether the class is in its compact form.
func (c *Class) isCompact() bool { return c.compact.shared != nil }

// Plan returns the plan of a filter by its index in the profile; it is empty for uncached filters.
func (c *Class) Plan(filter int) plugin.FilterPlan { return c.plans[filter] }

// Broken returns the first scorer that cannot score the pod, by its index in the profile, and why; err is nil if all
// can.
func (c *Class) Broken() (scorer int, err error) { return c.brokenAt, c.broken }

// Verdicts returns the column of verdicts of the filters before the first uncached one. In the compact form only the
// rows given are valid; nil means all rows.
func (c *Class) Verdicts(rows []cluster.NodeIdx) []plugin.Verdict {
	if !c.isCompact() {
		return c.verdicts
	}
	c.compact.expand(&c.work.expanded, rows)
	return c.work.expanded.verdicts[:c.compact.len()]
}

// TotalsAmong returns the totals if scores are normalised by those rows alone whose verdict is Fits; nil means all
// rows. Must be called after Verdicts, and before another class of the Cache is used.
func (c *Class) TotalsAmong(verdicts []plugin.Verdict, rows []cluster.NodeIdx) Totals {
	t := Totals{base: c.base}
	if c.isCompact() {
		t.base = c.work.expanded.base[:c.compact.len()]
	}
	for i := range c.scorers {
		sc := &c.scorers[i]
		if sc.Normal() == plugin.AsIs {
			continue
		}
		raw := c.rawColumn(i)
		if raw == nil {
			t.flat += sc.Weight * sc.Normal().Apply(0, 0)
			continue
		}
		t.extra = append(t.extra, normalisedScore{i, raw, sc.Normal(), sc.Weight, largestAmong(raw, verdicts, rows)})
	}
	return t
}

// rawColumn is the raw scores of a scorer whose scores are normalised, nil where they are 0 everywhere.
func (c *Class) rawColumn(scorer int) []int64 {
	if !c.isCompact() {
		if c.scorers[scorer].nonZero == 0 {
			return nil
		}
		return c.scorers[scorer].raw
	}
	if i, ok := c.compact.rawIndex(scorer); ok && len(c.compact.shared.sets) > 1 {
		return c.work.expanded.raws[i][:c.compact.len()]
	}
	return nil
}

// largestAmong is the largest raw score of the rows that fit, at least 0.
func largestAmong(raw []int64, verdicts []plugin.Verdict, rows []cluster.NodeIdx) (top int64) {
	for _, n := range rows {
		if verdicts[n] == plugin.Fits && raw[n] > top {
			top = raw[n]
		}
	}
	if rows != nil {
		return top
	}
	for n, v := range verdicts {
		if v == plugin.Fits && raw[n] > top {
			top = raw[n]
		}
	}
	return top
}

// EachScore visits the node-local scorers, in the order of the profile, with what they give to a row, normalised as the
// totals say. scorer is the index in the profile.
func (c *Class) EachScore(s cluster.Snapshot, n cluster.NodeIdx, by *Totals,
	visit func(scorer int, sc Scorer, raw, weighted int64)) {
	for i := range c.scorers {
		sc := &c.scorers[i]
		var raw int64
		switch {
		case sc.Normal() == plugin.AsIs:
			raw = sc.asIs(c.work, s, n, n+1)[0]
		case c.isCompact():
			raw = c.compact.raw(i, n)
		default:
			raw = sc.raw[n]
		}
		visit(sc.at, sc.Scorer, raw, sc.Weight*sc.Normal().Apply(raw, by.largestOf(i)))
	}
}

// Totals returns how the totals of the ranked rows are computed. Its columns may be missing.
func (c *Class) Totals() Totals { return c.order.totals }

// Normalised reports whether totals depend on which rows fit.
func (c *Class) Normalised() bool { return len(c.order.totals.extra) > 0 }

// tree returns the max tree over the totals of the rows, and the totals.
func (c *Class) tree() (*maxTree, byRow) {
	if c.isCompact() {
		return &c.compact.maxTree, &c.compact
	}
	return &c.order.ranking.maxTree, &c.order.ranking
}

// Feasible returns the number of rows that fit.
func (c *Class) Feasible() int {
	t, _ := c.tree()
	return t.ranked
}

// FitEpoch returns a number that differs where the rows of the class that fit differ.
func (c *Class) FitEpoch() uint64 { return c.compact.epoch + c.order.ranking.epoch } // neither ever decreases

// ListFit returns a new list of the rows that fit, in index order.
func (c *Class) ListFit() []cluster.NodeIdx {
	fit := make([]cluster.NodeIdx, 0, c.Feasible())
	if c.isCompact() {
		for n, code := range c.compact.codes {
			if code >= 0 {
				fit = append(fit, cluster.NodeIdx(n))
			}
		}
		return fit
	}
	for n, v := range c.verdicts {
		if v == plugin.Fits {
			fit = append(fit, cluster.NodeIdx(n))
		}
	}
	return fit
}

// Top returns the best total and the number of rows that have it, 0 if no row fits.
func (c *Class) Top() (best int64, rows int) {
	t, _ := c.tree()
	top := t.top()
	return top.best, int(top.rows)
}

// Kth returns the k-th row, from 0, in index order of those that have the best total.
func (c *Class) Kth(best int64, k int) cluster.NodeIdx {
	t, rows := c.tree()
	return t.kthOf(rows, best, k)
}

// Next returns the first of the rows with the highest total besides the only row that has the best, and that total;
// NoNode without one.
func (c *Class) Next(winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	t, rows := c.tree()
	return t.nextOf(rows, winner)
}

// update brings a class up to date.
func (c *Class) update(env *environment, s cluster.Snapshot, p *cluster.Pod) {
	switch {
	case c.stale(s):
	case !c.isCompact():
		c.work.meter.Plugin(plugin.AtFilter, "")
		c.catchUp(s)
		return
	case c.updateCompact(env, s):
		return
	}
	c.prepareFilters(&env.profile, c.work.meter, s, p)
	c.fill(env, s, p)
}

// fill evaluates every row, by filters that are prepared.
func (c *Class) fill(env *environment, s cluster.Snapshot, p *cluster.Pod) {
	c.prepareScores(&env.profile, c.work.meter, s, p)
	if c.fillCompact(env, s) {
		c.release()
		return
	}
	_, c.seq, _ = s.Changes(0)
	rows := s.Rows()
	c.grow(rows)
	c.work.meter.Plugin(plugin.AtFilter, "")
	c.work.meter.Did(record.RowsEvaluated, rows)
	c.filter(s, 0, cluster.NodeIdx(rows))
	c.work.meter.Plugin(plugin.AtScore, "")
	c.scoreAll(c.work, s)
	c.order.rankAll(&c.results)
}

// catchUp evaluates the rows that changed since the class was last used. It must be in its full form.
func (c *Class) catchUp(s cluster.Snapshot) {
	changes, next, ok := s.Changes(c.seq)
	c.seq = next
	rows := cluster.NodeIdx(s.Rows())
	c.grow(int(rows))
	if !ok || len(changes) > int(rows) {
		c.work.meter.Did(record.RowsEvaluated, int(rows))
		c.filter(s, 0, rows)
		c.score(c.work, s, 0, rows)
		c.order.rankAll(&c.results)
		return
	}
	c.work.meter.Did(record.RowsCaughtUp, len(changes))
	for i, n := range changes {
		if i > 0 && changes[i-1] == n {
			continue // a bind touches its row several times
		}
		c.filter(s, n, n+1)
		c.score(c.work, s, n, n+1)
	}
	c.order.rank(&c.results, changes)
}

// fillCompact evaluates all rows of a class that was just prepared, in the compact form; false if the class has to
// be in the full form.
func (c *Class) fillCompact(env *environment, s cluster.Snapshot) bool {
	d := &c.compact
	env.shared.detach(d.shared)
	if d.shared, d.own = env.shared.attach(&env.profile, c.work, s, c.spec, &c.results); d.shared == nil {
		return false
	}
	if !c.rebuildCompact(s) {
		env.shared.detach(d.shared)
		d.shared, d.codes = nil, d.codes[:0]
		return false
	}
	return true
}

// rebuildCompact evaluates all rows of a class whose sharedClass is up to date; false if codes cannot represent them.
func (c *Class) rebuildCompact(s cluster.Snapshot) bool {
	c.compact.rebuild(c.work, s)
	c.order.generation++
	c.order.totals = c.compact.totals(c.order.totals.extra[:0])
	return !c.compact.shared.overflowed
}

// updateCompact brings a class in its compact form up to date; false if it has to be filled anew.
func (c *Class) updateCompact(env *environment, s cluster.Snapshot) bool {
	shared := c.compact.shared
	env.shared.update(shared, c.work, s)
	if shared.overflowed {
		return false
	}
	renormalised, ok := c.compact.update(c.work, s)
	if !ok {
		return c.rebuildCompact(s)
	}
	if renormalised {
		c.order.generation++
		c.order.totals = c.compact.totals(c.order.totals.extra[:0])
	}
	return !shared.overflowed
}

// len is the number of rows.
func (c *Class) len() int {
	if c.isCompact() {
		return c.compact.len()
	}
	return len(c.verdicts)
}

// totalAt is a row's total for a ranking.
func (c *Class) totalAt(n int) int64 {
	if c.isCompact() {
		return c.compact.at(n)
	}
	return c.order.ranking.totals[n]
}

// bytes is the number of bytes that a class takes: a code for each row and a summary for each block, or verdict, base,
// total, and scores that are normalised, with their order where they differ.
func (c *Class) bytes() int {
	if c.isCompact() {
		return 2*len(c.compact.codes) + 16*len(c.compact.blocks)
	}
	size := 4 + 8 + 8 + 8*len(c.order.totals.extra)
	for i := range c.scorers {
		if c.scorers[i].Normal() != plugin.AsIs {
			size += 8
		}
	}
	return size * len(c.verdicts)
}
