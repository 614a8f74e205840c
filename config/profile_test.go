// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// tb is what a rule needs of a test, so that probe can run it against a mutant.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func parse(t tb, body string) Resolved {
	t.Helper()
	r, err := Parse([]byte(head + body))
	if err != nil {
		t.Fatalf("parsing:\n%s\n%v", body, err)
	}
	return r
}

// problemsOf is what is wrong with a file, one line per problem.
func problemsOf(t tb, body string) []string {
	t.Helper()
	_, err := Parse([]byte(head + body))
	var e *Error
	if err == nil {
		return nil
	} else if !errors.As(err, &e) {
		t.Fatalf("want problems, got %v", err)
	}
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return lines
}

// The default profile at its two largest points.
const (
	defaultFilters = "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit " +
		"VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity " +
		"DynamicResources NodeDeclaredFeatures"
	defaultScorers = "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread " +
		"InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality"
)

// TestDefaultProfile catches a default profile that lost a plugin or a weight against upstream's.
func TestDefaultProfile(t *testing.T) {
	c := Default()
	if len(c.Profiles) != 1 || c.Profiles[0].SchedulerName != "default-scheduler" {
		t.Fatalf("profiles: %+v", c.Profiles)
	}
	p := c.Profiles[0]
	want := map[Point]string{ // point -> plugins
		PreEnqueue: "SchedulingGates DynamicResources DefaultPreemption",
		QueueSort:  "PrioritySort",
		PreFilter: "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding " +
			"VolumeZone " +
			"PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
		Filter:     defaultFilters,
		PostFilter: "DynamicResources DefaultPreemption",
		PreScore: "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity " +
			"NodeResourcesBalancedAllocation",
		Score:          defaultScorers,
		Reserve:        "VolumeBinding DynamicResources",
		PreBind:        "VolumeBinding DynamicResources",
		Bind:           "DefaultBinder",
		PlacementScore: "NodeResourcesFit",

		PodGroupPostFilter: "DynamicResources DefaultPreemption",
	}
	for _, at := range points {
		if got := strings.Join(p.Enabled[at], " "); got != want[at] {
			t.Errorf("%s: got %q, want %q", at, got, want[at])
		}
	}
	weights := map[string]int64{ // plugin -> weight
		TaintToleration: 3, NodeAffinity: 2, NodeResourcesFit: 1, VolumeBinding: 1, PodTopologySpread: 2,
		InterPodAffinity: 2,
		DynamicResources: 2, NodeResourcesBalancedAllocation: 1, ImageLocality: 1,
	}
	if !reflect.DeepEqual(p.Weights, weights) {
		t.Errorf("weights: got %v, want %v", p.Weights, weights)
	}
	if p.Search != (Search{Strategy: All}) || p.FitScoresReal ||
		!reflect.DeepEqual(c.Kumiki, Settings{Seed: DefaultSeed, InFlightBinds: DefaultInFlightBinds, Gangs: DefaultGangs(),
			Hosted:    DefaultHosted(),
			Instances: DefaultInstances(), Cycle: Continuous, Wire: Prepared}) {
		t.Errorf("our settings: %+v, %v, %+v", p.Search, p.FitScoresReal, c.Kumiki)
	}
	if c.PodInitialBackoff != time.Second || c.PodMaxBackoff != 10*time.Second || c.Parallelism != 16 ||
		!c.LeaderElection.Enabled ||
		c.LeaderElection.Namespace != "kube-system" || c.LeaderElection.Name != "kube-scheduler" ||
		c.LeaderElection.LeaseDuration != 15*time.Second || c.ClientConnection.QPS != 0 || len(c.Warnings) != 0 {
		t.Errorf("defaults: %+v", c)
	}
}

// TestPluginSets walks through upstream's rules of enabling and disabling. It catches starKeepsMulti and overrideLast.
func TestPluginSets(t *testing.T) { pluginSets(t) }

