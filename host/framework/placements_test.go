// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// halves proposes two halves of the nodes, and scores placements by their names.
type halves struct {
	*scripted
	worth map[string]int64 // name of a placement -> score
}

func (h *halves) GeneratePlacements(_ context.Context, _ fwk.PodGroupCycleState, _ fwk.PodGroupInfo,
	parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	half := len(parent.Nodes) / 2
	return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{
		{Name: "left", Nodes: parent.Nodes[:half]}, {Name: "right", Nodes: parent.Nodes[half:]}}}, nil
}

func (h *halves) ScorePlacement(_ context.Context, _ fwk.PlacementCycleState, _ fwk.PodGroupInfo,
	of *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	return h.worth[of.Name], nil
}

func (h *halves) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }

var placementPoints = []config.Point{config.PreFilter, config.PlacementGenerate, config.PlacementScore}

// gang adds a gang of a source, and returns its members, which request a core each.
func (w *world) gang(source cluster.GangSource, members int, topology ...cluster.GangTopology) []*cluster.Pod {
	key := cluster.GangKey{Source: source, Namespace: "ns", Name: "g"}
	g := &cluster.Gang{Key: key, MinCount: members, Topology: topology}
	g.Namespace, g.Name = key.Namespace, key.Object().Name
	w.Store.SetObject(g)
	var out []*cluster.Pod
	for i := range members {
		p := w.Intake.PendingPod(plugintest.Pod(fmt.Sprint("m", i), plugintest.Requests("cpu", "1", "memory", "1Gi")))
		p.Gang = &cluster.GangMark{Key: key}
		out = append(out, p)
	}
	return out
}

// TestPlacementsOfNativeGroupsAlone: gangs of other sources are left to the search. It catches hostedPlacementOthers.
func TestPlacementsOfNativeGroupsAlone(t *testing.T) {
	w := newWorld(t, nil, placementPoints, &halves{scripted: &scripted{name: "A"}}).nodes("a", "b")
	if got := w.profile.Placements().Generate(w.Store.Snapshot(), w.gang(cluster.GangOfVolcano, 2)); len(got.List) > 0 {
		t.Errorf("candidates %v of a gang of Volcano", got.List)
	}
	got := w.profile.Placements().Generate(w.Store.Snapshot(), w.gang(cluster.GangOfGroup, 2))
	if len(got.List) != 2 || !slices.Equal(got.List[1].Rows, []cluster.NodeIdx{1}) {
		t.Errorf("candidates %v", got.List)
	}
}

// TestFirstGeneratorAlone: of several generators the first one of the profile is asked, which may be the native one.
// It catches hostedPlacementSecond.
func TestFirstGeneratorAlone(t *testing.T) {
	w := newWorld(t, nil, placementPoints, &halves{scripted: &scripted{name: "A"}},
		&halves{scripted: &scripted{name: "B"}}).nodes("a", "b")
	if got := w.profile.Placements().(placements).generator; got.name != "A" {
		t.Errorf("%s generates", got.name)
	}
	w.profile.Configure(config.Profile{Enabled: map[config.Point][]string{
		config.PlacementGenerate: {config.TopologyPlacementGenerator, "A", "B"}}})
	if got := w.profile.Placements().(placements).generator; got != nil {
		t.Errorf("%s generates, though TopologyPlacementGenerator comes first", got.name)
	}
}

// TestPreFilterSeesThePlacement: PreFilter of a member receives the nodes of the placement that is tried, that of other
// pods all nodes. It catches hostedPlacementAllNodes.
func TestPreFilterSeesThePlacement(t *testing.T) {
	var seen []int
	pl := &halves{scripted: &scripted{name: "A",
		preFilter: func(_ fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
			seen = append(seen, len(nodes))
			return nil, nil
		}}}
	w := newWorld(t, nil, placementPoints, pl).nodes("a", "b", "c")
	members, s := w.gang(cluster.GangOfGroup, 1), w.Store.Snapshot()
	search := w.profile.Placements().Generate(s, members).Search
	place := func() { w.placer.Place(s, members[0], nominations{}, func(int) int { return 0 }) }
	search.Enter(0)
	place()
	search.Enter(1)
	place()
	search.Leave(1)
	place()
	if !slices.Equal(seen, []int{1, 2, 3}) {
		t.Errorf("PreFilter received %v nodes", seen)
	}
}

