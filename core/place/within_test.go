// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// slowWithin is the reference implementation of a search within rows: row -> total, of those that fit.
func slowWithin(prof place.Profile, s cluster.Snapshot, p *cluster.Pod, noms place.Nominations, rows []cluster.NodeIdx) map[cluster.NodeIdx]int64 {
	whole, fits := slowPlace(prof, s, p, noms), map[cluster.NodeIdx]int64{}
	var fit []cluster.NodeIdx
	for _, n := range rows {
		if _, ok := whole.fits[s.NodeName(n)]; ok {
			fits[n] = 0
			fit = append(fit, n)
		}
	}
	for _, sc := range prof.Scorers {
		raw := slowScores(sc, s, p, fit)
		for i, n := range fit {
			fits[n] += sc.Weight * raw[i]
		}
	}
	if prof.Foreign != nil && prof.Foreign.Takes(p) {
		for _, n := range fit {
			for _, fs := range prof.Foreign.Score(p, []string{s.NodeName(n)}) {
				fits[n] += fs.Added[0]
			}
		}
	}
	return fits
}

// TestWithinMatchesReference keeps searches to some rows, on a cluster that changes at random, with one Placer that
// searches all rows in between: only those rows are chosen from and measured by, and the rows that are listed as
// fitting are those of the reference. Bounds leave none of them out, and count on empty nodes as many copies as the
// filters let in one by one.
func TestWithinMatchesReference(t *testing.T) {
	for name, prof := range profiles(t) {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { withinTwins(t, prof) }) })
	}
}

func withinTwins(t *rapid.T, prof place.Profile) {
	s, in := cluster.NewStore(), convert.NewIntake()
	pl := place.New(prof, noMeter{}, rapid.SampledFrom([]int{1, 1000, 1 << 20}).Draw(t, "class bytes"))
	for range rapid.IntRange(1, 15).Draw(t, "changes") {
		disturb(t, s, in)
		like := somePod(t, rapid.IntRange(100, 103).Draw(t, "asked"))
		like.Status.NominatedNodeName = rapid.SampledFrom([]string{"", "", "n0", "n9"}).Draw(t, "nominated")
		p, noms := in.Pod(like), promised{}
		if rapid.IntRange(0, 3).Draw(t, "promised") == 0 {
			noms["n1"] = []*cluster.Pod{in.Pod(somePod(t, 110))}
		}
		rows := []cluster.NodeIdx{}
		for n := range cluster.NodeIdx(s.Snapshot().Rows()) {
			if s.Snapshot().Node(n) != nil && rapid.Bool().Draw(t, "within") {
				rows = append(rows, n)
			}
		}
		withinIsTwin(t, prof, pl, s.Snapshot(), p, noms, rows)
		plain := *p
		plain.Nominated = ""
		compare(t, prof, pl, s.Snapshot(), &plain, noms) // nothing is left of the search within rows
	}
	boundsHold(t, prof, pl, s, in.Pod(somePod(t, 104)))
}

func withinIsTwin(t *rapid.T, prof place.Profile, pl *place.Placer, s cluster.Snapshot, p *cluster.Pod, noms promised, rows []cluster.NodeIdx) {
	want := slowWithin(prof, s, p, noms, rows)
	got := pl.PlaceWithin(s, p, noms, func(n int) int { return n - 1 }, rows)
	total, ok := want[got.Node]
	switch {
	case (got.Node == cluster.NoNode) != (len(want) == 0) || got.Node != cluster.NoNode && !ok:
		t.Fatalf("row %d of %v, reference %v", got.Node, rows, want)
	case got.Node == cluster.NoNode:
		pl.Why(s, got)
	case s.NodeName(got.Node) == p.Nominated: // goes there whatever others score
	case len(want) > 1:
		for n, other := range want {
			if got.Total != total || other > total {
				t.Fatalf("row %d with %d won, reference gives it %d, and row %d %d", got.Node, got.Total, total, n, other)
			}
		}
	}
	out, fit := pl.FitWithin(s, p, noms, rows, nil)
	for _, n := range fit {
		if _, fits := want[n]; !fits {
			t.Fatalf("rows %v fit, reference %v", fit, want)
		}
	}
	if len(fit) != len(want) || out.Feasible != len(want) || !slices.IsSorted(fit) {
		t.Fatalf("rows %v fit (%d), reference %v", fit, out.Feasible, want)
	}
	bounds, ok := pl.Bound(s, p)
	for n := range want {
		if ok && !slices.Contains(bounds.Rows, n) {
			t.Fatalf("row %d fits, and bounds leave %v", n, bounds.Rows)
		}
	}
}

// boundsHold compares the copies that are counted on empty nodes with the pods that fit one after the other once all
// others are gone.
func boundsHold(t *rapid.T, prof place.Profile, pl *place.Placer, s *cluster.Store, p *cluster.Pod) {
	for n := range cluster.NodeIdx(s.Snapshot().Rows()) {
		var gone []cluster.UID
		s.Snapshot().EachPod(n, func(p *cluster.Pod, _ bool) { gone = append(gone, p.UID) })
		for _, uid := range gone {
			s.DeletePod(uid)
		}
	}
	local := prof
	local.Filters, local.Foreign = nil, nil
	for _, f := range prof.Filters {
		if plugin.ReadsOf(f).Cached() {
			local.Filters = append(local.Filters, f)
		}
	}
	s.Begin()
	defer s.Abort()
	trial, empty := s.Trial(), pl.EmptyNodes(s.Snapshot(), p)
	for n := range cluster.NodeIdx(s.Snapshot().Rows()) {
		if s.Snapshot().Node(n) == nil {
			continue
		}
		const most = 5
		counted, count := empty.Copies(s.Snapshot(), n, most), 0
		mark := trial.Checkpoint()
		for count < most && rejection(local, s.Snapshot(), p, n, nil) == "" {
			copied := *p
			copied.UID += cluster.UID(rune('a' + count))
			trial.Assume(&copied, n)
			count++
		}
		trial.Rollback(mark)
		if counted != count {
			t.Fatalf("%d copies counted on the empty node %s, %d fit", counted, s.Snapshot().NodeName(n), count)
		}
	}
}
