// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const gpu = "example.com/gpu"

// node returns a node with CPUs, GiB of memory and GPUs.
func node(name string, cpu, memory, gpus int) *v1.Node {
	pairs := []string{"cpu", fmt.Sprint(cpu), "memory", fmt.Sprint(memory, "Gi"), "pods", "100"}
	if gpus > 0 {
		pairs = append(pairs, gpu, fmt.Sprint(gpus))
	}
	return plugintest.Node(name, plugintest.Allocatable(pairs...))
}

func pod(name string, cpu, memory, gpus int, options ...plugintest.PodOption) *v1.Pod {
	pairs := []string{"cpu", fmt.Sprint(cpu), "memory", fmt.Sprint(memory, "Gi")}
	if gpus > 0 {
		pairs = append(pairs, gpu, fmt.Sprint(gpus))
	}
	return plugintest.Pod(name, append(options, plugintest.Requests(pairs...))...)
}

// TestScores has the scores of each scorer by its formula. The large node makes 10 CPUs, 10 GiB and 10 GPUs the units.
func TestScores(t *testing.T) {
	three := []Resource{{"cpu", 1}, {"memory", 1}, {gpu, 2}}
	fit := func(norm Norm, list []Resource) plugin.Scorer {
		return plugintest.Must(NewBestFit(BestFitArgs{Norm: norm, Resources: list}))
	}
	byDemand := func(norm Norm, list ...Resource) plugin.Scorer {
		return plugintest.Must(NewBestFit(BestFitArgs{norm, list, true}))
	}
	dot := func(list ...Resource) plugin.Scorer { return plugintest.Must(NewDotProduct(DotProductArgs{list})) }
	fragments := plugintest.Must(NewFragmentation(DefaultFragmentationArgs()))
	two := defaultResources()
	for _, c := range []struct {
		name   string
		scorer plugin.Scorer
		node   *v1.Node
		there  []any
		pod    *v1.Pod
		want   int64
	}{
		// left: 0.3 and 0.1 of the large node
		{"L1", fit(L1, two), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 80},
		// the square root of (0.09 + 0.01)/2 = 0.2236
		{"L2", fit(L2, two), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 77},
		// left: 0.3, 0.1 and 0.4, the last twice: 1.2/4
		{"L1 with weights", fit(L1, three), node("n", 5, 5, 4), nil, pod("p", 2, 4, 0), 70},
		// GPUs that a node lacks leave nothing: 0.4/4
		{"L1 without GPUs", fit(L1, three), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 90},
		// what pods on the node hold is not left: 0 and 0
		{"L1 on a used node", fit(L1, two), node("n", 5, 5, 0), []any{pod("there", 3, 1, 0, plugintest.OnNode("n"))},
			pod("p", 2, 4, 0), 100},
		{"a resource that no node offers", fit(L1, []Resource{{"absent.org/thing", 1}}), node("n", 5, 5, 0), nil,
			pod("p", 2, 4, 0), 0},
		// weights 0.2 and 0.4, those of the pod itself: (0.2·0.3 + 0.4·0.1)/0.6
		{"L1 with weights by demand", byDemand(L1, two...), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 83},
		// the square root of (0.2·0.09 + 0.4·0.01)/0.6 = 0.1915
		{"L2 with weights by demand", byDemand(L2, two...), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 80},
		// the weight of CPUs three times: (0.6·0.3 + 0.4·0.1)/1
		{"both weights", byDemand(L1, Resource{"cpu", 3}, Resource{"memory", 1}), node("n", 5, 5, 0), nil,
			pod("p", 2, 4, 0), 78},
		// pods with 1 CPU and 10 GiB were seen: weights 1.25/10 and 8.5/10. (0.125·0.3 + 0.85·0.1)/0.975
		{"weights by the demand seen so far", byDemand(L1, two...), node("n", 5, 5, 0),
			[]any{pod("seen-0", 1, 10, 0, plugintest.OnNode("large")),
				pod("seen-1", 1, 10, 0, plugintest.OnNode("large")),
				pod("seen-2", 1, 10, 0, plugintest.OnNode("large"))}, pod("p", 2, 4, 0), 87},
		{"no demand", byDemand(L1, two...), node("n", 5, 5, 0), nil, pod("p", 0, 0, 0), 0},

		// weights 0.2 and 0.4, those of the pod itself:
		// (0.2·0.2·0.5 + 0.4·0.4·0.5)/(√(0.2·0.04 + 0.4·0.16)·√(0.2·0.25 + 0.4·0.25)) = 0.9623
		{"dot product", dot(two...), node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 96},
		// free 2 and 4, as requested
		{"dot product of equal proportions", dot(two...), node("n", 5, 5, 0),
			[]any{pod("there", 3, 1, 0, plugintest.OnNode("n"))}, pod("p", 2, 4, 0), 100},
		{"dot product of a full node", dot(two...), node("n", 3, 1, 0),
			[]any{pod("there", 3, 1, 0, plugintest.OnNode("n"))}, pod("p", 2, 4, 0), 0},
		{"dot product without requests", dot(two...), node("n", 5, 5, 0), nil, pod("p", 0, 0, 0), 0},
		// pods with 1 CPU and 10 GiB were seen: weights 1.25/10 and 8.5/10.
		// (0.125·0.2·0.5 + 0.85·0.4·0.5)/(√(0.125·0.04 + 0.85·0.16)·√(0.125·0.25 + 0.85·0.25)) = 0.9842
		{"dot product with dynamic weights", dot(two...), node("n", 5, 5, 0),
			[]any{pod("seen-0", 1, 10, 0, plugintest.OnNode("large")),
				pod("seen-1", 1, 10, 0, plugintest.OnNode("large")),
				pod("seen-2", 1, 10, 0, plugintest.OnNode("large"))}, pod("p", 2, 4, 0), 98},

		{"fragmentation without a mix", fragments, node("n", 5, 5, 0), nil, pod("p", 2, 4, 0), 50},
		// 4 CPUs and 4 GiB were seen. Before: one fits, 1 CPU (0.25) and 1 GiB (0.25) are unusable. After: none fits, 1
		// CPU and 1 GiB: no change.
		{"the same shape", fragments, node("n", 5, 5, 0), []any{pod("seen", 4, 4, 0, plugintest.OnNode("large"))},
			pod("p", 4, 4, 0), 50},
		// after: 3 CPUs and 3 GiB are unusable, an increase from 0.5 to 1.5
		{"another shape", fragments, node("n", 5, 5, 0), []any{pod("seen", 4, 4, 0, plugintest.OnNode("large"))},
			pod("p", 2, 2, 0), 25},
		// 2 CPUs and 2 GiB were seen: two fit before and one after, and 1 CPU and 1 GiB remain
		{"two of a shape", fragments, node("n", 5, 5, 0), []any{pod("seen", 2, 2, 0, plugintest.OnNode("large"))},
			pod("p", 2, 2, 0), 50},
		// after: 0, a decrease by 0.5
		{"what is left over", fragments, node("n", 5, 5, 0), []any{pod("seen", 4, 4, 0, plugintest.OnNode("large"))},
			pod("p", 1, 1, 0), 66},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(c.node, node("large", 10, 10, 10)).With(c.there...)
			if got, scored := w.Score(t, c.scorer, c.pod, "n"); got != c.want || !scored {
				t.Errorf("score %d (scored: %v), want %d", got, scored, c.want)
			}
		})
	}
}

