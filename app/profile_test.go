// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/podaffinity"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/plugins/spread"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/host/devices"
	"github.com/kumiki-scheduler/kumiki/record"
)

// names renders a profile: extension point -> plugins in order, scorers with their weight.
func names(p engine.Profile) map[config.Point]string {
	out := map[config.Point][]string{}
	for _, g := range p.Gates {
		out[config.PreEnqueue] = append(out[config.PreEnqueue], g.Name())
	}
	for _, f := range p.Filters {
		out[config.Filter] = append(out[config.Filter], f.Name())
	}
	for _, r := range p.Remediers {
		out[config.PostFilter] = append(out[config.PostFilter], r.Name())
	}
	for _, s := range p.Scorers {
		out[config.Score] = append(out[config.Score], fmt.Sprintf("%s=%d", s.Name(), s.Weight))
	}
	for _, r := range p.Reservers {
		out[config.Reserve] = append(out[config.Reserve], r.Name())
	}
	joined := map[config.Point]string{}
	for point, list := range out { // order: a map is filled
		joined[point] = strings.Join(list, " ")
	}
	return joined
}

// TestEveryDefaultPluginIsMade: what the default configuration names works at the points where it is named.
// Preemption is the engine's own, and VolumeBinding scores only under a gate that is off.
func TestEveryDefaultPluginIsMade(t *testing.T) {
	c := config.Default()
	got, err := EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range config.Plugins() {
		if !(Plugins{}).has(name) {
			t.Errorf("%s is not built", name)
		}
	}
	have, p := names(got.Profiles[0]), c.Profiles[0]
	for _, point := range []config.Point{config.PreEnqueue, config.Filter, config.PostFilter, config.Score,
		config.Reserve} {
		var want []string
		for _, name := range p.Enabled[point] {
			switch {
			case name == config.DefaultPreemption:
			case point == config.Score:
				want = append(want, fmt.Sprintf("%s=%d", name, p.Weights[name]))
			default:
				want = append(want, name)
			}
		}
		if have[point] != strings.Join(want, " ") {
			t.Errorf("%s: got %q, want %q", point, have[point], want)
		}
	}
	if got.Less == nil || got.Less.Name() != basic.PrioritySortName {
		t.Errorf("ordered by %v", got.Less)
	}
	if got.Profiles[0].Search != (place.Search{Strategy: place.AllNodes}) {
		t.Errorf("search %+v", got.Profiles[0].Search)
	}
}

// TestTheDefaultConfigurationIsTheDefaultProfile holds the two ways to the default together. The core's has no devices.
func TestTheDefaultConfigurationIsTheDefaultProfile(t *testing.T) {
	got, err := EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	p := &got.Profiles[0]
	device := func(pl plugin.Plugin) bool { return pl.Name() == devices.Name }
	p.Gates = slices.DeleteFunc(p.Gates, func(x plugin.Gate) bool { return device(x) })
	p.Filters = slices.DeleteFunc(p.Filters, func(x plugin.Filter) bool { return device(x) })
	p.Scorers = slices.DeleteFunc(p.Scorers, func(x place.Scorer) bool { return device(x) })
	p.Reservers = slices.DeleteFunc(p.Reservers, func(x plugin.Reserver) bool { return device(x) })
	p.Remediers = slices.DeleteFunc(p.Remediers, func(x plugin.Remedier) bool { return device(x) })
	want := engine.DefaultProfile(v1.DefaultSchedulerName)
	if p.Name != want.Name || !reflect.DeepEqual(names(*p), names(want)) {
		t.Errorf("got %v, want %v", names(*p), names(want))
	}
	wakers := map[string]bool{} // plugin -> wakes
	for _, w := range p.Wakers {
		if wakers[w.Name()] {
			t.Errorf("%s wakes twice", w.Name())
		}
		wakers[w.Name()] = true
	}
	for _, w := range want.Wakers {
		if !wakers[w.Name()] {
			t.Errorf("%s does not wake", w.Name())
		}
	}
	if !wakers[devices.Name] {
		t.Error("the plugin of devices does not wake")
	}
}

