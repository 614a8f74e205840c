// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// maxGroupings is the maximum number of groupings of a Cache; the least recently used is dropped first.
const maxGroupings = 256

// groupings are the groupings of all classes of a Cache.
type groupings struct {
	byClass map[*Class][]*Grouping // Invariant: exactly those of all
	all     []*Grouping
	uses    uint64
	bytes   int // Invariant: the sum over all, between two uses
	budget  int // bytes
}

// of returns the Grouping of a class by facets, up to date; ok is false if there are too many groups.
func (gs *groupings) of(s cluster.Snapshot, c *Class, facets []plugin.Facet) (g *Grouping, ok bool) {
	g = gs.find(c, facets)
	before := g.bytes()
	ok = g.update(s, facets)
	gs.bytes += g.bytes() - before
	for gs.bytes > gs.budget && len(gs.all) > 1 {
		gs.forgetOldest()
	}
	return g, ok
}

// find finds or makes a Grouping.
func (gs *groupings) find(c *Class, facets []plugin.Facet) *Grouping {
	gs.uses++
	for _, g := range gs.byClass[c] {
		if slices.EqualFunc(g.facets, facets, plugin.Facet.Like) {
			g.used = gs.uses
			return g
		}
	}
	if len(gs.all) >= maxGroupings {
		gs.forgetOldest()
	}
	g := &Grouping{class: c, facets: slices.Clone(facets), ids: map[groupValues]int32{}, used: gs.uses}
	gs.all, gs.byClass[c] = append(gs.all, g), append(gs.byClass[c], g)
	return g
}

// forgetOldest drops the least recently used.
func (gs *groupings) forgetOldest() {
	gs.forget(slices.MinFunc(gs.all, func(a, b *Grouping) int { return cmp.Compare(a.used, b.used) }))
}

func (gs *groupings) forget(g *Grouping) {
	gs.bytes -= g.bytes()
	same := func(other *Grouping) bool { return other == g }
	gs.all = slices.DeleteFunc(gs.all, same)
	if left := slices.DeleteFunc(gs.byClass[g.class], same); len(left) > 0 {
		gs.byClass[g.class] = left
	} else {
		delete(gs.byClass, g.class)
	}
}

// forgetClass drops those of a class.
func (gs *groupings) forgetClass(c *Class) {
	for len(gs.byClass[c]) > 0 {
		gs.forget(gs.byClass[c][0])
	}
}
