// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// presetEngine returns an engine with a preset.
func presetEngine(t *testing.T, name string) *engine.Engine {
	text, err := config.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := config.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	made, err := EngineConfig(resolved)
	if err != nil {
		t.Fatal(err)
	}
	return engine.New(made)
}

// TestPresetsSchedule: four nodes, one of them twice as large. Pods of 2 CPUs and 2 GiB, and then of 1 CPU and 3 GiB,
// come one by one. binpack and fgd fill node after node, spread gives each node as many pods.
func TestPresetsSchedule(t *testing.T) {
	var nodes []*v1.Node
	for i, cpu := range []string{"4", "8", "4", "4"} {
		nodes = append(nodes, plugintest.Node(fmt.Sprint("n", i),
			plugintest.Allocatable("cpu", cpu, "memory", cpu+"Gi", "pods", "20")))
	}
	place := func(name string, requests ...[]string) string {
		p := quality.NewPlacement(presetEngine(t, name), nodes)
		on := map[string]int{} // node -> pods
		for _, r := range requests {
			pod := plugintest.Pod("p", plugintest.Requests(r...))
			pod.Spec.SchedulerName = v1.DefaultSchedulerName
			on[p.Place(p.Template(pod)).NodeName]++
		}
		return fmt.Sprint(on)
	}
	even, lean := []string{"cpu", "2", "memory", "2Gi"}, []string{"cpu", "1", "memory", "1Gi"}
	for _, c := range []struct {
		preset string
		want   []string // any of them
		pods   [][]string
	}{
		// one small node is full, and another one half
		{"binpack", []string{"map[n0:2 n2:1]", "map[n0:1 n2:2]", "map[n2:2 n3:1]", "map[n2:1 n3:2]", "map[n0:2 n3:1]",
			"map[n0:1 n3:2]"}, [][]string{even, even, even}},
		{"spread", []string{"map[n0:2 n1:2 n2:2 n3:2]"}, [][]string{even, lean, even, lean, even, lean, even, lean}},
		// a third pod fits no node with 3 CPUs free: it goes where it leaves capacity for pairs
		{"fgd", []string{"map[n0:2]", "map[n2:2]", "map[n3:2]"}, [][]string{even, lean}},
	} {
		got := place(c.preset, c.pods...)
		found := false
		for _, want := range c.want {
			found = found || got == want
		}
		if !found {
			t.Errorf("%s: %s, want one of %q", c.preset, got, c.want)
		}
	}
}
