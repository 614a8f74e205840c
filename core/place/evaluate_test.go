// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// TestEvaluateMatchesPlace: in a cluster in which pods spread, attract and repel each other, Evaluate finds what a
// Placer finds that looks at each row, gives every node that fits the score that it had there, and has a reason for
// every other node, the one of the plain filters. Extenders are not asked, and a node that the pod is nominated to has
// no preference. It catches: an Evaluate without the uncached filters; one that samples; one that prefers the nominated
// node or asks extenders; a WhyNot that knows the class's verdicts alone.
func TestEvaluateMatchesPlace(t *testing.T) {
	prof := defaultProfile(t)
	rapid.Check(t, func(t *rapid.T) {
		s, in := cluster.NewStore(), convert.NewIntake()
		nodes := rapid.SampledFrom([]int{3, 10, 70}).Draw(t, "nodes")
		for i := range nodes {
			s.SetNode(in.Node(groupNode(t, i)))
		}
		asking := prof
		asking.Foreign = oddNodes{}
		asking.Search = place.Search{Strategy: place.PowerOfTwo}
		judge, plain := place.New(asking, noMeter{}, 1<<20), place.New(prof, noMeter{}, 1<<20)
		place.LookAtEachRow(plain)
		for i := range rapid.IntRange(1, 15).Draw(t, "pods") {
			p := groupPod(t, nodes)
			p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))
			rec := in.Pod(p)
			seed := rapid.Uint64().Draw(t, "seed")
			want := plain.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
			nominated := *rec
			nominated.Nominated = fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, "nominated"))
			sameJudgement(t, s.Snapshot(), judge, plain, judge.Evaluate(s.Snapshot(), &nominated, promised{}, place.Draw(seed, 1)), want)
			if want.Node != cluster.NoNode {
				p.Spec.NodeName = s.Snapshot().NodeName(want.Node)
				s.SetPod(in.Pod(p))
			}
		}
	})
}

func sameJudgement(t *rapid.T, s cluster.Snapshot, judge, plain *place.Placer, got, want place.Outcome) {
	if got.Feasible != want.Feasible || got.Node != want.Node || got.Total != want.Total || got.Tied != want.Tied {
		t.Fatalf("judged: %d fit, row %d with %d, %d tied; placed: %d fit, row %d with %d, %d tied", got.Feasible, got.Node, got.Total, got.Tied,
			want.Feasible, want.Node, want.Total, want.Tied)
	}
	if want.Err != nil || !place.Judged(want) {
		if (got.Err != nil) != (want.Err != nil) {
			t.Fatalf("judged: error %v; placed: error %v", got.Err, want.Err)
		}
		return
	}
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		if s.Node(n) == nil {
			continue
		}
		by, why := judge.WhyNot(s, got, n)
		if fits := want.Verdict(n) == plugin.Fits; fits != (len(why) == 0) || fits != (by == "") {
			t.Fatalf("row %d fits: %v, because of %s %q", n, fits, by, why)
		}
		if len(why) > 0 {
			if name, texts := plain.ReasonsOf(want, want.Verdict(n)); name != by || !reflect.DeepEqual(texts, why) {
				t.Fatalf("row %d is rejected by %s %q, in the plain form by %s %q", n, by, why, name, texts)
			}
		} else if is, was := judge.Scores(got, n), plain.Scores(want, n); !reflect.DeepEqual(is, was) {
			t.Fatalf("row %d scores %+v, was %+v", n, is, was)
		}
	}
}
