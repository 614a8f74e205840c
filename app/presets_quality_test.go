// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/bound"
	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// presetWith returns how to make an engine with a preset (the default configuration for an empty name) that weighs
// these resources, and runs one more filter.
func presetWith(t *testing.T, name string, resources ...string) func(plugin.Filter) sim.Stepper {
	text := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	if name != "" {
		var err error
		if text, err = config.Preset(name); err != nil {
			t.Fatal(err)
		}
	}
	list := ""
	for _, r := range resources {
		list += fmt.Sprintf("{name: %s, weight: 1},", r)
	}
	file := strings.ReplaceAll(string(text), "{name: cpu, weight: 1}, {name: memory, weight: 1}", list)
	resolved, err := config.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return func(last plugin.Filter) sim.Stepper {
		made, err := EngineConfig(resolved)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			made.Profiles[0].Filters = append(made.Profiles[0].Filters, last)
		}
		return engine.New(made)
	}
}

// placerWith is presetWith in the form of the protocols.
func placerWith(t *testing.T, name string, resources ...string) quality.NewPlacer {
	made := presetWith(t, name, resources...)
	return func(nodes []*v1.Node, last *quality.Devices) (quality.Placer, error) {
		var filter plugin.Filter // not an interface with a nil pointer
		if last != nil {
			filter = last
		}
		return quality.NewPlacement(made(filter), nodes), nil
	}
}

// TestBinpackUsesFewNodes: on random instances of vector bin packing, binpack uses at most 1.3 times the bound of
// nodes one pod after the other, less with the largest pods first, and far less than the default configuration.
func TestBinpackUsesFewNodes(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	online, sorted, byDefault, bounds := 0, 0, 0, 0
	for k := range 10 {
		in := &quality.Instance{Name: fmt.Sprint("random-", k), Capacity: []int64{100, 100}}
		for range 80 {
			in.Items = append(in.Items, []int64{5 + r.Int63n(45), 5 + r.Int63n(45)})
		}
		names := []string{string(quality.VectorResource(0)), string(quality.VectorResource(1))}
		for _, c := range []struct {
			preset string
			order  []int
			sum    *int
		}{{"binpack", in.Order(), &online}, {"binpack", in.LargestFirst(), &sorted}, {"", in.Order(), &byDefault}} {
			used, err := in.Place(placerWith(t, c.preset, names...), c.order)
			if err != nil {
				t.Fatal(err)
			}
			*c.sum += used
		}
		bounds += bound.Bins(in.Items, in.Capacity)
	}
	t.Logf("nodes: %d one by one, %d largest first, %d by default; bound %d", online, sorted, byDefault, bounds)
	if 10*online > 13*bounds || sorted >= online || 2*byDefault < 3*online || sorted < bounds {
		t.Error("binpack uses too many nodes, or fewer than possible")
	}
}

// sharedGPUs generates a trace: 60 nodes of 8 GPUs with 64 CPUs, and pods of few shapes.
func sharedGPUs(seed int64) *quality.Openb {
	o := &quality.Openb{}
	for i := range 60 {
		o.Nodes = append(o.Nodes, quality.OpenbNode{Name: fmt.Sprintf("node-%02d", i), CPU: 64000, Memory: 256 << 10,
			GPUs: 8})
	}
	shapes := []quality.OpenbShape{{CPU: 4000, Memory: 8192, GPUs: 1, Milli: 300},
		{CPU: 4000, Memory: 8192, GPUs: 1, Milli: 500}, {CPU: 8000, Memory: 16384, GPUs: 1, Milli: 1000},
		{CPU: 8000, Memory: 32768, GPUs: 1, Milli: 1000}, {CPU: 16000, Memory: 65536, GPUs: 2, Milli: 1000},
		{CPU: 4000, Memory: 16384}, {CPU: 48000, Memory: 131072, GPUs: 8, Milli: 1000}}
	r := rand.New(rand.NewSource(seed))
	for i := range 400 {
		o.Pods = append(o.Pods, quality.OpenbPod{Name: fmt.Sprintf("pod-%03d", i),
			OpenbShape: shapes[min(r.Intn(len(shapes)+3), r.Intn(len(shapes)))]})
	}
	return o
}

// TestFGDKeepsGPUsUsable: on generated clusters with shares of GPUs, fgd allocates more GPUs than the default
// configuration, and no more than the ceiling.
func TestFGDKeepsGPUsUsable(t *testing.T) {
	var fgd, byDefault float64
	const seeds = 4
	for seed := int64(1); seed <= seeds; seed++ {
		o := sharedGPUs(seed)
		for _, c := range []struct {
			preset string
			sum    *float64
		}{{"fgd", &fgd}, {"", &byDefault}} {
			curve, err := o.Place(placerWith(t, c.preset, "cpu", "memory", string(quality.GPUMilli)), seed)
			if err != nil {
				t.Fatal(err)
			}
			at := curve.End()
			*c.sum += at / seeds
			most := bound.Ceiling(o.Sizes(seed, 10), o.TotalGPU()/quality.WholeGPU, quality.WholeGPU)
			if ceiling := 100 * float64(most) / float64(o.TotalGPU()); at > ceiling {
				t.Errorf("seed %d: %q allocates %.2f %%, above the ceiling of %.2f %%", seed, c.preset, at, ceiling)
			}
		}
	}
	t.Logf("allocated: fgd %.2f, default %.2f", fgd, byDefault)
	if !(fgd > byDefault) {
		t.Errorf("fgd allocates %.2f %%, the default configuration %.2f %%", fgd, byDefault)
	}
}

// TestSpreadGivesEachNodeAsManyPods: nodes of which a half hold pods before, and pods of two sizes. At the end, no two
// nodes differ by more than one pod.
func TestSpreadGivesEachNodeAsManyPods(t *testing.T) {
	var nodes []*v1.Node
	for i := range 40 {
		nodes = append(nodes, plugintest.Node(fmt.Sprintf("node-%02d", i),
			plugintest.Allocatable("cpu", fmt.Sprint(16+16*(i%2)), "memory", "256Gi", "pods", "110")))
	}
	p := quality.NewPlacement(presetWith(t, "spread", "cpu", "memory")(nil), nodes)
	counts := map[string]int{} // node -> pods
	small := plugintest.Pod("p", plugintest.Requests("cpu", "100m", "memory", "1Gi"))
	large := plugintest.Pod("p", plugintest.Requests("cpu", "700m", "memory", "2Gi"))
	small.Spec.SchedulerName, large.Spec.SchedulerName = v1.DefaultSchedulerName, v1.DefaultSchedulerName
	for i := range 20 {
		for range 7 {
			p.Put(p.Template(large), nodes[i].Name)
			counts[nodes[i].Name]++
		}
	}
	for i := range 445 {
		pod := small
		if i%3 == 0 {
			pod = large
		}
		counts[p.Place(p.Template(pod)).NodeName]++
	}
	low, high := 1<<30, 0
	for _, n := range counts { // order: an extreme is the same in any
		low, high = min(low, n), max(high, n)
	}
	if high-low > 1 || len(counts) != len(nodes) {
		t.Errorf("%d nodes have from %d to %d pods", len(counts), low, high)
	}
}
