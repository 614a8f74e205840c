// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// filters are the plugins of both sides, in upstream's order.
var filters = []string{names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit,
	names.VolumeRestrictions, names.PodTopologySpread, names.InterPodAffinity}

// theirs is upstream's plugin on one cluster.
type theirs struct {
	ctx       context.Context
	stop      context.CancelFunc
	framework framework.Framework
	plugin    *defaultpreemption.DefaultPreemption
	snapshot  *internalcache.Snapshot
	objects   informers.SharedInformerFactory
}

var (
	client = fake.NewClientset()
	ready  = sync.OnceValue(func() *metrics.MetricAsyncRecorder {
		metrics.Register()
		klog.SetLogger(logr.Discard())
		return metrics.NewMetricsAsyncRecorder(1000, time.Hour, nil)
	})
)

// nominator answers from a fixed list.
type nominator map[string][]fwk.PodInfo // node name -> pods nominated there

func (nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo              { return n[node] }

// budgetsByName lists budgets in the order of their names. Upstream takes them in the order of a map; since 1.37 it
// charges a pod to them until one is violated, so which pods violate one depends on that order.
type budgetsByName struct {
	policylisters.PodDisruptionBudgetLister
}

func (l budgetsByName) List(selector labels.Selector) ([]*policyv1.PodDisruptionBudget, error) {
	budgets, err := l.PodDisruptionBudgetLister.List(selector)
	slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return budgets, err
}

func newTheirs(t testing.TB, w *scene) *theirs {
	ctx, stop := context.WithCancel(context.Background())
	u := &theirs{ctx: ctx, stop: stop, snapshot: internalcache.NewSnapshot(w.bound, w.nodes), objects: informers.NewSharedInformerFactory(client, 0)}
	noms := nominator{}
	for _, p := range w.nominated {
		info, _ := framework.NewPodInfo(p)
		noms[p.Status.NominatedNodeName] = append(noms[p.Status.NominatedNodeName], info)
	}
	add := func(store interface{ Add(any) error }, obj any) {
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	add(u.objects.Core().V1().Pods().Informer().GetStore(), w.pod)
	for _, b := range w.budgets {
		add(u.objects.Policy().V1().PodDisruptionBudgets().Informer().GetStore(), b)
	}
	registry := plugins.NewInTreeRegistry()
	registry[names.DefaultPreemption] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		pl, err := defaultpreemption.New(ctx, args, h, feature.Features{})
		if err == nil {
			restrain(pl)
		}
		u.plugin = pl
		return pl, err
	}
	var enabled scenario.Profile
	for _, name := range append([]string{names.PrioritySort, names.DefaultBinder, names.DefaultPreemption}, filters...) {
		enabled.Plugins = append(enabled.Plugins, scenario.Plugin{Name: name, Weight: 1})
	}
	profile, err := oracle.InternalProfile(&enabled)
	if err != nil {
		t.Fatal(err)
	}
	profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: names.DefaultPreemption,
		Args: &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100, MinCandidateNodesAbsolute: 1}})
	u.framework, err = frameworkruntime.NewFramework(u.ctx, registry, profile,
		frameworkruntime.WithSnapshotSharedLister(u.snapshot), frameworkruntime.WithMutableSnapshotLister(u.snapshot),
		frameworkruntime.WithPodNominator(noms), frameworkruntime.WithParallelism(1),
		frameworkruntime.WithMetricsRecorder(ready()), frameworkruntime.WithInformerFactory(u.objects), frameworkruntime.WithClientSet(client),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()), frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// choice is the result of a search for victims.
type choice struct {
	// candidates: node -> who would have to go, the most important first, and how many of them against a budget.
	candidates map[string]string
	// node is taken; best are those that could be, by upstream's order.
	node string
	best map[string]bool
	// message is set if no pod is evicted; keeps is set if the nomination stays.
	message string
	keeps   bool
}

// anyNode stands in messages for the node that is taken: of several with an equal loss either side takes any.
const anyNode = "NODE"

// decide filters all nodes and asks for victims; ok is false when some node fits.
func (u *theirs) decide(t testing.TB, pod *v1.Pod) (c choice, ok bool) {
	state := framework.NewCycleState()
	result, status, _ := u.framework.RunPreFilterPlugins(u.ctx, state, pod)
	statuses := framework.NewDefaultNodeToStatus()
	if !status.IsSuccess() {
		if !status.IsRejected() {
			t.Fatalf("PreFilter: %v", status.AsError())
		}
		statuses.SetAbsentNodesStatus(status)
	}
	all, err := u.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if !status.IsSuccess() || !result.AllNodes() && !result.NodeNames.Has(info.Node().Name) {
			continue
		}
		s := u.framework.RunFilterPluginsWithNominatedPods(u.ctx, state, pod, info)
		if s.IsSuccess() {
			return c, false
		}
		statuses.Set(info.Node().Name, s)
	}
	c.candidates, c.best = map[string]string{}, map[string]bool{}
	if eligible, _ := u.plugin.PodEligibleToPreemptOthers(u.ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); eligible {
		dryRun(u.ctx, t, u.plugin, u.snapshot.NodeInfos(), state, pod, statuses, &c)
	}
	c.read(u.plugin.PostFilter(u.ctx, state, pod, statuses))
	return c, true
}

// read notes the answer of PostFilter.
func (c *choice) read(won *fwk.PostFilterResult, s *fwk.Status) {
	c.message = s.Message()
	c.keeps = won == nil
	if won != nil {
		c.node = won.NominatedNodeName
		c.message = strings.Replace(c.message, "on node "+c.node+",", "on node "+anyNode+",", 1)
	}
}

// dryRun lists all candidates and those of the smallest loss.
func dryRun(ctx context.Context, t testing.TB, pl *defaultpreemption.DefaultPreemption, nodes fwk.NodeInfoLister,
	state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader, c *choice) {
	potential, err := statuses.NodesForStatusCode(nodes, fwk.Unschedulable)
	if err != nil {
		t.Fatal(err)
	}
	if len(potential) == 0 {
		return
	}
	budgets, err := pl.Evaluator.PdbLister.List(everything)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := pl.Evaluator.DryRunPreemption(ctx, state, pod, potential, budgets, 0, int32(len(potential)))
	if err != nil {
		t.Fatal(err)
	}
	for _, cand := range list {
		victims := cand.Victims()
		var who []string
		for _, v := range victims.Pods {
			who = append(who, v.Name)
		}
		c.candidates[cand.Name()] = fmt.Sprint(who, " ", victims.NumPDBViolations)
	}
	c.best = smallest(list)
}
