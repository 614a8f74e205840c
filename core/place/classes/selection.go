// SPDX-License-Identifier: Apache-2.0

package classes

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Selection is the groups of a Grouping that fit in one decision, each with an amount that is added to the totals
// of its rows. It is valid until the Cache is used again; its zero value is one of no groups.
type Selection struct {
	of     *Grouping
	groups []int32 // those selected, in order
	added  []int64 // by position in groups
	at     []int32 // group -> position in groups, -1 for a group that is not selected
}

// Select begins a Selection from a Grouping.
func (sel *Selection) Select(g *Grouping) {
	sel.of = g
	sel.groups, sel.added, sel.at = sel.groups[:0], sel.added[:0], sel.at[:0]
	for range g.groups {
		sel.at = append(sel.at, -1)
	}
}

// Take selects a group, which must have rows.
func (sel *Selection) Take(id int) {
	sel.at[id] = int32(len(sel.groups))
	sel.groups, sel.added = append(sel.groups, int32(id)), append(sel.added, 0)
}

// Selected returns the number of groups that are selected.
func (sel *Selection) Selected() int { return len(sel.groups) }

// Add adds an amount to the totals of the rows of a group, by its position in the selection.
func (sel *Selection) Add(position int, amount int64) { sel.added[position] += amount }

// Position returns the position in the selection of the group of a row, which must be selected.
func (sel *Selection) Position(n cluster.NodeIdx) int { return int(sel.at[sel.of.groupOf[n]]) }

// Members appends, by position in the selection, the first row of each group with the best total of the group, and the
// number of rows of each group.
func (sel *Selection) Members(first []cluster.NodeIdx, sizes []int) ([]cluster.NodeIdx, []int) {
	for _, id := range sel.groups {
		rank := &sel.of.groups[id].rank
		first, sizes = append(first, rank.first()), append(sizes, rank.ranked)
	}
	return first, sizes
}

// Feasible returns the number of rows in the groups.
func (sel *Selection) Feasible() (rows int) {
	for _, id := range sel.groups {
		rows += sel.of.groups[id].rank.ranked
	}
	return rows
}

// Top returns the best total and the number of rows that have it.
func (sel *Selection) Top() (best int64, rows int) {
	top := summary{best: unranked}
	for i, id := range sel.groups {
		m := sel.of.groups[id].rank.top()
		top.add(m.best+sel.added[i], m.rows)
	}
	return top.best, int(top.rows)
}

// Kth returns the k-th row, from 0, in index order of those that have the best total.
func (sel *Selection) Kth(best int64, k int) cluster.NodeIdx {
	superblocks := 0
	for _, id := range sel.groups {
		superblocks = max(superblocks, len(sel.of.groups[id].rank.superblocks))
	}
	for w := range superblocks {
		rows := sel.count(best, func(r *ranking) summary { return r.superblocks[w] })
		if k >= rows {
			k -= rows
			continue
		}
		for b := w * fanout; ; b++ {
			rows := sel.count(best, func(r *ranking) summary { return r.blocks[b] })
			if k < rows {
				return sel.kthInBlock(b, best, k)
			}
			k -= rows
		}
	}
	return cluster.NoNode
}

// count is the number of rows that have a total in one range of rows, over the groups. No row there has a better one.
func (sel *Selection) count(total int64, summaryOf func(r *ranking) summary) (rows int) {
	for i, id := range sel.groups {
		if m := summaryOf(&sel.of.groups[id].rank); m.rows > 0 && m.best+sel.added[i] == total {
			rows += int(m.rows)
		}
	}
	return rows
}

// kthInBlock is the k-th row, from 0, of block b that has the total. There must be one.
func (sel *Selection) kthInBlock(b int, total int64, k int) cluster.NodeIdx {
	for n := b * fanout; ; n++ {
		id := sel.of.groupOf[n]
		if id == noGroup || sel.at[id] < 0 || sel.of.totals[n]+sel.added[sel.at[id]] != total {
			continue
		}
		if k == 0 {
			return cluster.NodeIdx(n)
		}
		k--
	}
}

// Next returns the first of the rows with the highest total besides the only row that has the best, and that total;
// NoNode without one.
func (sel *Selection) Next(winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	second, best := cluster.NoNode, int64(0)
	for i, id := range sel.groups {
		rank := &sel.of.groups[id].rank
		n, total := cluster.NoNode, int64(0)
		if sel.of.groupOf[winner] == id {
			n, total = rank.next(winner)
		} else {
			total = rank.top().best
			n = rank.kth(total, 0)
		}
		total += sel.added[i]
		if n != cluster.NoNode && (second == cluster.NoNode || total > best || total == best && n < second) {
			second, best = n, total
		}
	}
	return second, best
}
