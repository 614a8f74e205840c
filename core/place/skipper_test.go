// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// lister is a Skipper that skips every pod.
type lister struct {
	lonely
	seen  []cluster.NodeIdx                     // what it received in this decision
	again int                                   // how often this decision's list was one that it had received before
	known map[*plugin.FitRows][]cluster.NodeIdx // list -> its rows when it was received first
}

func (*lister) Skips(cluster.Snapshot, *cluster.Pod) bool { return false }

func (l *lister) SkipsAmong(s cluster.Snapshot, _ *cluster.Pod, fit *plugin.FitRows) bool {
	if fit == nil {
		for row := range s.Rows() {
			if s.Node(cluster.NodeIdx(row)) != nil {
				l.seen = append(l.seen, cluster.NodeIdx(row))
			}
		}
		return true
	}
	if _, has := l.known[fit]; has {
		l.again++
	} else {
		l.known[fit] = slices.Clone(fit.Rows)
	}
	l.seen = l.known[fit]
	return true
}

// TestASkipperReceivesTheRowsThatFit: after any changes, a Skipper receives the rows that a search row by row finds, and
// a pointer that it knows stands for the rows that it had. It catches: a kept list that is not renewed when a row begins
// or ceases to fit.
func TestASkipperReceivesTheRowsThatFit(t *testing.T) {
	prof := defaultProfile(t)
	known := 0
	rapid.Check(t, func(t *rapid.T) { skipperTwins(t, prof, &known) })
	if known == 0 {
		t.Error("no list was received twice")
	}
}

func skipperTwins(t *rapid.T, prof place.Profile, known *int) {
	s, in := cluster.NewStore(), convert.NewIntake()
	nodes := rapid.IntRange(2, 12).Draw(t, "nodes")
	for i := range nodes {
		s.SetNode(in.Node(groupNode(t, i)))
	}
	with := func(l *lister) *place.Placer {
		p := prof
		p.Scorers = append(slices.Clone(p.Scorers), place.Scorer{Scorer: l, Weight: 1})
		return place.New(p, noMeter{}, 1<<20)
	}
	quick := &lister{known: map[*plugin.FitRows][]cluster.NodeIdx{}}
	plain := &lister{known: map[*plugin.FitRows][]cluster.NodeIdx{}}
	fast, slow := with(quick), with(plain)
	place.LookAtEachRow(slow)
	kinds := []*v1.Pod{plainPod(t), plainPod(t), groupPod(t, nodes)}
	for i := range rapid.IntRange(5, 40).Draw(t, "decisions") {
		p := *kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
		p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))
		rec := in.Pod(&p)
		seed := rapid.Uint64().Draw(t, "seed")
		got := fast.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		want := slow.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		sameOutcome(t, s.Snapshot(), fast, slow, got, want)
		if !slices.Equal(quick.seen, plain.seen) {
			t.Fatalf("the rows that fit are %v, row by row %v", quick.seen, plain.seen)
		}
		*known += quick.again
		quick.seen, plain.seen, quick.again = nil, nil, 0
		if got.Node != cluster.NoNode {
			p.Spec.NodeName = s.Snapshot().NodeName(got.Node)
			s.SetPod(in.Pod(&p))
		}
		switch rapid.IntRange(0, 6).Draw(t, "change") {
		case 0:
			s.SetNode(in.Node(groupNode(t, rapid.IntRange(0, nodes).Draw(t, "node"))))
		case 1:
			s.DeletePod(cluster.UID(fmt.Sprint("u", rapid.IntRange(0, i).Draw(t, "gone"))))
		case 2:
			s.DeleteNode(fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "node")))
		}
	}
}

// plainPod is a pod whose decision depends on its class alone.
func plainPod(t *rapid.T) *v1.Pod {
	cpu := apiresource.MustParse(rapid.SampledFrom([]string{"300m", "1", "2"}).Draw(t, "cpu"))
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue"}}
	requests := v1.ResourceList{v1.ResourceCPU: cpu}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}
	return p
}
