// SPDX-License-Identifier: Apache-2.0

package hosted

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Each third cluster has a profile with one plugin, which is hosted; the plugins take turns.
const oneIn = 3

// always are plugins that each profile has.
var always = []string{"PrioritySort", "DefaultBinder"}

// number returns the number of a generated cluster.
func number(t *testing.T, s *scenario.Scenario) int {
	t.Helper()
	var seed uint64
	n := 0
	if _, err := fmt.Sscanf(s.Name, "seed %d cluster %d", &seed, &n); err != nil {
		t.Fatalf("scenario %q: %v", s.Name, err)
	}
	return n
}

// alone returns the one plugin that is hosted in a scenario, or an empty name.
func alone(t *testing.T, s *scenario.Scenario) string {
	t.Helper()
	n, all := number(t, s), gen.DefaultPlugins()
	if n%oneIn != 0 {
		return ""
	}
	return all[n/oneIn%len(all)].Name
}

// adjust leaves one plugin in the profile of some scenarios, and removes pods about which kumiki differs from
// upstream on purpose.
func adjust(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	s.Asks = slices.DeleteFunc(s.Asks, func(a scenario.Ask) bool { return diff.Excepted(s, a.Pod) })
	one := alone(t, s)
	if one == "" {
		return
	}
	p := &s.Profile
	others := func(name string) bool { return name != one && !slices.Contains(always, name) }
	p.Plugins = slices.DeleteFunc(p.Plugins, func(e scenario.Plugin) bool { return others(e.Name) })
	if !p.Has(one) { // the scenario leaves it out
		p.Plugins = append(p.Plugins, scenario.Plugin{Name: one, Weight: 1})
	}
	p.NoFilter, p.NoScore = nil, nil
}

// hosts reports whether a plugin is hosted in a scenario: the one of the profile, all, or a random half.
func hosts(t *testing.T, s *scenario.Scenario, plugin string) bool {
	t.Helper()
	if one := alone(t, s); one != "" {
		return plugin == one
	}
	h := fnv.New32a()
	fmt.Fprint(h, s.Name, plugin)
	return number(t, s)%5 == 0 || h.Sum32()>>7%2 == 0
}

// TestConformanceHostedPlugins asks upstream's framework, kumiki with upstream's plugins, alone and mixed with native
// ones, and kumiki with native ones the same questions: all answers are equal.
func TestConformanceHostedPlugins(t *testing.T) {
	up := oracle.New()
	t.Cleanup(up.Close)
	single, mixed := map[string]int{}, map[string]int{} // plugin -> clusters in which it is hosted
	sub := Subject{Hosts: func(s *scenario.Scenario, plugin string) bool { return hosts(t, s, plugin) }}
	want := sampling.Cases(t, 2000)
	r, err := diff.Run(diff.Upstream{Oracle: up}, sub, diff.Options{
		Seed: sampling.Seed(t), Cases: want, Sizes: gen.Sizes{Pods: 12, LargeEvery: 40}, MaxFailures: 3,
		First: sampling.First(t),
		Adjust: func(s *scenario.Scenario) {
			adjust(t, s)
			for _, p := range s.Profile.Plugins {
				if one := alone(t, s); one == p.Name {
					single[one]++
				} else if one == "" && hosts(t, s, p.Name) {
					mixed[p.Name]++
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("%s, %q alone: %s", f.Scenario.Name, alone(t, f.Scenario), f.Difference)
	}
	t.Logf("%d cases of seed %d on %d clusters, %d to %d; %d fit nowhere, %d gated", r.Cases, sampling.Seed(t),
		r.Clusters, sampling.First(t), r.Next-1, r.Infeasible, r.Gated)
	for _, p := range gen.DefaultPlugins() {
		if want >= 1000 && (single[p.Name] == 0 || mixed[p.Name] == 0) {
			t.Errorf("%s is hosted alone in %d clusters, and beside others in %d", p.Name, single[p.Name],
				mixed[p.Name])
		}
	}
}
