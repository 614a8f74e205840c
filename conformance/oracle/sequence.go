// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"reflect"
	"sort"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

//go:linkname findNodesThatFitPod k8s.io/kubernetes/pkg/scheduler.(*Scheduler).findNodesThatFitPod
func findNodesThatFitPod(s *scheduler.Scheduler, ctx context.Context, f framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) ([]fwk.NodeInfo, framework.Diagnosis, string, error)

//go:linkname prioritizeNodes k8s.io/kubernetes/pkg/scheduler.prioritizeNodes
func prioritizeNodes(ctx context.Context, extenders []fwk.Extender, f framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, error)

// Sequence is upstream's own Scheduler at parallelism 1, which remembers from pod to
// pod where its search ended. Nodes and pods reach it through its own informer
// handlers; its cycles are run one at a time, without its queue and its binds.
type Sequence struct {
	ctx      context.Context
	stop     context.CancelFunc
	api      *Objects
	sched    *scheduler.Scheduler
	snapshot *internalcache.Snapshot
}

// Searched is what one search looked at and found. All names are sorted.
type Searched struct {
	// Feasible nodes, Rejected ones that were looked at, and those that share the best
	// total.
	Feasible, Rejected, Best []string
	// Err is the text of a failed cycle.
	Err string
}

// Sequence starts a scheduler without nodes. percentage is that of the configuration.
func (o *Oracle) Sequence(p *scenario.Profile, percentage int32) (*Sequence, error) {
	profile, err := InternalProfile(p)
	if err != nil {
		return nil, err
	}
	profile.PercentageOfNodesToScore = &percentage
	ctx, stop := context.WithCancel(o.ctx)
	q := &Sequence{ctx: ctx, stop: stop, api: NewObjects()}
	q.sched, err = scheduler.New(ctx, nil, q.api.Factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles([]config.KubeSchedulerProfile{*profile}...), scheduler.WithParallelism(1))
	if err != nil {
		stop()
		return nil, fmt.Errorf("upstream refuses the profile: %w", err)
	}
	field := reflect.ValueOf(q.sched).Elem().FieldByName("nodeInfoSnapshot")
	q.snapshot = *(**internalcache.Snapshot)(unsafe.Pointer(field.UnsafeAddr()))
	return q, nil
}

// Close ends the scheduler's goroutines.
func (q *Sequence) Close() { q.stop() }

// Set adds or updates a node, or a pod that has a node.
func (q *Sequence) Set(o scenario.APIObject) { q.api.Set(o) }

// Delete removes one.
func (q *Sequence) Delete(o scenario.APIObject) {
	q.api.Delete(scenario.ObjectRef{Kind: scenario.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()})
}

// Search runs one cycle for the pod, up to the scores.
func (q *Sequence) Search(pod *v1.Pod) Searched {
	if err := q.sched.Cache.UpdateSnapshot(klog.FromContext(q.ctx), q.snapshot); err != nil {
		panic(fmt.Sprintf("upstream's snapshot: %v", err))
	}
	// Upstream's queue goes on with what it could parse.
	info, _ := framework.NewPodInfo(pod)
	f, state := q.sched.Profiles[SchedulerName], framework.NewCycleState()
	nodes, diagnosis, _, err := findNodesThatFitPod(q.sched, q.ctx, f, state, &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		return Searched{Err: err.Error()}
	}
	var out Searched
	for _, n := range nodes {
		out.Feasible = append(out.Feasible, n.Node().Name)
	}
	diagnosis.NodeToStatus.ForEachExplicitNode(func(name string, _ *fwk.Status) { out.Rejected = append(out.Rejected, name) })
	sort.Strings(out.Feasible)
	sort.Strings(out.Rejected)
	switch len(nodes) {
	case 0:
	case 1:
		out.Best = out.Feasible
	default:
		scores, err := prioritizeNodes(q.ctx, nil, f, state, pod, nodes)
		if err != nil {
			out.Err = err.Error()
			return out
		}
		out.Best = best(scores)
	}
	return out
}

func best(scores []fwk.NodePluginScores) []string {
	var names []string
	var high int64
	for i, s := range scores {
		switch {
		case i == 0 || s.TotalScore > high:
			names, high = []string{s.Name}, s.TotalScore
		case s.TotalScore == high:
			names = append(names, s.Name)
		}
	}
	sort.Strings(names)
	return names
}

var _ cache.SharedIndexInformer = (*informer)(nil)