func pluginSets(t tb) {
	for _, tt := range []struct {
		name, plugins string
		at            Point
		want          string
	}{
		{"star at one point keeps multiPoint out",
			"score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}", Score, "ImageLocality"},
		{"star at multiPoint drops every default",
			"multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: " +
				"NodeName}]}", Filter, "NodeName"},
		{"disabling at one point leaves the others",
			"score: {disabled: [{name: NodeAffinity}]}\n      preScore: {disabled: [{name: NodeAffinity}]}", Filter,
			defaultFilters},
		{"a point's own comes first when it overrides", "score: {enabled: [{name: ImageLocality, weight: 5}]}", Score,
			"ImageLocality " + strings.TrimSuffix(defaultScorers, " ImageLocality")},
		{"a default enabled again keeps its place", "multiPoint: {enabled: [{name: NodeName}]}", Filter,
			defaultFilters},
		{"disabled and enabled goes to the end",
			"multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}", Filter,
			strings.Replace(defaultFilters, "NodeName ", "", 1) + " NodeName"},
		{"a point may add what multiPoint lost",
			"multiPoint: {disabled: [{name: NodeName}]}\n      filter: {enabled: [{name: NodeName}]}", Filter,
			strings.Replace(defaultFilters, "NodeName ", "", 1) + " NodeName"},
		{"plugins behind a gate may be off", "multiPoint: {disabled: [{name: GangScheduling}]}", Bind, "DefaultBinder"},
		{"plugins behind a gate may be on", "multiPoint: {enabled: [{name: GangScheduling}]}", Permit, "GangScheduling"},
		{"remedies for groups are those of pods", "{}", PodGroupPostFilter, "DynamicResources DefaultPreemption"},
		{"evictions for groups may be off alone", "podGroupPostFilter: {disabled: [{name: DefaultPreemption}]}", PostFilter,
			"DynamicResources DefaultPreemption"},
	} {
		c := parse(t, "profiles:\n  - plugins:\n      "+tt.plugins+"\n")
		if got := strings.Join(c.Profiles[0].Enabled[tt.at], " "); got != tt.want {
			t.Errorf("%s: %s: got %q, want %q", tt.name, tt.at, got, tt.want)
		}
	}
}

// TestDefaultPluginsOfGates: a feature adds its plugins to the default profile, at upstream's places. It catches
// gatesIgnored.
func TestDefaultPluginsOfGates(t *testing.T) { defaultPluginsOfGates(t) }

func defaultPluginsOfGates(t tb) {
	workloads := func(f *Features) { f.GenericWorkload = true }
	topology := func(f *Features) { f.TopologyAwareWorkloadScheduling = true }
	resizes := func(f *Features) { f.InPlacePodVerticalScalingSchedulerPreemption = true }
	for _, tt := range []struct {
		feature func(*Features)
		at      Point
		want    string
	}{
		{workloads, PreEnqueue, "SchedulingGates DynamicResources DefaultPreemption GangScheduling"},
		{workloads, Permit, "GangScheduling"},
		{topology, PlacementGenerate, "TopologyPlacementGenerator"},
		{topology, PlacementScore, "NodeResourcesFit PodGroupPodsCount"},
		{resizes, Filter, strings.Replace(defaultFilters, "NodeResourcesFit", "DeferredPodScheduling NodeResourcesFit", 1)},
	} {
		f := DefaultFeatures()
		tt.feature(&f)
		p := Catalog{}.With(f).Default().Profiles[0]
		if got := strings.Join(p.Enabled[tt.at], " "); got != tt.want {
			t.Errorf("with %+v, %s: got %q, want %q", f, tt.at, got, tt.want)
		}
	}
}

// TestWeights: the score set wins over multiPoint, and no weight at all is 1. It catches multiWeightWins.
func TestWeights(t *testing.T) { weightRules(t) }

func weightRules(t tb) {
	for _, tt := range []struct {
		plugins string
		want    int64
	}{
		{"score: {enabled: [{name: TaintToleration, weight: 7}]}", 7},
		{"score: {enabled: [{name: TaintToleration}]}", 1},
		{"multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}", 9},
		{"multiPoint: {enabled: [{name: TaintToleration}]}", 1},
		{"multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}\n      score: {enabled: [{name: " +
			"TaintToleration, weight: 4}]}", 4},
		{"filter: {enabled: [{name: TaintToleration, weight: 50}]}", 3},
	} {
		c := parse(t, "profiles:\n  - plugins:\n      "+tt.plugins+"\n")
		if got := c.Profiles[0].Weights[TaintToleration]; got != tt.want {
			t.Errorf("%s: weight %d, want %d", tt.plugins, got, tt.want)
		}
	}
}
