// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"cmp"
	"slices"
)

// gains returns how many slots more a node can have at most after 1, 2, … of its pods have left, up to most of them:
// for each resource by itself, the largest pods leave, and nothing arrives anywhere.
func (m *model) gains(n *node, most int) []int {
	if !n.host || len(n.pods) == 0 || most == 0 {
		return nil
	}
	most = min(most, len(n.pods))
	have := m.slots(n)
	out := make([]int, most)
	for i := range out {
		out[i] = -1
	}
	for r, q := range m.shape {
		if q <= 0 {
			continue
		}
		needs := make([]int64, len(n.pods))
		for i, p := range n.pods {
			needs[i] = m.pods[p].need.At(r)
		}
		slices.SortFunc(needs, func(a, b int64) int { return cmp.Compare(b, a) })
		free := n.free.At(r)
		for i := range most {
			free += needs[i]
			if k := int(max(0, free) / q); out[i] < 0 || k < out[i] {
				out[i] = k
			}
		}
	}
	for i := range out {
		out[i] = max(0, out[i]-have)
	}
	return out
}

// most returns the largest number of slots that 0, 1, … moves can add at most: the best choice of pods to leave, over
// all nodes (a knapsack).
func (m *model) most(moves int) []int {
	best := make([]int, moves+1)
	for i := range m.nodes {
		g := m.gains(&m.nodes[i], moves)
		if len(g) == 0 || g[len(g)-1] == 0 {
			continue
		}
		for k := moves; k > 0; k-- {
			for j := 1; j <= min(k, len(g)); j++ {
				best[k] = max(best[k], best[k-j]+g[j-1])
			}
		}
	}
	for k := 1; k <= moves; k++ {
		best[k] = max(best[k], best[k-1])
	}
	return best
}

// atLeast returns a number of moves with fewer than which so many slots cannot be added; limit+1 if limit moves are too
// few.
func (m *model) atLeast(gain, limit int) int {
	if gain <= 0 {
		return 0
	}
	for k, g := range m.most(limit) {
		if g >= gain {
			return k
		}
	}
	return limit + 1
}
