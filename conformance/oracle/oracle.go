// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// SchedulerName is the profile name of every scenario.
const SchedulerName = "default-scheduler"

// gates are those of the process; a test may replace utilfeature's for a time (conformance/release).
var gates = utilfeature.DefaultMutableFeatureGate

var setUp = sync.OnceFunc(func() {
	metrics.Register()
	// Upstream logs what it cannot parse; here that is the question, not news.
	klog.SetLogger(logr.Discard())
	// Reusing the previous pod's node list changes placements; kumiki looks at
	// every node for each pod.
	if err := gates.Set("OpportunisticBatching=false"); err != nil {
		panic(fmt.Sprintf("turn feature gates off: %v", err))
	}
})

// Oracle makes clusters that upstream's framework answers for.
type Oracle struct {
	ctx      context.Context
	stop     context.CancelFunc
	recorder *metrics.MetricAsyncRecorder
	registry frameworkruntime.Registry
}

// New starts the few goroutines upstream's framework needs; Close ends them.
func New() *Oracle {
	setUp()
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	return &Oracle{
		ctx:      ctx,
		stop:     stop,
		recorder: metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done()),
		registry: plugins.NewInTreeRegistry(),
	}
}

// Register adds a plugin that profiles may have. It must not have the name of one of upstream's.
func (o *Oracle) Register(name string, factory frameworkruntime.PluginFactory) {
	if err := o.registry.Register(name, factory); err != nil {
		panic(fmt.Sprintf("register plugin %s: %v", name, err))
	}
}

// Close ends the goroutines that New started.
func (o *Oracle) Close() {
	o.stop()
	<-o.recorder.IsStoppedCh
}

// Cluster is one scenario's nodes and bound pods behind upstream's framework.
// It answers for any number of pods. Not safe for concurrent use.
type Cluster struct {
	stop      context.CancelFunc
	ctx       context.Context
	framework framework.Framework
	cache     internalcache.Cache
	snapshot  *internalcache.Snapshot
	nominator *nominator
	// api holds the objects besides nodes and pods.
	api *Objects
	// objects: node name -> the node as last set.
	objects map[string]*v1.Node
	// names and nodes are aligned and sorted by name.
	names []string
	nodes []fwk.NodeInfo
	// scorers: plugin name -> instance, to read raw scores from.
	scorers map[string]fwk.ScorePlugin
	// state and fit are those of the last Decide.
	state fwk.CycleState
	fit   *framework.FitError
}

