// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// Upstream's scenarios (noderesources/*_test.go): pod and nodes, and the score of each strategy by its formula.
// Mutants: score-*, most-unclamped, ratio-*, balanced-*.
func TestResourceScores(t *testing.T) {
	least, most := DefaultFitArgs(), DefaultFitArgs()
	most.Strategy = MostAllocated
	heavyMemory := DefaultFitArgs()
	heavyMemory.Resources = []WeightedResource{{"cpu", 1}, {"memory", 3}}
	withGPU := DefaultFitArgs()
	withGPU.Resources = append(DefaultBalancedArgs().Resources, WeightedResource{"example.com/gpu", 1})
	ratio := func(shape ...plugin.ShapePoint) FitArgs {
		a := DefaultFitArgs()
		a.Strategy, a.Shape = RequestedToCapacityRatio, shape
		return a
	}
	threefold := BalancedArgs{append(DefaultBalancedArgs().Resources, WeightedResource{"example.com/gpu", 1})}
	two := DefaultBalancedArgs()

	asksBoth := plugintest.Pod("p", plugintest.Requests("cpu", "3000m", "memory", "5000"))
	silent := plugintest.Pod("p", plugintest.Requests())
	zero := plugintest.Pod("p", plugintest.Requests("cpu", "0", "memory", "0"))
	narrow, wide := plugintest.Node("n", plugintest.Allocatable("cpu", "4", "memory", "10000")), plugintest.Node("n", plugintest.Allocatable("cpu", "6", "memory", "10000"))
	devices := plugintest.Node("n", plugintest.Allocatable("cpu", "4", "memory", "10000", "example.com/gpu", "4"))
	busy := plugintest.Pod("busy", plugintest.Requests("cpu", "2", "memory", "1000"), plugintest.OnNode("n"))
	quiet := plugintest.Pod("quiet", plugintest.Requests(), plugintest.OnNode("n"))
	gib := plugintest.Node("n", plugintest.Allocatable("cpu", "1", "memory", "1000Mi"))

	const skipped = -1
	for _, story := range []struct {
		name  string
		args  any
		node  *v1.Node
		there []any
		pod   *v1.Pod
		want  int64
	}{
		// (25 + 50)/2 and (50 + 50)/2
		{"least: 3 of 4 CPU", least, narrow, nil, asksBoth, 37},
		{"least: 3 of 6 CPU", least, wide, nil, asksBoth, 50},
		// CPU asked for 5 of 4: 0; memory 6000 of 10000: 40
		{"least: more than the node has", least, narrow, []any{busy}, asksBoth, 20},
		// (25*1 + 50*3)/4
		{"least: weights", heavyMemory, narrow, nil, asksBoth, 43},
		// a silent container counts 100m and 200Mi: 90 and 80
		{"least: silent pod", least, gib, nil, silent, 85},
		{"least: a pod that asks for 0", least, gib, nil, zero, 100},
		// the silent pod on the node counts as much: 80 and 60
		{"least: silent pods on the node", least, gib, []any{quiet}, silent, 70},
		// 25, 50 and 3 of 4 devices free
		{"least: devices", withGPU, devices, nil, plugintest.Pod("p", plugintest.Requests("cpu", "3", "memory", "5000", "example.com/gpu", "1")), 50},
		{"least: devices that nobody asks for", withGPU, devices, nil, asksBoth, 37},
		{"least: devices that the node lacks", withGPU, narrow, nil, plugintest.Pod("p", plugintest.Requests("cpu", "3", "memory", "5000", "example.com/gpu", "1")), 37},
		{"least: a node without memory", least, plugintest.Node("n", plugintest.Allocatable("cpu", "4")), nil, asksBoth, 25},
		{"least: a node without anything", least, plugintest.Node("n"), nil, asksBoth, 0},

		{"most: 3 of 4 CPU", most, narrow, nil, asksBoth, 62},
		{"most: 3 of 6 CPU", most, wide, nil, asksBoth, 50},
		// CPU is full at 100; memory 60
		{"most: more than the node has", most, narrow, []any{busy}, asksBoth, 80},

		// 75 and 50, mean 62.5
		{"ratio: rising", ratio(plugin.ShapePoint{Utilization: 0, Score: 0}, plugin.ShapePoint{Utilization: 100, Score: 10}), narrow, nil, asksBoth, 63},
		{"ratio: falling", ratio(plugin.ShapePoint{Utilization: 0, Score: 10}, plugin.ShapePoint{Utilization: 100, Score: 0}), narrow, nil, asksBoth, 38},
		// memory at 50 % scores 0 and does not count
		{"ratio: a resource that scores 0", ratio(plugin.ShapePoint{Utilization: 50, Score: 0}, plugin.ShapePoint{Utilization: 100, Score: 10}), narrow, nil, asksBoth, 50},
		{"ratio: between corners", ratio(plugin.ShapePoint{Utilization: 10, Score: 3}, plugin.ShapePoint{Utilization: 40, Score: 9}, plugin.ShapePoint{Utilization: 70, Score: 0}), plugintest.Node("n", plugintest.Allocatable("cpu", "10", "memory", "10")), nil,
			plugintest.Pod("p", plugintest.Requests("cpu", "2", "memory", "5")), 55}, // 20 % -> 50, 50 % -> 60
		// beyond capacity counts as 100 %
		{"ratio: more than the node has", ratio(plugin.ShapePoint{Utilization: 0, Score: 0}, plugin.ShapePoint{Utilization: 100, Score: 10}), narrow, []any{busy}, asksBoth, 80},

		// 0.75 and 0.5 after, 0 and 0 before: 87 and 100
		{"balance: getting worse", two, narrow, nil, asksBoth, 68},
		{"balance: even", two, wide, nil, asksBoth, 75},
		// before 0.5 and 0.1: 80; after 0.75 and 0.6: 92
		{"balance: getting better", two, narrow, []any{busy}, plugintest.Pod("p", plugintest.Requests("cpu", "1", "memory", "5000")), 81},
		{"balance: a pod that asks for nothing", two, narrow, []any{busy}, silent, skipped},
		{"balance: a pod that asks for 0", two, narrow, []any{busy}, zero, skipped},
		// the silent pod on the node counts as nothing: 0.1 against 0.1 after
		{"balance: silent pods on the node", two, gib, []any{quiet}, plugintest.Pod("p", plugintest.Requests("cpu", "100m", "memory", "100Mi")), 75},
		// 0.75, 0.5, 0.25 after: deviation 0.204
		{"balance: three resources", threefold, devices, nil, plugintest.Pod("p", plugintest.Requests("cpu", "3", "memory", "5000", "example.com/gpu", "1")), 64},
		{"balance: over capacity counts as full", two, narrow, []any{busy}, plugintest.Pod("p", plugintest.Requests("cpu", "4", "memory", "9000")), 85},
		{"balance: one resource", two, plugintest.Node("n", plugintest.Allocatable("cpu", "4")), nil, asksBoth, 75},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(story.node).With(story.there...)
			var sc plugin.Scorer
			switch args := story.args.(type) {
			case FitArgs:
				sc = plugintest.Must(NewNodeResourcesFit(args))
			case BalancedArgs:
				sc = plugintest.Must(NewNodeResourcesBalancedAllocation(args))
			}
			got, ok := w.Score(t, sc, story.pod, "n")
			if !ok {
				got = skipped
			}
			if got != story.want {
				t.Errorf("score %d, want %d", got, story.want)
			}
		})
	}
}

