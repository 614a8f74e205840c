// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/hosted"
	"github.com/kumiki-scheduler/kumiki/conformance/kumiki"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// watched is upstream's DefaultPreemption, hosted. It notes what PostFilter sees and answers.
type watched struct {
	*defaultpreemption.DefaultPreemption
	t      testing.TB
	handle fwk.Handle
	asked  bool
	got    choice
}

// PostFilter lists the candidates by the plugin's own dry runs, and then asks it.
func (w *watched) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	w.asked = true
	c := choice{candidates: map[string]string{}, best: map[string]bool{}}
	if eligible, _ := w.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); eligible {
		dryRun(ctx, w.t, w.DefaultPreemption, w.handle.SnapshotSharedLister().NodeInfos(), state, pod, statuses, &c)
	}
	won, status := w.DefaultPreemption.PostFilter(ctx, state, pod, statuses)
	c.read(won, status)
	w.got = c
	return won, status
}

// nodesOf is the Handle with the lister of nodes that kumiki does not have in this form.
type nodesOf struct{ fwk.Handle }

func (n nodesOf) MutableSnapshotSharedLister() fwk.MutableSnapshotSharedLister {
	return mutable{shared: n.SnapshotSharedLister()}
}

// mutable lists nodes. Its other methods are not called without pod groups.
type mutable struct {
	fwk.MutableSnapshotSharedLister
	shared fwk.SharedLister
}

func (m mutable) NodeInfos() fwk.NodeInfoLister { return m.shared.NodeInfos() }

// hostedOurs is kumiki's engine with upstream's DefaultPreemption.
type hostedOurs struct {
	plugin *watched
	engine *engine.Engine
	intake *convert.Intake
}

// newHostedOurs makes the engine with the cluster of a scene. Filters are hosted too if hosts says so.
func newHostedOurs(t testing.TB, w *scene, hosts func(name string) bool) *hostedOurs {
	o := &hostedOurs{intake: convert.NewIntake()}
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := factory.Core().V1().Pods().Informer().GetStore().Add(w.pod); err != nil {
		t.Fatal(err)
	}
	for _, b := range w.budgets {
		if err := factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore().Add(b); err != nil {
			t.Fatal(err)
		}
	}
	factoryOf := func(ctx context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		h = nodesOf{h}
		pl, err := defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100,
			MinCandidateNodesAbsolute: 1}, h, feature.Features{})
		if err != nil {
			return nil, err
		}
		restrain(pl)
		o.plugin = &watched{DefaultPreemption: pl, t: t, handle: h}
		return o.plugin, nil
	}
	regs := hosted.Registrations(t.Context(), oracle.NewObjects())
	for i := range regs {
		if regs[i].Name == hosted.Name(names.DefaultPreemption) {
			regs[i].Factory = factoryOf
		}
	}
	var profile scenario.Profile
	always := []string{names.PrioritySort, names.DefaultBinder, names.DefaultPreemption}
	for _, name := range append(always, filters...) {
		profile.Plugins = append(profile.Plugins, scenario.Plugin{Name: name, Weight: 1})
	}
	cfg, _, err := kumiki.Hosting{
		Plugins: regs,
		As: func(name string) string {
			if name == names.DefaultPreemption || hosts(name) {
				return hosted.Name(name)
			}
			return name
		},
		Env: framework.Env{Context: t.Context(), Client: client, Informers: factory},
	}.Config(&profile)
	if err != nil {
		t.Fatal(err)
	}
	o.intake.KeepFull()
	o.engine = engine.New(cfg)
	o.engine.Step(engine.Tick{Now: record.Second})
	for _, b := range w.budgets {
		o.engine.Step(engine.ObjectSet{Object: intake.Trim(b)})
	}
	for _, n := range w.nodes {
		o.engine.Step(engine.NodeSet{Node: o.intake.Node(n)})
	}
	for _, p := range w.bound {
		o.engine.Step(engine.PodSet{Pod: o.intake.Pod(p)})
	}
	o.engine.Step(engine.Synced{})
	return o
}

// decide tries the pod; ok is false if some node fits. The engine must nominate the node that the plugin chose.
func (o *hostedOurs) decide(t testing.TB, pod *v1.Pod) (c choice, ok bool) {
	o.engine.Step(engine.PodSet{Pod: o.intake.PendingPod(pod)})
	var message, node string
	for _, e := range o.engine.Step(engine.Cycle{}) {
		switch e := e.(type) {
		case engine.Decided:
			message = e.Decision.Message
		case engine.Condition:
			node = e.Nominate
		}
	}
	if !o.plugin.asked {
		return choice{}, false
	}
	c = o.plugin.got
	said := strings.Replace(message, "on node "+c.node+",", "on node "+anyNode+",", 1)
	if node != c.node || !strings.HasSuffix(said, c.message) {
		t.Fatalf("the plugin chooses %q and says %q; the engine nominates %q and says %q", c.node, c.message,
			node, message)
	}
	return c, true
}

// TestConformanceHostedPreemption asks upstream's DefaultPreemption in upstream's framework, and hosted in kumiki, with
// native filters and with a random half of upstream's: candidates, victims, choice, message and nomination are equal.
func TestConformanceHostedPreemption(t *testing.T) {
	seed, cases := sampling.Seed(t), sampling.Cases(t, 500)
	seen := map[string]int{}
	for asked, i := 0, uint64(0); asked < cases && !t.Failed(); i++ {
		r := gen.NewRand(seed, i)
		w := draw(r)
		w.nominated = nil // a plugin's nominations are the engine's, whose pods would be tried too
		mixed, half := r.Chance(50), map[string]bool{}
		for _, name := range filters {
			half[name] = mixed && r.Chance(50)
		}
		them := newTheirs(t, w)
		want, ok := them.decide(t, w.pod)
		them.stop()
		got, ok2 := newHostedOurs(t, w, func(name string) bool { return half[name] }).decide(t, w.pod)
		if ok != ok2 {
			t.Fatalf("seed %d, case %d: upstream finds no node: %v; kumiki: %v\n%s", seed, i, ok, ok2, w)
		}
		if !ok {
			continue
		}
		asked++
		count(seen, want)
		if difference := compare(want, got); difference != "" {
			t.Fatalf("seed %d, case %d, hosted %v: %s\n%s", seed, i, half, difference, w)
		}
	}
	t.Log(cases, "cases:", fmt.Sprint(seen))
	for _, what := range []string{"evicts", "several candidates", "several victims", "against a budget",
		"nothing helps"} {
		if seen[what] < cases/200 {
			t.Errorf("%s: %d times in %d cases", what, seen[what], cases)
		}
	}
}

// restrain keeps a plugin from evicting pods, and gives budgets an order.
func restrain(pl *defaultpreemption.DefaultPreemption) {
	pl.Evaluator.PdbLister = budgetsByName{pl.Evaluator.PdbLister}
	pl.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod,
		string) (bool, error) {
		return false, nil
	}
}
