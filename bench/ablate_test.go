// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
)

// Catches: a plugin that stays at a point of its own, a profile that is forgotten, and what a workload's configuration says
// of other plugins lost on the way.
func TestAPluginIsTakenOutOfEveryProfile(t *testing.T) {
	for _, before := range []string{
		settings("/kubeconfig", 5, 5),
		settings("/kubeconfig", 5, 5) + "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}\n",
	} {
		text, err := disable(before, "PodTopologySpread")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, p := range c.Profiles {
			for point, names := range p.Enabled {
				if slices.Contains(names, "PodTopologySpread") {
					t.Errorf("profile %s has it at %s", p.SchedulerName, point)
				}
				if has := slices.Contains(names, "ImageLocality"); point == config.Score && has == (p.SchedulerName == "b") {
					t.Errorf("profile %s scores images: %v", p.SchedulerName, has)
				}
			}
		}
	}
}

// Catches: a plugin that is spelled wrong and measured as nothing, and kumiki itself missing to compare with.
func TestAblationsAreMeasuredBesideKumiki(t *testing.T) {
	o := Options{Schedulers: []string{Null}}
	if err := o.ablate([]string{"NodePorts", "NodePorts"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{Null, Kumiki, "kumiki~NodePorts"}; !slices.Equal(o.Schedulers, want) {
		t.Errorf("measured are %v, want %v", o.Schedulers, want)
	}
	if err := o.ablate([]string{"NodePort"}); err == nil {
		t.Error("no error for a plugin that there is not")
	}
	with, without := latencyOf([]float64{2}), latencyOf([]float64{1.5})
	got := costs([]WorkloadRow{{Scheduler: Kumiki, Latency: with, CPU: Spread{Median: 3}}, {Scheduler: "kumiki~NodePorts", Latency: without, CPU: Spread{Median: 2.5}}})
	if want := []string{"NodePorts costs kumiki 25 % of the p99, and 0.50 CPU seconds of 3.00"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