// TestScoredDomains: without a generator, plugins score the domains of the group's topology; those with bound members
// if there are any. It catches hostedPlacementDomainsOfOthers.
func TestScoredDomains(t *testing.T) {
	w := newWorld(t, nil, []config.Point{config.PlacementScore}, &halves{scripted: &scripted{name: "A"}})
	for i, zone := range []string{"z2", "z1", "z2", ""} {
		labels := []string{}
		if zone != "" {
			labels = []string{"zone", zone}
		}
		w.With(plugintest.Node(fmt.Sprint("n", i), plugintest.Allocatable("cpu", "8", "memory", "16Gi"),
			plugintest.Labels(labels...)))
	}
	if got := w.profile.Placements().Generate(w.Store.Snapshot(), w.gang(cluster.GangOfGroup, 2)); got.Search != nil {
		t.Errorf("candidates %v without a topology", got.List)
	}
	members := w.gang(cluster.GangOfGroup, 2, cluster.GangTopology{Key: "zone", Required: true})
	names := func() (out []string) {
		for _, c := range w.profile.Placements().Generate(w.Store.Snapshot(), members).List {
			out = append(out, fmt.Sprint(c.Name, c.Rows))
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"z1[1]", "z2[0 2]"}) {
		t.Errorf("candidates %v", got)
	}
	bound := *members[0]
	bound.NodeName = "n1"
	w.Store.SetPod(&bound)
	if got := names(); !slices.Equal(got, []string{"z1[1]"}) {
		t.Errorf("candidates %v, though a member is bound in z1", got)
	}
}

// TestPlacementTotals: scores count with the weights of the profile, those of NodeResourcesFit and PodGroupPodsCount
// too. It catches hostedPlacementUnweighted, hostedPlacementFitIgnored and hostedPlacementCountIgnored.
func TestPlacementTotals(t *testing.T) {
	w := newWorld(t, nil, placementPoints, &halves{scripted: &scripted{name: "A"},
		worth: map[string]int64{"left": 7, "right": 5}}).nodes("a", "b", "c")
	members := w.gang(cluster.GangOfGroup, 4)
	tries := []plugin.CandidatePlacement{
		{Candidate: 0, Nodes: []cluster.NodeIdx{0, 0, 0, 0}},
		{Candidate: 1, Nodes: []cluster.NodeIdx{1, 2, cluster.NoNode, 1}},
	}
	resources := []configv1.ResourceSpec{{Name: "cpu", Weight: 3}, {Name: "memory", Weight: 1}, {Name: "gpu", Weight: 9}}
	for name, c := range map[string]struct { // order: each is a case of its own
		enabled []string
		want    []int64
	}{
		"hosted": {[]string{"A"}, []int64{70, 50}},
		// left: 4 of 8 cores, 4 of 16 GiB; right: 3 of 16 cores, 3 of 32 GiB
		"fit":   {[]string{"A", config.NodeResourcesFit}, []int64{70 + 2*((50*3+25)/4), 50 + 2*((18*3+9)/4)}},
		"count": {[]string{"A", config.PodGroupPodsCount}, []int64{70 + 5*100, 50 + 5*75}},
	} {
		profile := config.Profile{Enabled: map[config.Point][]string{config.PlacementScore: c.enabled},
			PlacementWeights: map[string]int64{"A": 10, config.NodeResourcesFit: 2, config.PodGroupPodsCount: 5}}
		profile.Args.NodeResourcesFit = configv1.NodeResourcesFitArgs{
			ScoringStrategy: &configv1.ScoringStrategy{Resources: resources}}
		w.profile.Configure(profile)
		search := w.profile.Placements().Generate(w.Store.Snapshot(), members).Search
		search.Enter(0)
		search.Enter(1)
		got, err := search.Totals(w.Store.Snapshot(), tries)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: totals %v, want %v: %v", name, got, c.want, err)
		}
		search.Leave(-1)
	}
}