// Cluster loads nodes, bound pods and the profile. A profile that upstream
// refuses is an error.
func (o *Oracle) Cluster(s *scenario.Scenario) (*Cluster, error) {
	ctx, stop := context.WithCancel(o.ctx)
	c := &Cluster{
		stop:      stop,
		ctx:       ctx,
		snapshot:  internalcache.NewEmptySnapshot(),
		nominator: newNominator(s.Nominated),
		cache:     internalcache.New(ctx, nil, false, false),
		api:       NewObjects(),
		objects:   make(map[string]*v1.Node, len(s.Nodes)),
		scorers:   map[string]fwk.ScorePlugin{},
	}
	for _, obj := range s.Objects {
		c.api.Set(obj.APIObject)
	}
	if err := c.load(s); err != nil {
		stop()
		return nil, err
	}
	profile, err := InternalProfile(&s.Profile)
	if err != nil {
		stop()
		return nil, err
	}
	c.framework, err = frameworkruntime.NewFramework(ctx, o.capturing(c), profile,
		frameworkruntime.WithSnapshotSharedLister(c.snapshot),
		frameworkruntime.WithMutableSnapshotLister(c.snapshot),
		frameworkruntime.WithPodNominator(c.nominator),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithMetricsRecorder(o.recorder),
		frameworkruntime.WithInformerFactory(c.api.Factory),
		frameworkruntime.WithSharedDRAManager(c.api.Devices(ctx)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(c.api.Factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		stop()
		return nil, fmt.Errorf("upstream refuses the profile: %w", err)
	}
	return c, nil
}

// Close frees the cluster's goroutines.
func (c *Cluster) Close() { c.stop() }

// load goes through upstream's cache, so that image spread and accounting are
// what the real scheduler would see after a list sorted by name.
func (c *Cluster) load(s *scenario.Scenario) error {
	logger := klog.FromContext(c.ctx)
	for _, n := range s.Nodes {
		c.cache.AddNode(logger, n)
		c.objects[n.Name] = n
	}
	for _, p := range s.Bound {
		if err := c.cache.AddPod(logger, p); err != nil {
			return fmt.Errorf("add bound pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	c.refresh()
	return nil
}

// refresh takes the snapshot of a cycle, anew: upstream's incremental snapshot
// keeps for each unchanged node the number of nodes that held its images when it
// last changed, so scores would depend on the history of other nodes.
func (c *Cluster) refresh() {
	*c.snapshot = *internalcache.NewEmptySnapshot()
	if err := c.cache.UpdateSnapshot(klog.FromContext(c.ctx), c.snapshot); err != nil {
		panic(fmt.Sprintf("upstream's snapshot: %v", err))
	}
	c.names, c.nodes = c.names[:0:0], c.nodes[:0:0]
	for name := range c.objects { // order: sorted below
		c.names = append(c.names, name)
	}
	sort.Strings(c.names)
	for _, name := range c.names {
		info, err := c.snapshot.Get(name)
		if err != nil {
			panic(fmt.Sprintf("node %s is not in upstream's snapshot: %v", name, err))
		}
		c.nodes = append(c.nodes, info)
	}
}

// SetNode adds or updates a node.
func (c *Cluster) SetNode(n *v1.Node) {
	logger := klog.FromContext(c.ctx)
	if old := c.objects[n.Name]; old != nil {
		c.cache.UpdateNode(logger, old, n)
	} else {
		c.cache.AddNode(logger, n)
	}
	c.objects[n.Name] = n
	c.refresh()
}

// DeleteNode removes a node; a name that is not there is ignored.
func (c *Cluster) DeleteNode(name string) {
	old := c.objects[name]
	if old == nil {
		return
	}
	delete(c.objects, name)
	if err := c.cache.RemoveNode(klog.FromContext(c.ctx), old); err != nil {
		panic(fmt.Sprintf("upstream's cache removes %s: %v", name, err))
	}
	c.refresh()
}

// Bind adds a bound pod.
func (c *Cluster) Bind(p *v1.Pod) {
	if err := c.cache.AddPod(klog.FromContext(c.ctx), p); err != nil {
		panic(fmt.Sprintf("upstream's cache adds %s: %v", p.Name, err))
	}
	c.refresh()
}

// SetObject adds or updates an object; DeleteObject removes one.
func (c *Cluster) SetObject(obj scenario.APIObject) { c.api.Set(obj) }

// Object returns an object as last set.
func (c *Cluster) Object(ref scenario.ObjectRef) (scenario.APIObject, bool) { return c.api.Get(ref) }

// DeleteObject removes an object; one that is not there is ignored.
func (c *Cluster) DeleteObject(ref scenario.ObjectRef) { c.api.Delete(ref) }

// SetNominated replaces the nominated pods.
func (c *Cluster) SetNominated(pods []*v1.Pod) { c.nominator.set(pods) }

// Unbind removes a bound pod. Upstream keeps the ports of a node as a set, so the
// removal frees a port that another pod holds too; the others are put anew.
func (c *Cluster) Unbind(p *v1.Pod) {
	logger := klog.FromContext(c.ctx)
	must := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("upstream's cache without %s: %v", p.Name, err))
		}
	}
	must(c.cache.RemovePod(logger, p))
	c.refresh()
	if i, found := slices.BinarySearch(c.names, p.Spec.NodeName); found {
		for _, other := range c.nodes[i].GetPods() {
			must(c.cache.RemovePod(logger, other.GetPod()))
			must(c.cache.AddPod(logger, other.GetPod()))
		}
		c.refresh()
	}
}

// capturing wraps the registry so that the instances the framework makes can be
// asked for raw scores: the framework itself only returns weighted ones.
func (o *Oracle) capturing(c *Cluster) frameworkruntime.Registry {
	out := make(frameworkruntime.Registry, len(o.registry))
	for name, factory := range o.registry {
		out[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := factory(ctx, args, h)
			if sp, ok := p.(fwk.ScorePlugin); ok && err == nil {
				c.scorers[name] = sp
			}
			return p, err
		}
	}
	return out
}

// InternalProfile turns a scenario's profile into upstream's internal form with
// upstream's defaults for everything left out.
func InternalProfile(p *scenario.Profile) (*config.KubeSchedulerProfile, error) {
	all := int32(100)
	out := &config.KubeSchedulerProfile{
		SchedulerName:            SchedulerName,
		PercentageOfNodesToScore: &all,
		Plugins:                  &config.Plugins{},
	}
	for _, e := range p.Plugins {
		out.Plugins.MultiPoint.Enabled = append(out.Plugins.MultiPoint.Enabled, config.Plugin{Name: e.Name, Weight: e.Weight})
	}
	for _, name := range p.NoFilter {
		off := config.Plugin{Name: name}
		out.Plugins.PreFilter.Disabled = append(out.Plugins.PreFilter.Disabled, off)
		out.Plugins.Filter.Disabled = append(out.Plugins.Filter.Disabled, off)
	}
	for _, name := range p.NoScore {
		off := config.Plugin{Name: name}
		out.Plugins.PreScore.Disabled = append(out.Plugins.PreScore.Disabled, off)
		out.Plugins.Score.Disabled = append(out.Plugins.Score.Disabled, off)
	}
	affinity, fit, balanced := orDefault(p.NodeAffinity), orDefault(p.Fit), orDefault(p.Balanced)
	spread, podAffinity := orDefault(p.Spread), orDefault(p.PodAffinity)
	for _, a := range []struct {
		name       string
		from, into runtime.Object
	}{
		{names.PodTopologySpread, spread.DeepCopy(), &config.PodTopologySpreadArgs{}},
		{names.VolumeBinding, &configv1.VolumeBindingArgs{}, &config.VolumeBindingArgs{}},
		{names.DynamicResources, &configv1.DynamicResourcesArgs{}, &config.DynamicResourcesArgs{}},
		{names.InterPodAffinity, podAffinity.DeepCopy(), &config.InterPodAffinityArgs{}},
		{names.NodeAffinity, affinity.DeepCopy(), &config.NodeAffinityArgs{}},
		{names.NodeResourcesFit, fit.DeepCopy(), &config.NodeResourcesFitArgs{}},
		{names.NodeResourcesBalancedAllocation, balanced.DeepCopy(), &config.NodeResourcesBalancedAllocationArgs{}},
	} {
		scheme.Scheme.Default(a.from)
		if err := scheme.Scheme.Convert(a.from, a.into, nil); err != nil {
			return nil, fmt.Errorf("convert arguments of %s: %w", a.name, err)
		}
		out.PluginConfig = append(out.PluginConfig, config.PluginConfig{Name: a.name, Args: a.into})
	}
	return out, nil
}

// orDefault is what args point to, or nothing said.
func orDefault[T any](args *T) *T {
	if args == nil {
		return new(T)
	}
	return args
}

// Decide runs PreEnqueue, PreFilter, Filter, PreScore and Score for the pod and
// returns upstream's answer.
func (c *Cluster) Decide(pod *v1.Pod) *outcome.Outcome {
	out := &outcome.Outcome{}
	if out.Gate = c.gate(pod); out.Gate != nil {
		return out
	}
	if len(c.nodes) == 0 {
		out.Message = "no nodes available to schedule pods"
		return out
	}
	state := framework.NewCycleState()
	c.state = state
	fit, ok := c.filter(state, pod, out)
	if !ok {
		return out
	}
	for i := range out.Nodes {
		if out.Nodes[i].Code == outcome.Feasible {
			out.Feasible = append(out.Feasible, i)
		}
	}
	switch len(out.Feasible) {
	case 0:
		out.Message = fit.Error()
		out.Rejectors = sets.List(fit.Diagnosis.UnschedulablePlugins)
	case 1:
		out.PickBest()
	default:
		c.score(state, pod, out)
	}
	return out
}

func (c *Cluster) gate(pod *v1.Pod) *outcome.Verdict {
	for _, pl := range c.framework.PreEnqueuePlugins() {
		if s := pl.PreEnqueue(c.ctx, pod); !s.IsSuccess() {
			s.SetPlugin(pl.Name())
			v := verdict(s)
			return &v
		}
	}
	return nil
}

// filter fills the verdicts. It returns false when the cycle ended before any
// node was looked at.
func (c *Cluster) filter(state fwk.CycleState, pod *v1.Pod, out *outcome.Outcome) (*framework.FitError, bool) {
	fit := &framework.FitError{Pod: pod, NumAllNodes: len(c.nodes), Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(),
	}}
	c.fit = fit
	result, status, rejectors := c.framework.RunPreFilterPlugins(c.ctx, state, pod)
	fit.Diagnosis.UnschedulablePlugins = rejectors
	if !status.IsSuccess() {
		if !status.IsRejected() {
			fail(out, status.AsError())
			return nil, false
		}
		v := verdict(status)
		out.PreFilter = &v
		fit.Diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		fit.Diagnosis.PreFilterMsg = status.Message()
		fit.Diagnosis.AddPluginStatus(status)
		out.Message = fit.Error()
		out.Rejectors = sets.List(fit.Diagnosis.UnschedulablePlugins)
		return nil, false
	}
	absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(rejectors)))
	if !result.AllNodes() {
		fit.Diagnosis.NodeToStatus.SetAbsentNodesStatus(absent)
	}
	out.Names = c.names
	if c.takenByOwnNode(state, pod, out, fit) {
		return nil, false
	}
	out.Nodes = make([]outcome.Verdict, len(c.nodes))
	for i, info := range c.nodes {
		name := info.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			if s := fit.Diagnosis.NodeToStatus.Get(name); name == pod.Status.NominatedNodeName && s != nil && s.Plugin() != "" {
				out.Nodes[i] = verdict(s) // tried ahead of all others
				continue
			}
			// Which plugins left it out is compared in the message.
			out.Nodes[i] = outcome.Verdict{Code: outcome.Unresolvable}
			continue
		}
		s := c.filterNode(state, pod, info)
		if s.IsSuccess() {
			continue
		}
		if s.Code() == fwk.Error {
			fail(out, s.AsError())
			continue
		}
		out.Nodes[i] = verdict(s)
		fit.Diagnosis.NodeToStatus.Set(name, s)
		fit.Diagnosis.AddPluginStatus(s)
	}
	if out.PreFilter != nil {
		out.Names, out.Nodes = nil, nil
		return nil, false
	}
	return fit, true
}