// TestWeightsOfFragmentation: with weight 3, an unusable GiB counts three times. 4 CPUs and 4 GiB were seen; a pod of 1
// GiB leaves 1 CPU unusable as before, and 0 instead of 1 GiB: a decrease by 0.25 or by 0.75.
func TestWeightsOfFragmentation(t *testing.T) {
	for weight, want := range map[int64]int64{1: 60, 3: 71} { // order: each by itself
		sc := plugintest.Must(NewFragmentation(FragmentationArgs{[]Resource{{"memory", weight}}}))
		w := plugintest.NewCluster().With(node("n", 5, 5, 0), node("large", 10, 10, 10),
			pod("seen", 4, 4, 0, plugintest.OnNode("large")))
		if got, _ := w.Score(t, sc, pod("p", 0, 1, 0), "n"); got != want {
			t.Errorf("weight %d: score %d, want %d", weight, got, want)
		}
	}
}

// TestRareShapesAreLeftOut: the most popular shapes count until they cover 95 % of the pods.
func TestRareShapesAreLeftOut(t *testing.T) {
	var list []cluster.Shape
	for i, pods := range []int64{1, 60, 4, 35} {
		sh := cluster.Shape{Pods: pods}
		sh.Held.MilliCPU = int64(i + 1)
		list = append(list, sh)
	}
	m := (&FragmentationArgs{}).typical(list)
	got := ""
	for _, sh := range m.shapes {
		got += fmt.Sprintf("%.3f of %d, ", sh.share, sh.needs[1].amount)
	}
	if want := "0.632 of 2, 0.368 of 4, "; got != want {
		t.Errorf("typical shapes %q, want %q", got, want)
	}
}

