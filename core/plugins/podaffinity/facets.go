// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Facets are those of the topologies of all terms.
func (f *podAffinityFilter) Facets(_ cluster.Snapshot, into []plugin.Facet) ([]plugin.Facet, bool) {
	all := !f.supposed
	add := func(facet plugin.Facet, ok bool) {
		into, all = append(into, facet), all && ok
	}
	for _, by := range f.nearBy {
		add(plugin.PodsFacet(by, f.near))
	}
	for _, term := range f.far {
		add(plugin.PodsFacet(term.by, term.pods))
	}
	for i := range f.others {
		for _, term := range f.others[i].terms {
			add(plugin.TermsFacet(f.others[i].by, term))
		}
	}
	return into, all
}

// ScoreFacets are those of the topologies of all terms.
func (pl *InterPodAffinity) ScoreFacets(s cluster.Snapshot, p *cluster.Pod, into []plugin.Facet) ([]plugin.Facet,
	bool) {
	if pl.own(p).err != nil {
		return into, false
	}
	score := pl.score(s, p)
	if score == nil {
		return into, true
	}
	all := true
	add := func(facet plugin.Facet, ok bool) {
		into, all = append(into, facet), all && ok
	}
	for i := range score.groups {
		g := &score.groups[i]
		for _, own := range g.own {
			add(plugin.PodsFacet(g.by, own.pods))
		}
		for _, c := range g.carried {
			add(plugin.TermsFacet(g.by, c.term))
		}
	}
	return into, all
}

// PrepareGroups is PrepareUncached: scores are measured by the least and the greatest, and groups have them all.
func (pl *InterPodAffinity) PrepareGroups(s cluster.Snapshot, p *cluster.Pod, rows []cluster.NodeIdx,
	_ []int) (plugin.UncachedScore, error) {
	return pl.PrepareUncached(s, p, rows)
}
