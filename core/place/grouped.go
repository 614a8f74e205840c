// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// facets lists what the uncached plugins that apply to the pod read; ok is false if one of them does not know.
func (pl *Placer) facets(s cluster.Snapshot, sr *search) (ok bool) {
	pl.facetSpace = pl.facetSpace[:0]
	for i := pl.cache.FirstUncached(); i < len(sr.plans); i++ {
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
		w, uncached := sc.Scorer.(plugin.UncachedScorer)
		if !uncached || w.Skips(s, sr.pod) {
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
	return len(unique) > 0 && len(unique) <= classes.MaxFacets
}

// group searches by groups, if the result is the same as that of a scan of all rows.
func (pl *Placer) group(s cluster.Snapshot, sr *search) bool {
	if !sr.ranked() || sr.only != nil || sr.pod.Nominated != "" || pl.profile.Search.Strategy != AllNodes {
		return false
	}
	if _, err := sr.class.Broken(); err != nil {
		return false
	}
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		return false
	}
	if !pl.facets(s, sr) {
		return false
	}
	g, ok := pl.cache.Grouping(s, sr.class, pl.facetSpace)
	if !ok {
		return false
	}
	pl.evaluateGroups(s, sr, g)
	if sr.class.Normalised() && sr.selection.Selected() < g.InUse() {
		return false // a row that is left out may be the one by which others are normalised
	}
	sr.stage = ofGroups
	return true
}

// evaluateGroups selects the groups that fit.
func (pl *Placer) evaluateGroups(s cluster.Snapshot, sr *search, g *classes.Grouping) {
	for len(pl.judged) < s.Rows() {
		pl.judged = append(pl.judged, plugin.Fits)
	}
	pl.meter.Plugin(plugin.AtFilter, "")
	sr.selection.Select(g)
	pl.meter.Did(record.Groups, g.InUse())
	for id := range g.Groups() {
		n, ok := g.First(id)
		if !ok {
			continue
		}
		for i := pl.cache.FirstUncached(); i < len(sr.plans); i++ {
			if f := sr.plans[i].Filter; f != nil {
				f.Column(s, n, n+1, plugin.TagOf(i), pl.judged)
			}
		}
		if pl.judged[n] == plugin.Fits {
			sr.selection.Take(id)
		}
		pl.judged[n] = plugin.Fits
	}
}

// chooseGrouped is choose for a search by groups.
func (pl *Placer) chooseGrouped(s cluster.Snapshot, sr *search, out *Outcome, draw func(n int) int) {
	selection := &sr.selection
	sr.by = sr.class.Totals()
	if out.Feasible = selection.Feasible(); out.Feasible == 0 {
		return
	}
	if out.Feasible > 1 {
		pl.scoreGroups(s, sr)
		if sr.err != nil {
			out.Err = sr.err
			return
		}
	}
	out.take(selection, draw)
}

// scoreGroups lets uncached scorers score a row of each group that fits.
func (pl *Placer) scoreGroups(s cluster.Snapshot, sr *search) {
	sr.first, sr.sizes = sr.selection.Members(sr.first[:0], sr.sizes[:0])
	for at, sc := range pl.profile.Scorers {
		w, uncached := sc.Scorer.(plugin.GroupScorer)
		if !uncached {
			continue
		}
		pl.meter.Plugin(plugin.AtPreScore, sc.Name())
		score, err := w.PrepareGroups(s, sr.pod, sr.first, sr.sizes)
		if err != nil {
			sr.err = sc.PreScoreError(err)
			return
		}
		if score == nil {
			continue
		}
		pl.meter.Plugin(plugin.AtScore, sc.Name())
		sr.scoreUncached(s, sc, at, score, sr.first)
		part := &sr.parts[len(sr.parts)-1]
		for i, v := range part.normalised {
			sr.selection.Add(i, part.weight*v)
		}
	}
}