// fail notes an error that ends the cycle.
func fail(out *outcome.Outcome, err error) {
	out.PreFilter = &outcome.Verdict{Code: outcome.Failed}
	if out.Message == "" {
		out.Message = err.Error()
	}
	if !slices.Contains(out.Failures, err.Error()) {
		out.Failures = append(out.Failures, err.Error())
	}
}

// takenByOwnNode tries the nominated node of the pod before all others and reports whether it
// fits (upstream: evaluateNominatedNode).
func (c *Cluster) takenByOwnNode(state fwk.CycleState, pod *v1.Pod, out *outcome.Outcome, fit *framework.FitError) bool {
	i, found := slices.BinarySearch(c.names, pod.Status.NominatedNodeName)
	if !found {
		return false
	}
	if s := c.filterNode(state, pod, c.nodes[i]); !s.IsSuccess() {
		if s.Code() != fwk.Error {
			fit.Diagnosis.NodeToStatus.Set(c.names[i], s)
			fit.Diagnosis.AddPluginStatus(s)
		}
		return false
	}
	out.Feasible = []int{i}
	out.PickBest()
	return true
}

func (c *Cluster) filterNode(state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if len(c.nominator.NominatedPodsForNode(info.Node().Name)) == 0 {
		return c.framework.RunFilterPlugins(c.ctx, state, pod, info)
	}
	return c.framework.RunFilterPluginsWithNominatedPods(c.ctx, state, pod, info)
}

