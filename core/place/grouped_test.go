// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// paths counts how decisions were made.
type paths [3]int

// TestGroupedSearchMatchesScan changes a cluster in which pods spread, attract and repel each other, and asks two
// Placers for the same pods: one that groups rows and one that looks at each. Winner, runner-up, totals, ties, parts
// and the verdict on each row must be the same. Enough decisions must have been made by groups, or nothing was
// compared. It catches: a row that is not moved between groups, groups that uncached filters do not judge, a facet that
// is left out, sizes of groups ignored in spread's weights, a draw that counts rows out of order, totals measured by
// rows left out.
func TestGroupedSearchMatchesScan(t *testing.T) {
	var made paths
	prof := defaultProfile(t)
	rapid.Check(t, func(t *rapid.T) { groupTwins(t, prof, &made) })
	if 3*made[place.Grouped] < made[place.Scanned] {
		t.Errorf("%d decisions by groups, %d by scan, %d by rank", made[place.Grouped], made[place.Scanned], made[place.Ranked])
	}
}

func groupTwins(t *rapid.T, prof place.Profile, made *paths) {
	s, in := cluster.NewStore(), convert.NewIntake()
	// Above 64 nodes there are too many hosts to distinguish them by name.
	nodes := rapid.SampledFrom([]int{3, 10, 70, 140}).Draw(t, "nodes")
	for i := range nodes {
		s.SetNode(in.Node(groupNode(t, i)))
	}
	for _, name := range []string{"blue", "red"} {
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}})
	}
	fast, slow := place.New(prof, noMeter{}, 1<<20), place.New(prof, noMeter{}, 1<<20)
	place.LookAtEachRow(slow)
	kinds := make([]*v1.Pod, 4)
	for i := range kinds {
		kinds[i] = groupPod(t, nodes)
	}
	for i := range rapid.IntRange(5, 40).Draw(t, "decisions") {
		p := *kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
		p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))
		rec := in.Pod(&p)
		seed := rapid.Uint64().Draw(t, "seed")
		got := fast.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		want := slow.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		made[got.Path]++
		sameOutcome(t, s.Snapshot(), fast, slow, got, want)
		if got.Node != cluster.NoNode && rapid.IntRange(0, 9).Draw(t, "lands") > 0 {
			p.Spec.NodeName = s.Snapshot().NodeName(got.Node)
			s.SetPod(in.Pod(&p))
		}
		switch rapid.IntRange(0, 12).Draw(t, "change") {
		case 0:
			s.SetNode(in.Node(groupNode(t, rapid.IntRange(0, nodes).Draw(t, "node"))))
		case 1:
			s.DeletePod(cluster.UID(fmt.Sprint("u", rapid.IntRange(0, i).Draw(t, "gone"))))
		case 2:
			s.DeleteNode(fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "node")))
		case 3:
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "red", Labels: map[string]string{"team": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "team")}}})
		}
	}
}

func sameOutcome(t *rapid.T, s cluster.Snapshot, fast, slow *place.Placer, got, want place.Outcome) {
	type answer struct {
		Node, RunnerUp         cluster.NodeIdx
		Total, RunnerUpTotal   int64
		Tied, Feasible         int
		Err                    string
		Scores, RunnerUpScores []record.PluginScore
	}
	of := func(pl *place.Placer, o place.Outcome) answer {
		a := answer{o.Node, o.RunnerUp, o.Total, o.RunnerUpTotal, o.Tied, o.Feasible, "", pl.Scores(o, o.Node), pl.Scores(o, o.RunnerUp)}
		if o.Err != nil {
			a.Err = o.Err.Error()
		}
		return a
	}
	if a, b := of(fast, got), of(slow, want); !reflect.DeepEqual(a, b) {
		t.Fatalf("by path %d %+v, row by row %+v", got.Path, a, b)
	}
	if want.Err != nil || !place.Judged(want) {
		return
	}
	for row := range s.Rows() {
		if a, b := got.Verdict(cluster.NodeIdx(row)), want.Verdict(cluster.NodeIdx(row)); a != b {
			t.Fatalf("row %d by path %d: verdict %x, row by row %x", row, got.Path, a, b)
		}
	}
}

func groupNode(t *rapid.T, i int) *v1.Node {
	name := fmt.Sprintf("n%d", i)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	if zone := rapid.SampledFrom([]string{"a", "a", "b", "c", ""}).Draw(t, "zone"); zone != "" {
		n.Labels[v1.LabelTopologyZone] = zone
	}
	if rapid.IntRange(0, 30).Draw(t, "odd host") == 0 {
		n.Labels[v1.LabelHostname] = "shared"
	}
	n.Labels["half"] = fmt.Sprint(i / 2)
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(rapid.SampledFrom([]string{"2", "4"}).Draw(t, "cores")),
		v1.ResourceMemory: apiresource.MustParse("8Gi"), v1.ResourcePods: apiresource.MustParse("10")}
	switch rapid.IntRange(0, 12).Draw(t, "taint") {
	case 0:
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	case 1:
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectPreferNoSchedule}}
	}
	return n
}

func groupPod(t *rapid.T, nodes int) *v1.Pod {
	app := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"blue", "red"}).Draw(t, "namespace"), Labels: map[string]string{"app": app}}}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("500m")}}}}
	selects := &metav1.LabelSelector{MatchLabels: map[string]string{"app": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "selects")}}
	key := func() string {
		return rapid.SampledFrom([]string{v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelHostname, v1.LabelHostname, "half"}).Draw(t, "key")
	}
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		c := v1.TopologySpreadConstraint{TopologyKey: key(), MaxSkew: int32(rapid.IntRange(1, 3).Draw(t, "skew")), LabelSelector: selects,
			WhenUnsatisfiable: rapid.SampledFrom([]v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}).Draw(t, "hard")}
		if rapid.IntRange(0, 20).Draw(t, "unreadable") == 0 {
			c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sounds"}}}
		}
		if rapid.IntRange(0, 4).Draw(t, "policy") == 0 {
			honor := v1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &honor
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	if rapid.IntRange(0, 6).Draw(t, "selector") == 0 {
		p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"}
	}
	term := func() v1.PodAffinityTerm {
		a := v1.PodAffinityTerm{LabelSelector: selects, TopologyKey: key()}
		if rapid.IntRange(0, 20).Draw(t, "unreadable") == 0 {
			a.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not a label value"}}
		}
		if rapid.IntRange(0, 2).Draw(t, "namespaces") == 0 {
			a.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
		}
		return a
	}
	affinity := &v1.Affinity{}
	switch rapid.IntRange(0, 6).Draw(t, "affinity") {
	case 0:
		affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term()}}
	case 1:
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term()}}
	case 2:
		affinity.PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term()}}}
	case 3:
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 20, PodAffinityTerm: term()}}}
	}
	p.Spec.Affinity = affinity
	return p
}
