// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
)

// TestQuota holds the table of reference figures for the adaptive formula, and that a percentage that was asked for is
// floored at 100 nodes alone.
func TestQuota(t *testing.T) {
	for n, want := range map[int]int{99: 99, 100: 100, 206: 100, 207: 101, 250: 120, 500: 230, 1000: 420, 2000: 680, 3125: 781, 3249: 812,
		4000: 720, 5000: 500, 5625: 281, 6000: 300, 10000: 500} {
		if got := place.Quota(0, n); got != want {
			t.Errorf("of %d nodes %d are wanted, want %d", n, got, want)
		}
	}
	for _, c := range [][3]int{{1, 5000, 100}, {3, 5000, 150}, {100, 5000, 5000}, {50, 99, 99}} {
		if got := place.Quota(int32(c[0]), c[1]); got != c[2] {
			t.Errorf("%d %% of %d nodes: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestWindowMatchesReference plays searches over a few hundred nodes in zones, some cordoned, that come and go,
// against a plain retelling of the rule: take a node of each zone in turn, begin where the last search ended, end
// when one more than enough fits, and move on by all that were looked at. Faults: the window ends early, stands, or
// moves on by the nodes that fit alone.
func TestWindowMatchesReference(t *testing.T) { rapid.Check(t, windows) }

type listed struct {
	name, zone string
	cordoned   bool
}

func windows(t *rapid.T) {
	s, in, w := cluster.NewStore(), convert.NewIntake(), place.NewWindow()
	prof := place.Profile{
		Filters: []plugin.Filter{basic.NodeUnschedulable{}}, Scorers: []place.Scorer{{Scorer: basic.ImageLocality{}, Weight: 1}}, Window: w,
		Search: place.Search{Strategy: place.FixedWindow, Percentage: int32(rapid.SampledFrom([]int{0, 1, 50, 70, 100}).Draw(t, "percentage"))},
	}
	pl := place.New(prof, noMeter{}, 1<<20)
	var nodes []listed // by arrival
	var zones []string // by arrival of their first node, those with nodes
	serial := 0
	add := func() {
		n := listed{fmt.Sprintf("n%03d", serial), rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "zone"), rapid.IntRange(0, 3).Draw(t, "cordoned") == 0}
		serial++
		nodes = append(nodes, n)
		if !slices.Contains(zones, n.zone) {
			zones = append(zones, n.zone)
		}
		rec := in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{v1.LabelTopologyZone: n.zone}}, Spec: v1.NodeSpec{Unschedulable: n.cordoned}})
		s.SetNode(rec)
		w.SetNode(nil, rec)
	}
	for range rapid.SampledFrom([]int{20, 130, 240}).Draw(t, "nodes") {
		add()
	}
	p := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	start := 0
	for range rapid.IntRange(1, 12).Draw(t, "searches") {
		switch rapid.IntRange(0, 5).Draw(t, "churn") {
		case 0:
			add()
		case 1:
			i := rapid.IntRange(0, len(nodes)-1).Draw(t, "leaves")
			w.DeleteNode(s.DeleteNode(nodes[i].name))
			left := nodes[i].zone
			nodes = slices.Delete(nodes, i, i+1)
			if !slices.ContainsFunc(nodes, func(n listed) bool { return n.zone == left }) {
				zones = slices.DeleteFunc(zones, func(z string) bool { return z == left })
			}
		}
		out := pl.Place(s.Snapshot(), p, promised{}, func(int) int { return 0 })
		fits, looked := walk(nodes, zones, start, place.Quota(prof.Search.Percentage, len(nodes)))
		var got []string
		for row := range s.Snapshot().Rows() {
			n := cluster.NodeIdx(row)
			if s.Snapshot().Node(n) != nil && out.Verdict(n) == plugin.Fits {
				got = append(got, s.Snapshot().NodeName(n))
			}
		}
		slices.Sort(got)
		slices.Sort(fits)
		if !slices.Equal(got, fits) {
			t.Fatalf("from %d of %d: %v, want %v", start, len(nodes), got, fits)
		}
		w.Advance(out)
		start = (start + looked) % len(nodes)
	}
}

// walk is the rule, retold.
func walk(nodes []listed, zones []string, start, quota int) (fits []string, looked int) {
	byZone := map[string][]listed{} // zone -> its nodes by arrival
	for _, n := range nodes {
		byZone[n.zone] = append(byZone[n.zone], n)
	}
	var order []listed
	for turn := 0; len(order) < len(nodes); turn++ {
		for _, z := range zones {
			if turn < len(byZone[z]) {
				order = append(order, byZone[z][turn])
			}
		}
	}
	for i := range order {
		n := order[(start+i)%len(order)]
		if !n.cordoned && len(fits) == quota {
			return fits, looked
		}
		looked++
		if !n.cordoned {
			fits = append(fits, n.name)
		}
	}
	return fits, looked
}

// TestSamplesAreDrawn: with two random choices each of ten equal nodes wins now and then, a pod that fits one node
// alone lands on it, and nothing outside the nodes that fit wins. Fault: a sample is the first rows.
func TestSamplesAreDrawn(t *testing.T) { samplesAreDrawn(t) }

func samplesAreDrawn(t interface{ Errorf(string, ...any) }) {
	for _, search := range []place.Search{{Strategy: place.PowerOfTwo}, {Strategy: place.RandomSubset, Subset: 3}} {
		s, in := cluster.NewStore(), convert.NewIntake()
		for i := range 11 {
			s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"only": fmt.Sprint(i == 7)}}, Spec: v1.NodeSpec{Unschedulable: i == 3}}))
		}
		prof := place.Profile{Filters: []plugin.Filter{basic.NodeUnschedulable{}}, Scorers: []place.Scorer{{Scorer: basic.ImageLocality{}, Weight: 1}}, Search: search}
		pl := place.New(prof, noMeter{}, 1<<20)
		p := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
		var wins [11]int
		for d := range uint64(2000) {
			out := pl.Place(s.Snapshot(), p, promised{}, place.Draw(1, d))
			if out.Feasible != 10 {
				t.Errorf("%d nodes fit, want 10", out.Feasible)
				return
			}
			wins[out.Node]++
		}
		for n, won := range wins {
			if want := 200; n == 3 && won != 0 || n != 3 && (won < want/2 || won > 2*want) {
				t.Errorf("%+v: node %d won %d of 2000 times: %v", search, n, won, wins)
			}
		}
		for i := range 11 {
			s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}, Spec: v1.NodeSpec{Unschedulable: i != 7}}))
		}
		if out := pl.Place(s.Snapshot(), p, promised{}, place.Draw(1, 1)); out.Feasible != 1 || s.Snapshot().NodeName(out.Node) != "n7" {
			t.Errorf("%+v: a pod that fits n7 alone: %d nodes fit, row %d won", search, out.Feasible, out.Node)
		}
	}
}