func (c *Cluster) score(state fwk.CycleState, pod *v1.Pod, out *outcome.Outcome) {
	nodes := make([]fwk.NodeInfo, len(out.Feasible))
	for i, n := range out.Feasible {
		nodes[i] = c.nodes[n]
	}
	if !c.framework.HasScorePlugins() {
		out.Total = make([]int64, len(nodes))
		for i := range out.Total {
			out.Total[i] = 1
		}
		out.PickBest()
		return
	}
	if s := c.framework.RunPreScorePlugins(c.ctx, state, pod, nodes); !s.IsSuccess() {
		out.Message = s.AsError().Error()
		return
	}
	all, s := c.framework.RunScorePlugins(c.ctx, state, pod, nodes)
	if !s.IsSuccess() {
		out.Message = s.AsError().Error()
		return
	}
	out.Total = make([]int64, len(nodes))
	for i := range all[0].Scores {
		ps := outcome.Scores{Plugin: all[0].Scores[i].Name, Raw: make([]int64, len(nodes)), Weighted: make([]int64, len(nodes))}
		scorer := c.scorers[ps.Plugin]
		for n := range all {
			ps.Weighted[n] = all[n].Scores[i].Score
			ps.Raw[n], _ = scorer.Score(c.ctx, state, pod, nodes[n])
		}
		out.Scores = append(out.Scores, ps)
	}
	for n := range all {
		out.Total[n] = all[n].TotalScore
	}
	out.PickBest()
}