func TestWrongArguments(t *testing.T) {
	twice := []Resource{{"cpu", 1}, {"cpu", 2}}
	for want, make := range map[string]func() error{ // order: each by itself
		"no resources to score": func() error { _, err := NewBestFit(BestFitArgs{Norm: L1}); return err },
		"unknown norm \"L3\"": func() error {
			_, err := NewBestFit(BestFitArgs{Norm: "L3", Resources: defaultResources()})
			return err
		},
		"resource cpu is given twice": func() error { _, err := NewDotProduct(DotProductArgs{twice}); return err },
		"must be between 1 and 100, got 101": func() error {
			_, err := NewFragmentation(FragmentationArgs{[]Resource{{"cpu", 101}}})
			return err
		},
		"must be between 1 and 100, got 0": func() error {
			_, err := NewBestFit(BestFitArgs{Norm: L2, Resources: []Resource{{"cpu", 0}}})
			return err
		},
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestWeightsFollowTheMix: a pod of another shape that was seen changes weights by demand, and so the version of a
// score; without them, the version stays.
func TestWeightsFollowTheMix(t *testing.T) {
	w := plugintest.NewCluster().With(node("large", 10, 10, 10))
	s, p := w.Store.Snapshot(), w.Intake.PendingPod(pod("p", 2, 4, 0))
	version := func(demand bool) uint64 {
		sc := plugintest.Must(NewBestFit(BestFitArgs{L1, defaultResources(), demand}))
		return plugin.VersionOf(sc.PrepareScore(s, p), s)
	}
	fixed, byDemand := version(false), version(true)
	w.With(pod("seen", 1, 10, 0, plugintest.OnNode("large")))
	if fixed != version(false) || byDemand == version(true) {
		t.Errorf("versions %d and, by demand, %d; after a pod was seen %d and %d", fixed, byDemand, version(false), version(true))
	}
}

// randomScorers draws arguments.
func randomScorers(t *rapid.T) []plugin.Plugin {
	var list []Resource
	for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", gpu, "other.org/nic",
		"absent.org/thing"} {
		if plugintest.Chance(t, 60, string(name)) {
			list = append(list, Resource{name, rapid.Int64Range(1, 100).Draw(t, "weight")})
		}
	}
	fragments := plugintest.Must(NewFragmentation(FragmentationArgs{list}))
	if len(list) == 0 {
		list = defaultResources()
	}
	norm := plugintest.Pick(t, []Norm{L1, L2}, "norm")
	byDemand := rapid.Bool().Draw(t, "weights by demand")
	return []plugin.Plugin{fragments, plugintest.Must(NewBestFit(BestFitArgs{norm, list, byDemand})),
		plugintest.Must(NewDotProduct(DotProductArgs{list}))}
}

// TestFormsAgree: on random clusters, also after changes, the column form says what the plain form says. A score whose
// version has changed is prepared again, as a search does.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, nodes := plugintest.RandomCluster(t, 100)
		s := w.Store.Snapshot()
		p := w.Intake.PendingPod(plugintest.RandomPod(t, "pending", nodes))
		scorers := randomScorers(t)
		for step := range 3 {
			rows := cluster.NodeIdx(s.Rows())
			all := plugintest.Prepare(s, p, scorers)
			plugintest.CheckForms(t, s, all, 0, rows)
			if rows > 0 {
				n := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "row"))
				plugintest.CheckForms(t, s, all, n, rows)
				plugintest.CheckForms(t, s, all, n, n+1)
			}
			plugintest.RandomChange(t, w, nodes, step)
		}
	})
}

// TestVersionsCoverWhatIsPrepared: a score that was prepared before a change of other rows, and whose version is the
// same, still says what a new one says.
func TestVersionsCoverWhatIsPrepared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, nodes := plugintest.RandomCluster(t, 40)
		s := w.Store.Snapshot()
		p := w.Intake.PendingPod(plugintest.RandomPod(t, "pending", nodes))
		for _, sc := range randomScorers(t) {
			scorer := sc.(plugin.Scorer)
			old := scorer.PrepareScore(s, p)
			version := plugin.VersionOf(old, s)
			plugintest.RandomChange(t, w, nodes, 0)
			if plugin.VersionOf(old, s) != version {
				continue
			}
			now := scorer.PrepareScore(s, p)
			for n := range cluster.NodeIdx(s.Rows()) {
				if s.Node(n) == nil {
					continue
				}
				if a, b := old.Plain(s, s.View(n)), now.Plain(s, s.View(n)); a != b {
					t.Fatalf("%s: version %d, but scores %d and %d of node %s", sc.Name(), version, a, b, s.NodeName(n))
				}
			}
		}
	})
}