// The figures of kubernetes#130445: 335m of 7910m are in use and the pod asks for 200m, yet the score is computed from
// 630m, because a silent init container of a 5m pod counts 100m. Both numbers can be seen, and ScoreReal scores 535m.
// Mutants: score-real-requests, score-pod-real-request.
func TestScoreShowsRealAndCountedRequests(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable("cpu", "7910m", "memory", "32Gi")),
		plugintest.Pod("large", plugintest.Requests("cpu", "330m", "memory", "397860096"), plugintest.OnNode("n")),
		plugintest.Pod("small", plugintest.Requests("cpu", "5m", "memory", "0"), plugintest.InitRequests("memory", "0"), plugintest.OnNode("n")))
	incoming := plugintest.Pod("incoming", plugintest.Requests("cpu", "200m", "memory", "1Gi"))
	for _, story := range []struct {
		real          bool
		counted, want int64
	}{
		{false, 630, (92 + 95) / 2},
		{true, 535, (93 + 95) / 2},
	} {
		args := DefaultFitArgs()
		args.ScoreReal = story.real
		fit := plugintest.Must(NewNodeResourcesFit(args))
		got, _ := w.Score(t, fit, incoming, "n")
		if got != story.want {
			t.Errorf("ScoreReal %v: score %d, want %d", story.real, got, story.want)
		}
		s := w.Store.Snapshot()
		n, _ := s.Find("n")
		inputs := fit.PrepareScore(s, w.Intake.Pod(incoming)).(plugin.Explainer).Explain(s, s.View(n))
		cpu := inputs[0]
		if cpu.Resource != v1.ResourceCPU || cpu.NodeCounted+cpu.PodCounted != story.counted || cpu.NodeReal+cpu.PodReal != 535 || cpu.Defaults == story.real {
			t.Errorf("ScoreReal %v: shows %+v, want %d counted and 535 real", story.real, cpu, story.counted)
		}
	}
}