// verdict copies a rejection; the reasons are sorted because upstream's fit
// filter lists extended resources in map order.
func verdict(s *fwk.Status) outcome.Verdict {
	v := outcome.Verdict{Plugin: s.Plugin(), Reasons: append([]string(nil), s.Reasons()...)}
	switch s.Code() {
	case fwk.Unschedulable:
		v.Code = outcome.Unschedulable
	case fwk.UnschedulableAndUnresolvable:
		v.Code = outcome.Unresolvable
	case fwk.Pending:
		v.Code = outcome.Pending
	default:
		v.Code = outcome.Failed
	}
	sort.Strings(v.Reasons)
	return v
}

// Framework makes upstream's framework for a profile without a cluster, for
// those who need its plugins only, and the objects that the plugins see.
func (o *Oracle) Framework(p *scenario.Profile) (framework.Framework, *Objects, error) {
	profile, err := InternalProfile(p)
	if err != nil {
		return nil, nil, err
	}
	api := NewObjects()
	f, err := frameworkruntime.NewFramework(o.ctx, o.registry, profile,
		frameworkruntime.WithSnapshotSharedLister(internalcache.NewEmptySnapshot()),
		frameworkruntime.WithMetricsRecorder(o.recorder),
		frameworkruntime.WithInformerFactory(api.Factory),
		frameworkruntime.WithSharedDRAManager(api.Devices(o.ctx)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(api.Factory.Storage().V1().CSINodes().Lister())),
	)
	return f, api, err
}
