// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// take takes a placement in a transaction that is undone, and returns whether anything was left in the store.
func (w *world) take(need gang.Need, placements []gang.Placement) (a gang.Answer, no *gang.PlacementRejection, left bool) {
	w.store.Begin()
	defer w.store.Abort()
	before := fingerprint(w.store.Snapshot())
	trial := w.store.Trial()
	g := &gang.Ground{Trial: trial, Placer: w.placer, Nominations: w.noms, Reservers: w.reservers, Meter: noMeter{}}
	a, no = gang.Take(need, placements, g)
	left = fingerprint(w.store.Snapshot()) != before
	trial.Discard()
	return a, no, left
}

// TestTakeIsTheReference: a placement that is given is taken exactly if the plain forms accept its placements one after the
// other, and a required topology holds; then it is what was given, else nothing is left of it. What a search finds is
// taken.
func TestTakeIsTheReference(t *testing.T) {
	for name, m := range mixes {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { takeIsTheReference(t, m) }) })
	}
}

func takeIsTheReference(t *rapid.T, m mix) {
	w := newWorld(t)
	need := instance(w, drawn(t), m)
	if need.Quorum < 1 {
		return
	}
	prof := profile(t)
	var placements []gang.Placement
	if found := w.answer(need); found.Verdict == gang.Placed && rapid.Bool().Draw(t, "as found") {
		for _, i := range found.Order {
			placements = append(placements, gang.Placement{Member: i, Row: found.Nodes[i]})
		}
	} else {
		for i := range rapid.IntRange(0, len(need.Members)).Draw(t, "placements") {
			row := cluster.NodeIdx(rapid.IntRange(0, w.store.Snapshot().Rows()-1).Draw(t, "row"))
			placements = append(placements, gang.Placement{Member: i, Row: row})
		}
	}
	given := gang.Answer{Nodes: make([]cluster.NodeIdx, len(need.Members))}
	for i := range given.Nodes {
		given.Nodes[i] = cluster.NoNode
	}
	for _, placement := range placements {
		given.Order, given.Nodes[placement.Member] = append(given.Order, placement.Member), placement.Row
	}
	why := wrong(w, prof, need, given)
	if why == "" && boundNowhere(w, need) {
		why = "the members that have a node are in no domain"
	}
	a, no, left := w.take(need, placements)
	switch {
	case (no == nil) != (why == ""):
		t.Fatalf("taken: %v (%+v); the reference says %q", no == nil, no, why)
	case left != (no == nil):
		t.Fatalf("refused: %+v, and the store is changed: %v", no, left)
	case no == nil && fmt.Sprint(a.Order, a.Nodes, a.Verdict) != fmt.Sprint(given.Order, given.Nodes, gang.Placed):
		t.Fatalf("taken: %v on %v, given: %v on %v", a.Order, a.Nodes, given.Order, given.Nodes)
	}
}

// boundNowhere reports whether members have nodes, and none of them is in a domain of a required topology.
func boundNowhere(w *world, need gang.Need) bool {
	for _, n := range need.Bound {
		if _, in := valuesOf(w.store.Snapshot(), need, n); in {
			return false
		}
	}
	return len(need.Bound) > 0
}

// A placement with a member twice, or with fewer members than the gang needs, is refused whatever the capacity.
func TestTakeRefusesBadPlacements(t *testing.T) {
	w := newWorld(t)
	w.node("a", nil, nil)
	need := all(w.members(2, pod("m", map[string]string{"cpu": "1"})))
	for name, placements := range map[string][]gang.Placement{
		"none":           {},
		"too few":        {{Member: 0, Row: 0}},
		"a member twice": {{Member: 0, Row: 0}, {Member: 0, Row: 0}},
	} {
		if _, no, left := w.take(need, placements); no == nil || no.Reason == "" || left {
			t.Errorf("%s: refused %+v, left %v", name, no, left)
		}
	}
}

// BenchmarkTake takes the placement of a gang of 500 members that are alike on 5,000 nodes; the goal is 3 ms of CPU
// time.
func BenchmarkTake(b *testing.B) {
	w := farm(b)
	need := all(w.members(500, asks("1")))
	var placements []gang.Placement
	w.try(need, func(a gang.Answer) {
		for _, i := range a.Order {
			placements = append(placements, gang.Placement{Member: i, Row: a.Nodes[i]})
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		w.store.Begin()
		g := &gang.Ground{Trial: w.store.Trial(), Placer: w.placer, Nominations: w.noms, Draw: place.Draw(1, 1), Meter: noMeter{}}
		if _, no := gang.Take(need, placements, g); no != nil {
			b.Fatalf("%+v", no)
		}
		w.store.Abort()
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/op")
}
