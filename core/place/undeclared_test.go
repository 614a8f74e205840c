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

// undeclaredFilter is a filter without its declaration of what it reads.
type undeclaredFilter struct{ plugin.Filter }

// undeclaredScorer is a scorer without its declaration of what it reads.
type undeclaredScorer struct{ plugin.Scorer }

// TestPlaceWithoutADeclaration: if any default plugin declares nothing, the decisions are those of the slow twin.
func TestPlaceWithoutADeclaration(t *testing.T) {
	declared := defaultProfile(t)
	rapid.Check(t, func(t *rapid.T) {
		prof := place.Profile{Filters: slices.Clone(declared.Filters), Scorers: slices.Clone(declared.Scorers)}
		at := rapid.IntRange(0, len(prof.Filters)+len(prof.Scorers)-1).Draw(t, "undeclared")
		if at < len(prof.Filters) {
			prof.Filters[at] = undeclaredFilter{prof.Filters[at]}
		} else if sc := &prof.Scorers[at-len(prof.Filters)]; !isUncached(sc.Scorer) {
			sc.Scorer = undeclaredScorer{sc.Scorer}
		}
		twins(t, prof)
	})
}

func isUncached(sc plugin.Scorer) bool {
	_, uncached := sc.(plugin.UncachedScorer)
	return uncached
}

// busyElsewhere is a plugin that declares nothing. It reads the pods of other rows and a variable of the program: it
// rejects nodes while there are many pods elsewhere, and scores by them.
type busyElsewhere struct{ limit *int }

func (busyElsewhere) Name() string          { return "BusyElsewhere" }
func (busyElsewhere) Normal() plugin.Normal { return plugin.ReversedMax }

func (b busyElsewhere) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: plugin.FilterByNode(busyFilter(b))}
}

func (b busyElsewhere) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore {
	return plugin.ScoreByNode(busyScore(b))
}

type busyFilter busyElsewhere

func (f busyFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if podsElsewhere(s, v) > int64(*f.limit) {
		return 1
	}
	return plugin.Fit
}

func (busyFilter) Reasons(plugin.Code) []string { return []string{"many pods elsewhere"} }

type busyScore busyElsewhere

func (f busyScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	return podsElsewhere(s, v) + int64(*f.limit)
}

func podsElsewhere(s cluster.Snapshot, v *cluster.NodeView) int64 {
	pods := 0
	for row := range s.Rows() {
		if n := cluster.NodeIdx(row); s.Node(n) != nil && s.NodeName(n) != v.Node.Name {
			pods += len(s.View(n).Pods)
		}
	}
	return int64(pods)
}

// TestPlaceWithAnUndeclaredPlugin: the decisions are those of the slow twin, also while the variable changes.
func TestPlaceWithAnUndeclaredPlugin(t *testing.T) {
	declared := defaultProfile(t)
	rapid.Check(t, func(t *rapid.T) {
		limit := 0
		b := busyElsewhere{&limit}
		prof := place.Profile{
			Filters: slices.Insert(slices.Clone(declared.Filters), rapid.IntRange(0, len(declared.Filters)).Draw(t, "at"),
				plugin.Filter(b)),
			Scorers: append(slices.Clone(declared.Scorers), place.Scorer{Scorer: b, Weight: 5}),
		}
		s, in := cluster.NewStore(), convert.NewIntake()
		pl := place.New(prof, noMeter{}, 1<<20)
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			disturb(t, s, in)
			for range 2 {
				limit = rapid.IntRange(0, 6).Draw(t, "limit")
				compare(t, prof, pl, s.Snapshot(), in.Pod(somePod(t, 100)), promised{})
			}
		}
	})
}
