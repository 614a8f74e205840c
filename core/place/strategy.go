// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Strategy says which of the nodes that fit are ranked.
type Strategy uint8

// The strategies.
const (
	// AllNodes looks at every node and ranks all that fit.
	AllNodes Strategy = iota
	// FixedWindow is upstream's way with a percentageOfNodesToScore other than 0: look at nodes from where the last
	// search ended, zones in turn, until enough fit (see Window).
	FixedWindow
	// RandomSubset ranks a random sample of the nodes that fit.
	RandomSubset
	// PowerOfTwo ranks two random nodes of those that fit (kubernetes#86630).
	PowerOfTwo
)

// Search is a strategy with its settings.
type Search struct {
	Strategy Strategy
	// Percentage of nodes that a FixedWindow wants; 0 is upstream's adaptive formula.
	Percentage int32
	// Subset is how many nodes a RandomSubset ranks, at least 1.
	Subset int
}

// sample leaves of the rows that fit those that the strategy ranks, and returns how many fit. Every node has been
// considered: a pod that fits one node alone is placed.
func (sr *search) sample(by Search, draw func(n int) int) (fits int) {
	want := by.Subset
	switch by.Strategy {
	case AllNodes, FixedWindow:
		return 0
	case PowerOfTwo:
		want = 2
	}
	var rows []cluster.NodeIdx
	sr.readRows()
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			rows = append(rows, n)
		}
	}
	if len(rows) <= want {
		return len(rows)
	}
	sr.ownRows()
	for i := range want { // the first steps of a shuffle
		k := i + draw(len(rows)-i)
		rows[i], rows[k] = rows[k], rows[i]
	}
	for _, n := range rows[want:] {
		sr.verdicts[n] = plugin.Unseen
	}
	return len(rows)
}
