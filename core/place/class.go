// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// class is what a Placer keeps for the pods that node-local plugins cannot distinguish.
type class struct {
	kept
	order order // of all of it, in the short form, totals.flat and made alone
	coded coded
	// groupings are those of its rows that are in use.
	groupings []*grouping
	spec      *cluster.PodSpec
	seq       uint64 // the store's journal is applied up to here
	size      int    // bytes this class counts for

	newer, older *class // list by last use
}

// newClass returns an empty class, with the columns of one that was dropped if there is one.
func (pl *Placer) newClass(spec *cluster.PodSpec) *class {
	c := &class{}
	if pl.spare != nil {
		c.kept, c.order, c.coded = pl.spare.kept, pl.spare.order, pl.spare.coded
		c.coded.kin = nil
		pl.spare = nil
	}
	c.spec = spec
	return c
}

// stale reports whether verdicts or scores of rows may have changed that the journal does not name.
func (c *class) stale(s cluster.Snapshot) bool {
	for i := range c.plans {
		if f, ages := c.plans[i].Filter.(plugin.Aging); ages && f.Stale(s) {
			return true
		}
	}
	for i := range c.scorers {
		if c.scorers[i].score.Epoch(s) != c.scorers[i].epoch {
			return true
		}
	}
	return false
}

// fill judges and scores every row, by filters that are prepared.
func (pl *Placer) fill(s cluster.Snapshot, p *cluster.Pod, c *class) {
	pl.prepareScores(s, p, &c.kept)
	if pl.encode(s, c) {
		c.kept.release()
		return
	}
	_, c.seq, _ = s.Changes(0)
	rows := s.Rows()
	c.grow(rows)
	pl.meter.Plugin(plugin.AtFilter, "")
	c.judge(s, 0, cluster.NodeIdx(rows))
	pl.meter.Plugin(plugin.AtScore, "")
	c.scoreAll(s)
	c.rankAll()
}

// follow brings a class up to date.
func (pl *Placer) follow(s cluster.Snapshot, p *cluster.Pod, c *class) {
	switch {
	case !c.stale(s) && c.coded.kin == nil:
		pl.meter.Plugin(plugin.AtFilter, "")
		c.catchUp(s)
		return
	case !c.stale(s) && pl.followCoded(s, c):
		return
	}
	pl.prepareFilters(s, p, &c.kept)
	pl.fill(s, p, c)
}

// catchUp judges and scores the rows that changed since the class was last used.
func (c *class) catchUp(s cluster.Snapshot) {
	changes, next, ok := s.Changes(c.seq)
	c.seq = next
	rows := cluster.NodeIdx(s.Rows())
	c.grow(int(rows))
	if !ok || len(changes) > int(rows) {
		c.judge(s, 0, rows)
		c.score(s, 0, rows)
		c.rankAll()
		return
	}
	for i, n := range changes {
		if i > 0 && changes[i-1] == n {
			continue // a bind touches its row several times
		}
		c.judge(s, n, n+1)
		c.score(s, n, n+1)
	}
	c.rerank(changes)
}

// len is the number of rows.
func (c *class) len() int {
	if c.coded.kin != nil {
		return len(c.coded.codes)
	}
	return len(c.verdicts)
}

// totalAt is a row's total for the ranking.
func (c *class) totalAt(n int) int64 {
	if c.coded.kin != nil {
		return c.coded.at(n)
	}
	return c.order.rank.totals[n]
}

// bytes is how many bytes a class takes: a code for each row and a summary for each block, or verdict, base, total, and
// scores that are normalised, with their order where they differ.
func (c *class) bytes() int {
	if c.coded.kin != nil {
		return 2*len(c.coded.codes) + 16*len(c.coded.blocks)
	}
	size := 4 + 8 + 8 + 8*len(c.order.by.extra)
	for i := range c.scorers {
		if c.scorers[i].Normal() != plugin.AsIs {
			size += 8
		}
	}
	return size * len(c.verdicts)
}

// remember adds a class and drops the least recently used ones above the budget.
func (pl *Placer) remember(c *class) {
	c.size = c.bytes()
	pl.bytes += c.size
	pl.classes[c.spec] = c
	pl.pushNewest(c)
	for pl.bytes > pl.budget && pl.oldest != c {
		pl.drop(pl.oldest)
	}
}

// Drop forgets what is known of pods like p. A search that panicked may have left it half done.
func (pl *Placer) Drop(p *cluster.Pod) {
	if k := pl.kins[alike(p).Kin]; k != nil {
		k.spoiled = true
	}
	if c := pl.classes[alike(p)]; c != nil {
		pl.drop(c)
		pl.spare = nil
	}
}

func (pl *Placer) drop(c *class) {
	pl.dropGroupings(c)
	pl.leave(c.coded.kin)
	delete(pl.classes, c.spec)
	pl.spare = c
	pl.bytes -= c.size
	pl.unlink(c)
}

// used moves a class to the newest end and counts what it has grown by.
func (pl *Placer) used(c *class) {
	size := c.bytes()
	pl.bytes += size - c.size
	c.size = size
	if pl.newest != c {
		pl.unlink(c)
		pl.pushNewest(c)
	}
}

func (pl *Placer) pushNewest(c *class) {
	c.newer, c.older = nil, pl.newest
	if pl.newest != nil {
		pl.newest.newer = c
	}
	pl.newest = c
	if pl.oldest == nil {
		pl.oldest = c
	}
}

func (pl *Placer) unlink(c *class) {
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		pl.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		pl.oldest = c.newer
	}
	c.newer, c.older = nil, nil
}

// Classes is the number of classes and the bytes they take.
func (pl *Placer) Classes() (n, bytes int) { return len(pl.classes), pl.bytes }
