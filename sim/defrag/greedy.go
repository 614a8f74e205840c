// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// step is one move, by indexes.
type step struct{ pod, from, to int }

// candidate is a node on which pods leave, so that there are more slots.
type candidate struct {
	node int
	pods []int
	gain int
}

// tried bounds for how many nodes targets are looked for before the best is taken.
const tried = 64

// greedy moves pods until there are so many slots, at most limit of them, and returns the moves. It takes the node on
// which the fewest pods leave for a slot, and sends each pod to the node that loses the least by it.
func (m *model) greedy(slots, limit int) (plan []step) {
	have := m.total()
	for have < slots {
		var best []step
		gained := 0
		list := m.candidates(limit - len(plan))
		for i, c := range list {
			if i >= tried && best != nil {
				break
			}
			moves, lost := m.place(c)
			if net := c.gain - lost; moves != nil && net > 0 && (best == nil || net*len(best) > gained*len(moves)) {
				best, gained = moves, net
			}
			if best != nil && i+1 < len(list) && list[i+1].gain*len(best) <= gained*len(list[i+1].pods) {
				break // no later one is better
			}
		}
		if best == nil {
			return plan
		}
		for _, s := range best {
			m.move(s.pod, s.to)
		}
		plan = append(plan, best...)
		have += gained
	}
	return plan
}

// candidates returns what at most so many moves can gain on one node, the most for each move first.
func (m *model) candidates(limit int) (list []candidate) {
	for i := range m.nodes {
		if c, is := m.candidate(i); is && len(c.pods) <= limit {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.gain*len(a.pods), a.gain*len(b.pods)), cmp.Compare(len(a.pods), len(b.pods)))
	})
	return list
}

// candidate chooses pods of a node that leave for one more slot: again and again the one that covers most of what is
// missing, and of those the smallest.
func (m *model) candidate(at int) (c candidate, is bool) {
	n := &m.nodes[at]
	if !n.host || len(n.pods) == 0 {
		return c, false
	}
	have := m.slots(n)
	free, left := n.free, slices.Clone(n.pods)
	for m.slotsIn(n, free) == have {
		best, covers, size := -1, 0.0, 0.0
		for i, p := range left {
			cover, whole := 0.0, 0.0
			for r, q := range m.shape {
				if q <= 0 {
					continue
				}
				need := float64(m.pods[p].need.At(r))
				missing := float64(int64(have+1)*q - free.At(r))
				whole += need / float64(q)
				if missing > 0 {
					cover += min(need, missing) / float64(q)
				}
			}
			if cover > covers || cover == covers && best >= 0 && whole < size {
				best, covers, size = i, cover, whole
			}
		}
		if best < 0 {
			return c, false
		}
		free = free.Minus(negative(m.pods[left[best]].need))
		c.pods = append(c.pods, left[best])
		left = slices.Delete(left, best, best+1)
	}
	c.node, c.gain = at, m.slotsIn(n, free)-have
	return c, true
}

// place chooses a target for each pod of a candidate, largest first, and returns how many slots the targets lose; no
// moves if there is none for one of them. It changes nothing.
func (m *model) place(c candidate) (moves []step, lost int) {
	pods := slices.Clone(c.pods)
	slices.SortStableFunc(pods, func(a, b int) int { return cmp.Compare(m.weight(b), m.weight(a)) })
	used := map[int]sim.Vector{} // node -> what is free after the moves so far
	for _, p := range pods {
		best, least, left := -1, 0, 0.0
		for to := range m.nodes {
			n := &m.nodes[to]
			free, changed := used[to]
			if !changed {
				free = n.free
			}
			if to == c.node || !holds(free, m.pods[p].need) {
				continue
			}
			after := free.Minus(m.pods[p].need)
			loss := m.slotsIn(n, free) - m.slotsIn(n, after)
			remains := m.share(after)
			if best >= 0 && (loss > least || loss == least && remains >= left) || !m.fits.fits(m.pods[p].record, to) {
				continue
			}
			best, least, left = to, loss, remains
		}
		if best < 0 {
			return nil, 0
		}
		free, changed := used[best]
		if !changed {
			free = m.nodes[best].free
		}
		used[best] = free.Minus(m.pods[p].need)
		moves, lost = append(moves, step{p, c.node, best}), lost+least
	}
	return moves, lost
}

// weight is the size of a pod in pods of the shape.
func (m *model) weight(p int) float64 { return m.share(m.pods[p].need) }

func (m *model) share(v sim.Vector) (sum float64) {
	for r, q := range m.shape {
		if q > 0 {
			sum += float64(v.At(r)) / float64(q)
		}
	}
	return sum
}
