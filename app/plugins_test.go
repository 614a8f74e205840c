// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// rackArgs are the arguments of racks.
type rackArgs struct {
	Label  string   `json:"label"`
	Racks  []string `json:"racks,omitempty"`
	Weight struct {
		Near, Far int32
	} `json:"weight"`
}

// racks is a custom plugin: it filters, scores, gates and has arguments.
type racks struct{ args rackArgs }

func (racks) Name() string { return "Racks" }

func (racks) Gated(cluster.Snapshot, *cluster.Pod) (string, bool) { return "", true }

func (racks) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{}
}

func (racks) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

func (racks) Normal() plugin.Normal { return plugin.AsIs }

func registerRacks() plugin.Registration {
	return plugin.WithArgs("Racks", func() rackArgs { return rackArgs{Label: "rack", Racks: []string{"a", "b"}} },
		func(a rackArgs) (racks, error) {
			if a.Label == "" {
				return racks{}, errors.New("label must not be empty")
			}
			return racks{a}, nil
		})
}

func mustPlugins(t *testing.T, custom ...plugin.Registration) Plugins {
	t.Helper()
	p, err := NewPlugins(custom...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fileWith is a configuration file whose only profile has these plugins and pluginConfig.
func fileWith(profile string) string {
	return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
		"- schedulerName: s\n" + profile
}

// TestCustomPluginInAProfile: a profile enables a custom plugin as it does a default plugin, and the effective
// configuration reads back as the same.
func TestCustomPluginInAProfile(t *testing.T) {
	p := mustPlugins(t, registerRacks())
	for _, tt := range []struct {
		profile string
		at      []config.Point
		weight  int64
		args    rackArgs
	}{
		{"", nil, 0, rackArgs{}},
		{"  plugins: {multiPoint: {enabled: [{name: Racks}]}}\n",
			[]config.Point{config.PreEnqueue, config.Filter, config.Score}, 1,
			rackArgs{Label: "rack", Racks: []string{"a", "b"}}},
		{"  plugins: {multiPoint: {enabled: [{name: Racks, weight: 7}]}, preEnqueue: {disabled: [{name: Racks}]}}\n" +
			"  pluginConfig: [{name: Racks, args: {racks: [c], weight: {Near: 2}}}]\n",
			[]config.Point{config.Filter, config.Score}, 7,
			func() rackArgs { a := rackArgs{Label: "rack", Racks: []string{"c"}}; a.Weight.Near = 2; return a }()},
		{"  plugins: {score: {enabled: [{name: Racks, weight: 3}]}}\n", []config.Point{config.Score}, 3,
			rackArgs{Label: "rack", Racks: []string{"a", "b"}}},
	} {
		c, err := p.ParseConfig([]byte(fileWith(tt.profile)))
		if err != nil {
			t.Errorf("%s: %v", tt.profile, err)
			continue
		}
		profile := c.Profiles[0]
		var at []config.Point
		for _, point := range config.Points() {
			if profile.Runs(point, "Racks") {
				at = append(at, point)
			}
		}
		if !slices.Equal(at, tt.at) || profile.Weights["Racks"] != tt.weight {
			t.Errorf("%s: runs at %v with weight %d", tt.profile, at, profile.Weights["Racks"])
		}
		if args, on := profile.Args.Custom["Racks"]; on != (tt.at != nil) || on && !reflect.DeepEqual(args, tt.args) {
			t.Errorf("%s: arguments %+v", tt.profile, args)
		}
		wire, err := c.Wire()
		if err != nil {
			t.Fatal(err)
		}
		text, err := sigsyaml.Marshal(wire)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.ParseConfig(text)
		if again.Warnings = c.Warnings; err != nil || !reflect.DeepEqual(again.Profiles, c.Profiles) {
			t.Errorf("%s: the effective configuration reads as %+v, %v", tt.profile, again.Profiles, err)
		}
		if missing := (Plugins{}).Missing(wire); slices.Contains(missing, "Racks") != (tt.at != nil) {
			t.Errorf("%s: without the plugin, missing are %v", tt.profile, missing)
		}
	}
}

// TestWrongUseOfACustomPlugin: each mistake in a file is an error with its line.
func TestWrongUseOfACustomPlugin(t *testing.T) {
	p := mustPlugins(t, registerRacks())
	on := "  plugins: {multiPoint: {enabled: [{name: Racks}]}}\n"
	for profile, want := range map[string]string{
		"  plugins: {multiPoint: {enabled: [{name: Rackz}]}}\n": `unknown plugin "Rackz"; available: SchedulingGates`,
		"  plugins: {multiPoint: {enabled: [{name: racks}]}}\n": `did you mean "Racks"?`,
		"  plugins: {reserve: {enabled: [{name: Racks}]}}\n": `plugin "Racks" does not extend reserve; it extends ` +
			"preEnqueue, filter, score",
		on + "  pluginConfig: [{name: Racks, args: {lable: x}}]\n":       "args.lable: unknown field",
		on + "  pluginConfig: [{name: Racks, args: {label: 5}}]\n":       "args.label: want a string",
		"  pluginConfig: [{name: Racks, args: {lable: x}}]\n":            "args.lable: unknown field",
		on + "  pluginConfig: [{name: Racks}, {name: Racks}]\n":          "given twice",
		on + "  pluginConfig: [{name: Racks, args: {weight: {mid: 1}}}]": "args.weight.mid: unknown field",
	} {
		if _, err := p.ParseConfig([]byte(fileWith(profile))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", profile, err, want)
		}
	}
	c, err := p.ParseConfig([]byte(fileWith(on + "  pluginConfig: [{name: Racks, args: {label: ''}}]\n")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.EngineConfig(c); err == nil || !strings.Contains(err.Error(), "label must not be empty") {
		t.Errorf("arguments that the plugin rejects: %v", err)
	}
	if _, err := config.Parse([]byte(fileWith(on))); err == nil ||
		!strings.Contains(err.Error(), `unknown plugin "Racks"; available: SchedulingGates`) {
		t.Errorf("without the plugin: %v", err)
	}
}

// named is a plugin of some name that does nothing.
type named string

func (n named) Name() string { return string(n) }

// namedFilter filters nothing.
type namedFilter struct{ named }

func (namedFilter) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{}
}

func TestWhatIsNoCustomPlugin(t *testing.T) {
	filter := func(name string) plugin.Registration { return plugin.WithoutArgs(namedFilter{named(name)}) }
	for want, list := range map[string][]plugin.Registration{
		"belongs to kumiki":             {filter("NodeName")},
		"use another one":               {filter("NodeSlots")},
		`"DefaultPreemption": the name`: {filter("DefaultPreemption")},
		"plugin of kube-scheduler":      {filter("GangScheduling")},
		`"Kumiki": the name`:            {filter("Kumiki")},
		"needs a name":                  {filter("")},
		"added twice":                   {filter("Mine"), filter("Mine")},
		"extends no":                    {plugin.WithoutArgs(named("Mine"))},
		"must be a struct, got int":     {{Name: "Mine", Type: namedFilter{"Mine"}, DefaultArgs: func() any { return 5 }}},
		"with its default arguments: no": {{Name: "Mine",
			New: func(any) (plugin.Plugin, error) { return nil, errors.New("no") }}},
	} {
		if _, err := NewPlugins(list...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestWhatACustomPluginBecomes: it takes part in a profile of the engine, and nothing that it says is cached.
func TestWhatACustomPluginBecomes(t *testing.T) {
	p := mustPlugins(t, registerRacks())
	c, err := p.ParseConfig([]byte(fileWith("  plugins: {multiPoint: {enabled: [{name: Racks, weight: 7}]}}\n")))
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	got := made.Profiles[0]
	filter, scorer := got.Filters[len(got.Filters)-1], got.Scorers[len(got.Scorers)-1]
	waker := got.Wakers[slices.IndexFunc(got.Wakers, func(w plugin.Waker) bool { return w.Name() == "Racks" })]
	if filter.Name() != "Racks" || scorer.Name() != "Racks" || scorer.Weight != 7 ||
		!waker.Wakes()[0].Event.IsWildcard() {
		t.Errorf("filter %s, scorer %s with %d, wakes %v", filter.Name(), scorer.Name(), scorer.Weight, waker.Wakes())
	}
	d, err := p.Describe(c)
	if err != nil {
		t.Fatal(err)
	}
	about := d.Profiles[0].Plugins[len(d.Profiles[0].Plugins)-1]
	if about.Name != "Racks" || !about.Acting || about.Filter == nil || about.Filter.On || about.Score.On ||
		fmt.Sprint(about.Points) != "[preEnqueue filter score]" {
		t.Errorf("described as %+v", about)
	}
}
