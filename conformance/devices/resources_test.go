// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/host/devices"
)

// scored are the resources that NodeResourcesFit looks at. NodeResourcesBalancedAllocation leaves out the second:
// upstream's crashes when a class with selectors backs one of its resources.
var scored = []resources.WeightedResource{{Name: "cpu", Weight: 1}, {Name: gpuResource, Weight: 2}, {Name: anyResource, Weight: 3},
	{Name: "deviceclass.resource.kubernetes.io/any", Weight: 1}}

// NodeResourcesFit leaves what a class backs to DynamicResources, and both scorers of resources count its devices, as
// upstream's do.
func TestResourcesLikeUpstream(t *testing.T) {
	oracle.New().Close()
	seed, cases := sampling.SeedOr(t, defaultSeed), sampling.Cases(t, defaultCases)
	seen := map[string]int{}
	for i := range cases {
		w := newWorld(t, &maker{Rand: rand.New(rand.NewPCG(seed+2, uint64(i))), taken: map[string]bool{}})
		strategy := one(w.m, config.LeastAllocated, config.MostAllocated)
		fit, upFit := w.fit(strategy)
		balanced, upBalanced := w.balanced()
		for k := range 3 {
			pod, _ := w.m.pod("pending", k)
			p := w.in.Pod(pod)
			w.sameVerdicts(pod, p, fit, upFit, seen)
			w.sameScores(pod, p, fit, upFit, seen)
			w.sameScores(pod, p, balanced, upBalanced, seen)
			c := w.m.claim(fmt.Sprintf("more%d", k))
			w.m.allocate(c)
			w.api.put(c)
		}
	}
	t.Logf("%d cases of seed %d: %v", cases, seed+2, seen)
}

func (w *world) fit(strategy config.ScoringStrategyType) (*resources.NodeResourcesFit, *noderesources.Fit) {
	args := &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{Type: strategy}}
	for _, r := range scored {
		args.ScoringStrategy.Resources = append(args.ScoringStrategy.Resources, config.ResourceSpec{Name: string(r.Name), Weight: r.Weight})
	}
	up, err := noderesources.NewFit(context.Background(), args, w.h, gates())
	if err != nil {
		w.t.Fatal(err)
	}
	ours, err := resources.NewNodeResourcesFit(resources.FitArgs{Strategy: resources.Strategy(strategy), Resources: scored})
	if err != nil {
		w.t.Fatal(err)
	}
	return ours.WithDevices(devices.NewCounter(w.inv)).(*resources.NodeResourcesFit), up.(*noderesources.Fit)
}

func (w *world) balanced() (*resources.NodeResourcesBalancedAllocation, *noderesources.BalancedAllocation) {
	args, ours := &config.NodeResourcesBalancedAllocationArgs{}, resources.BalancedArgs{}
	for _, r := range scored {
		if r.Name != gpuResource {
			args.Resources = append(args.Resources, config.ResourceSpec{Name: string(r.Name), Weight: 1})
			ours.Resources = append(ours.Resources, resources.WeightedResource{Name: r.Name, Weight: 1})
		}
	}
	up, err := noderesources.NewBalancedAllocation(context.Background(), args, w.h, gates())
	if err != nil {
		w.t.Fatal(err)
	}
	pl, err := resources.NewNodeResourcesBalancedAllocation(ours)
	if err != nil {
		w.t.Fatal(err)
	}
	return pl.WithDevices(devices.NewCounter(w.inv)).(*resources.NodeResourcesBalancedAllocation), up.(*noderesources.BalancedAllocation)
}

func (w *world) sameVerdicts(pod *v1.Pod, p *cluster.Pod, fit *resources.NodeResourcesFit, up *noderesources.Fit, seen map[string]int) {
	ctx, state, s := context.Background(), framework.NewCycleState(), w.store.Snapshot()
	if _, st := up.PreFilter(ctx, state, pod, nil); !st.IsSuccess() {
		w.t.Fatalf("upstream's PreFilter: %v", st)
	}
	f := fit.PrepareFilter(s, p).Filter
	out := make([]plugin.Verdict, s.Rows())
	f.Column(s, 0, cluster.NodeIdx(len(out)), plugin.TagOf(0), out)
	for _, name := range w.m.nodes {
		n, _ := s.Find(name)
		words, kumiki := []string{"fits"}, []string{"fits"}
		if st := up.Filter(ctx, state, pod, w.info(name)); !st.IsSuccess() {
			words = append(st.Reasons(), st.Code().String())
			slices.Sort(words)
		}
		if code := out[n].Code(); code != plugin.Fit {
			kumiki = append(f.Reasons(code), fwk.Unschedulable.String())
			if code&plugin.Unresolvable != 0 {
				kumiki[len(kumiki)-1] = fwk.UnschedulableAndUnresolvable.String()
			}
			slices.Sort(kumiki)
		}
		if !slices.Equal(words, kumiki) {
			w.t.Fatalf("pod %+v on %s: kumiki %q, upstream %q", p.Spec.Request, name, kumiki, words)
		}
		seen["verdict "+strings.Join(kumiki, ", ")]++
	}
}

// upScorer is upstream's side of a scorer.
type upScorer interface {
	fwk.PreScorePlugin
	fwk.ScorePlugin
}

func (w *world) sameScores(pod *v1.Pod, p *cluster.Pod, ours plugin.Scorer, up upScorer, seen map[string]int) {
	ctx, state, s := context.Background(), framework.NewCycleState(), w.store.Snapshot()
	st := up.PreScore(ctx, state, pod, nil)
	score := ours.PrepareScore(s, p)
	if st.IsSkip() != (score == nil) {
		w.t.Fatalf("%s of pod %+v: kumiki skips: %v, upstream: %v", ours.Name(), p.Spec.Request, score == nil, st)
	}
	if score == nil {
		return
	}
	plugin.VersionOf(score, s)
	column := make([]int64, s.Rows())
	score.Column(s, 0, cluster.NodeIdx(len(column)), column)
	for _, name := range w.m.nodes {
		n, _ := s.Find(name)
		want, st := up.Score(ctx, state, pod, w.info(name))
		if !st.IsSuccess() || want != column[n] {
			w.t.Fatalf("%s of pod %+v on %s: kumiki %d, upstream %d, %v", ours.Name(), p.Spec.Request, name, column[n], want, st)
		}
		seen["scores of "+ours.Name()]++
	}
}