// TestAConfigurationReachesThePlugins changes what a file can change and looks at what the engine gets.
func TestAConfigurationReachesThePlugins(t *testing.T) {
	c, err := config.Parse([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 7
extenders: [{urlPrefix: "http://e", filterVerb: f, managedResources: [{name: e.com/mine, ignoredByScheduler: true}]}]
percentageOfNodesToScore: 40
profiles:
- schedulerName: packer
  plugins:
    score:
      disabled: [{name: ImageLocality}]
      enabled: [{name: NodeResourcesFit, weight: 5}]
    filter:
      disabled: [{name: NodePorts}]
    reserve:
      disabled: [{name: VolumeBinding}]
    postFilter:
      disabled: [{name: "*"}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 4, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 90}
  - name: DynamicResources
    args: {filterTimeout: 0s, bindingTimeout: 2m}
  - name: Kumiki
    args: {seed: 42, strategy: randomSubset, subset: 9, fitScoresReal: true}
- schedulerName: other
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Seed != 42 || got.InitialBackoff != 3e9 || got.MaxBackoff != 7e9 || len(got.Profiles) != 2 {
		t.Errorf("got %+v", got)
	}
	p := names(got.Profiles[0])
	if strings.Contains(p[config.Score], "ImageLocality") ||
		!strings.HasPrefix(p[config.Score], "NodeResourcesFit=5 ") ||
		strings.Contains(p[config.Filter], "NodePorts") || p[config.Reserve] != devices.Name ||
		p[config.PostFilter] != "" {
		t.Errorf("plugins %v", p)
	}
	if a, b := got.Profiles[0].Search, got.Profiles[1].Search; a != (place.Search{Strategy: place.RandomSubset,
		Subset: 9}) ||
		b != (place.Search{Strategy: place.FixedWindow, Percentage: 40}) {
		t.Errorf("searches %+v and %+v", a, b)
	}
	args := func(name string) any { return arguments(name, c.Profiles[0], c.Features) }
	fit := args(resources.NodeResourcesFitName).(resources.FitArgs)
	if fit.Strategy != resources.MostAllocated || len(fit.Resources) != 1 ||
		fit.Resources[0] != (resources.WeightedResource{Name: "cpu", Weight: 2}) || !fit.ScoreReal ||
		!slices.Equal(fit.IgnoredResources, []string{"e.com/mine"}) {
		t.Errorf("arguments of NodeResourcesFit: %+v", fit)
	}
	spread := args(spread.PodTopologySpreadName).(spread.PodTopologySpreadArgs)
	if spread.System || len(spread.DefaultConstraints) != 1 || spread.DefaultConstraints[0].MaxSkew != 4 {
		t.Errorf("arguments of PodTopologySpread: %+v", spread)
	}
	if got := args(podaffinity.InterPodAffinityName); got != (podaffinity.InterPodAffinityArgs{
		IgnorePreferredTermsOfExistingPods: true}) {
		t.Errorf("arguments of InterPodAffinity: %+v", got)
	}
	if got := args(volumes.VolumeBindingName).(volumes.VolumeBindingArgs); got.BindTimeout != 90e9 ||
		!slices.Equal(got.Shape, volumes.DefaultVolumeBindingArgs().Shape) {
		t.Errorf("arguments of VolumeBinding: %+v", got)
	}
	if got := deviceArguments(c.Profiles[0].Args.DynamicResources); got != (devices.Args{
		BindingTimeout: 2 * time.Minute}) {
		t.Errorf("arguments of DynamicResources: %+v", got)
	}
}

// TestHowAProfilePreempts: on unless its PostFilter is off, for all nodes unless the file bounds them, with a
// description.
func TestHowAProfilePreempts(t *testing.T) {
	off := func(at string) string { return "plugins: {" + at + ": {disabled: [{name: DefaultPreemption}]}}" }
	args := func(a string) string { return "pluginConfig: [{name: DefaultPreemption, args: {" + a + "}}]" }
	for _, tt := range []struct {
		profile string
		want    *preempt.Config
		text    string
	}{
		{"", &preempt.Config{}, "all: the smallest loss on any node"},
		{off("multiPoint"), nil, "off: no pod is evicted"},
		{off("postFilter"), nil, "off: no pod is evicted"},
		{off("preEnqueue"), &preempt.Config{Sync: true},
			"all: the smallest loss on any node; a pod may be tried again before its victims are deleted"},
		{"plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}, postFilter: {enabled: [{name: " +
			"DefaultPreemption}]}}",
			&preempt.Config{Sync: true, PodsOnly: true}, "all: the smallest loss on any node; a pod may be tried again " +
				"before its victims are deleted; not for gangs"},
		{off("podGroupPostFilter"), &preempt.Config{PodsOnly: true}, "all: the smallest loss on any node; not for gangs"},
		{args("minCandidateNodesPercentage: 20"),
			&preempt.Config{Limit: &preempt.Limit{MinPercentage: 20, MinAbsolute: 100}},
			"the smallest loss on the first nodes found, 20% of those where evictions may help and at least 100"},
		{args("minCandidateNodesAbsolute: 7"),
			&preempt.Config{Limit: &preempt.Limit{MinPercentage: 10, MinAbsolute: 7}},
			"the smallest loss on the first nodes found, 10% of those where evictions may help and at least 7"},
		{"pluginConfig: [{name: Kumiki, args: {syncPreemption: true}}]", &preempt.Config{Sync: true},
			"all: the smallest loss on any node; a pod may be tried again before its victims are deleted"},
		{args("minCandidateNodesPercentage: 100"), &preempt.Config{}, "all: the smallest loss on any node"},
		{"pluginConfig: [{name: Kumiki, args: {preemption: {budgets: Strict}}}]", &preempt.Config{Strict: true},
			"all: the smallest loss on any node; never against a disruption budget"},
		{"pluginConfig: [{name: Kumiki, args: {preemption: {after: 30s}}}]", &preempt.Config{After: 30 * record.Second},
			"all: the smallest loss on any node; not before a pod or gang has waited 30s for new nodes"},
	} {
		c, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: " +
			"KubeSchedulerConfiguration\nprofiles: [{" + tt.profile + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		made, err := EngineConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want != nil {
			tt.want.VictimTimeout = 300 * record.Second
		}
		if got := made.Profiles[0].Preemption; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.profile, got, tt.want)
		}
		if d, err := (Plugins{}).Describe(c); err != nil || d.Profiles[0].Preemption != tt.text {
			t.Errorf("%s: described as %q (%v)", tt.profile, d.Profiles[0].Preemption, err)
		}
	}
}

