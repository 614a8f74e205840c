// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"cmp"
	"slices"

	"golang.org/x/exp/trace"
)

// atOnce returns how many of the intervals overlap at most, and how many on average while one does.
func atOnce(list []interval) (most int, mean float64) {
	type edge struct {
		at   trace.Time
		step int
	}
	edges := make([]edge, 0, 2*len(list))
	for _, i := range list {
		if i.to > i.from {
			edges = append(edges, edge{i.from, 1}, edge{i.to, -1})
		}
	}
	// An interval that ends where another begins does not overlap it.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	now, since := 0, trace.Time(0)
	busy, sum := 0.0, 0.0
	for _, e := range edges {
		if now > 0 {
			busy += float64(e.at - since)
			sum += float64(e.at-since) * float64(now)
		}
		now, since = now+e.step, e.at
		most = max(most, now)
	}
	if busy > 0 {
		mean = sum / busy
	}
	return most, mean
}