// percentFast is exact: its slow twin is percent. Mutant: any other rounding.
func TestPercentFastIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 1<<56)).Draw(t, "whole")
		part := rapid.OneOf(rapid.Int64Range(0, whole), rapid.Just(whole)).Draw(t, "part")
		if k := rapid.Int64Range(-1, 100).Draw(t, "exact percent"); k >= 0 {
			part = min(whole, whole/100*k+rapid.Int64Range(0, 1).Draw(t, "beside"))
		}
		if got, want := percentFast(part, whole), percent(part, whole); got != want {
			t.Fatalf("%d of %d: %d, want %d", part, whole, got, want)
		}
	})
	for whole, want := range map[int64]bool{0: true, 1: false, 1 << 56: false, 1<<56 + 1: true, math.MaxInt64: true} { // order: each alone
		if vast(whole) != want {
			t.Errorf("vast(%d) is %v", whole, !want)
		}
	}
}

// The division by the weights is exact up to the largest sums there are.
func TestDivisionByWeightsIsExact(t *testing.T) {
	for _, weights := range []int64{1, 2, 3, 7, 99, 100, 101, 2999, mostWeights} {
		for _, strategy := range []Strategy{LeastAllocated, RequestedToCapacityRatio} {
			f := &fitScore{scorer: &allocationScorer{strategy: strategy}}
			sums := make([]int64, 100*weights+1)
			for i := range sums {
				sums[i] = int64(i)
			}
			f.divide(uint64(weights), sums)
			for sum, got := range sums {
				m := mean{int64(sum), weights}
				if want := m.of(f.scorer); got != want {
					t.Fatalf("%s: %d by %d is %d, want %d", strategy, sum, weights, got, want)
				}
			}
		}
	}
}

// Amounts near the ends of int64 neither wrap nor leave the range of scores.
func TestScoresOfVastAmounts(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Allocatable("cpu", "9E", "memory", "8E")), plugintest.Pod("vast", plugintest.Requests("memory", "7E"), plugintest.OnNode("n")))
	for _, strategy := range []Strategy{LeastAllocated, MostAllocated, RequestedToCapacityRatio} {
		got, _ := w.Score(t, fitWith(strategy), plugintest.Pod("p", plugintest.Requests("memory", "6E")), "n")
		if got < 0 || got > plugin.MaxScore {
			t.Errorf("%s: %d", strategy, got)
		}
	}
}

// Arguments that upstream's validation refuses are refused.
func TestBalancedArguments(t *testing.T) {
	for _, bad := range [][]WeightedResource{nil, {{"cpu", 2}}, {{"cpu", 1}, {"cpu", 1}}} {
		if _, err := NewNodeResourcesBalancedAllocation(BalancedArgs{bad}); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}