// TestSessionsAndSlots: the settings of the founding model reach the engine: its pause, and a filter that replaces
// another, whose other points stay the same.
func TestSessionsAndSlots(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {cycle: sessions, sessionPeriod: " +
		"7s, fit: slots}}]\n- schedulerName: b\n"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := EngineConfig(c)
	if err != nil || made.SessionPeriod != 7*record.Second {
		t.Fatalf("period %d, %v", made.SessionPeriod, err)
	}
	filters := func(p engine.Profile) (names []string) {
		for _, f := range p.Filters {
			names = append(names, f.Name())
		}
		return names
	}
	want := filters(made.Profiles[1])
	for i := range want {
		if want[i] == resources.NodeResourcesFitName {
			want[i] = resources.NodeSlotsName
		}
	}
	if got := filters(made.Profiles[0]); !slices.Equal(got, want) || !slices.Contains(got, resources.NodeSlotsName) {
		t.Errorf("filters %v, want %v", got, want)
	}
	if !slices.ContainsFunc(made.Profiles[0].Wakers,
		func(w plugin.Waker) bool { return w.Name() == resources.NodeSlotsName }) ||
		!slices.ContainsFunc(made.Profiles[0].Scorers,
			func(s place.Scorer) bool { return s.Name() == resources.NodeResourcesFitName }) {
		t.Error("slots wake no pod, or nodes are not scored")
	}
	d, err := Plugins{}.Describe(c)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := d.Profiles[0], d.Profiles[1]; a.Fit != "slots: each node takes one pod, whatever it asks for" ||
		!about(t, a, resources.NodeSlotsName).Filter.On ||
		about(t, a, config.NodeResourcesFit).Filter != nil || about(t, b, config.NodeResourcesFit).Filter == nil {
		t.Errorf("description: %+v", d)
	}
}
