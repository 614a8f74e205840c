// SPDX-License-Identifier: Apache-2.0

package app

import (
	"reflect"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

func describe(t *testing.T, body string) Description {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		body))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Plugins{}.Describe(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func about(t *testing.T, p ProfileDescription, name string) PluginDescription {
	t.Helper()
	for _, d := range p.Plugins {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("nothing about %s", name)
	return PluginDescription{}
}

// TestWhoTurnsTheFastPathOff: plugins that look at more than a node do so for themselves, and for filters behind them.
func TestWhoTurnsTheFastPathOff(t *testing.T) {
	on := &FastPath{On: true}
	p := describe(t, "").Profiles[0]
	if len(p.Plugins) != len(config.Plugins()) {
		t.Errorf("%d plugins, want %d", len(p.Plugins), len(config.Plugins()))
	}
	if fit := about(t, p, config.NodeResourcesFit); !reflect.DeepEqual(fit.Filter, on) ||
		!reflect.DeepEqual(fit.Score, on) || fit.Weight != 1 || !fit.Acting {
		t.Errorf("NodeResourcesFit: %+v", fit)
	}
	spread := about(t, p, config.PodTopologySpread)
	if spread.Filter.On || !spread.Filter.Groups || !spread.Score.Groups ||
		spread.Filter.OffBy != config.PodTopologySpread || spread.Score.On ||
		spread.Filter.Why != "counts pods on other nodes" {
		t.Errorf("PodTopologySpread: %+v, %+v", spread.Filter, spread.Score)
	}
	if behind := about(t, p, config.NodeDeclaredFeatures).Filter; behind.On ||
		behind.OffBy != config.VolumeRestrictions {
		t.Errorf("NodeDeclaredFeatures: %+v", behind)
	}
	if evicts := about(t, p, config.DefaultPreemption); !evicts.Acting || evicts.Why != "" || evicts.Filter != nil {
		t.Errorf("DefaultPreemption: %+v", evicts)
	}

	without := "profiles:\n- plugins: {filter: {disabled: ["
	for name := range perDecision { // order: of no meaning in the file
		without += "{name: " + name + "},"
	}
	p = describe(t, without+"]}}\n").Profiles[0]
	if free := about(t, p, config.NodeDeclaredFeatures).Filter; !reflect.DeepEqual(free, on) {
		t.Errorf("NodeDeclaredFeatures without other plugins: %+v", free)
	}
}

// TestEveryReasonIsReportedAndTrue: a plugin has a reason exactly when its type says that it is asked anew.
func TestEveryReasonIsReportedAndTrue(t *testing.T) {
	made, err := EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	anew := map[string]bool{} // plugin -> asked anew for each decision
	for _, f := range made.Profiles[0].Filters {
		if !plugin.ReadsOf(f).Cached() {
			anew[f.Name()] = true
		}
	}
	for _, s := range made.Profiles[0].Scorers {
		if _, uncached := s.Scorer.(plugin.UncachedScorer); uncached {
			anew[s.Name()] = true
		}
	}
	for _, name := range config.Plugins() {
		if _, reported := perDecision[name]; reported != anew[name] {
			t.Errorf("%s is asked anew: %v; a reason is reported: %v", name, anew[name], reported)
		}
	}
}

func TestExtendersAndSearchesAreDescribed(t *testing.T) {
	d := describe(t, `percentageOfNodesToScore: 30
extenders:
- {urlPrefix: "http://all", filterVerb: f, bindVerb: b}
- {urlPrefix: "http://some", prioritizeVerb: p, weight: 1, managedResources: [{name: e.com/b}, {name: e.com/a}]}
- {urlPrefix: "http://none", preemptVerb: p}
profiles:
- schedulerName: a
- schedulerName: b
  pluginConfig: [{name: Kumiki, args: {strategy: powerOfTwo}}]
`)
	want := []ExtenderDescription{
		{"http://all", []string{"filter", "bind"}, "all pods", "is sent the name of every node that fits"},
		{"http://some", []string{"prioritize"}, "pods that ask for e.com/a or e.com/b",
			"is sent the name of every node that fits"},
		{"http://none", []string{"preempt"}, "no pods", "takes no part in the choice of a node"},
	}
	for _, p := range d.Profiles {
		if !reflect.DeepEqual(p.Extenders, want) {
			t.Errorf("extenders of %s: %+v", p.SchedulerName, p.Extenders)
		}
	}
	if d.Profiles[0].Search != "window: nodes in turn, until 30% of them fit" ||
		d.Profiles[1].Search != "powerOfTwo: the better of two random nodes that fit" {
		t.Errorf("searches %q, %q", d.Profiles[0].Search, d.Profiles[1].Search)
	}
}
