// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	kumikiqueue "github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// queue shows kumiki's queue in upstream's interface. Methods that change a queue panic.
type queue struct {
	internalqueue.SchedulingQueue // nil
	s                             *Scheduler
	taken                         map[string]bool // UID of a pod that next has returned -> true
}

// Run does nothing: the loop manages the queue.
func (*queue) Run(klog.Logger) {}

// Close does nothing.
func (*queue) Close() {}

// Done does nothing.
func (*queue) Done(types.UID) {}

// object returns the object of a pod, or its name alone if kumiki keeps compact records.
func object(p *cluster.Pod) *v1.Pod {
	if p.Full != nil {
		return p.Full
	}
	out := &v1.Pod{}
	out.Namespace, out.Name, out.UID = p.Namespace, p.Name, types.UID(p.UID)
	out.Spec.SchedulerName = p.Spec.SchedulerName
	return out
}

// pods lists the pods of sub-queues, each in the queue's order.
func (q *queue) pods(of ...record.SubQueue) []*v1.Pod {
	return q.podsIf(func(engine.View, *cluster.Pod) bool { return true }, of...)
}

// podsIf lists those pods of sub-queues for which fits holds.
func (q *queue) podsIf(fits func(engine.View, *cluster.Pod) bool, of ...record.SubQueue) []*v1.Pod {
	out := []*v1.Pod{}
	q.s.ask(func(v engine.View) {
		for _, sub := range of {
			v.Queue().Each(sub, func(u *kumikiqueue.Unit) {
				for _, p := range u.Members {
					if fits(v, p) {
						out = append(out, object(p))
					}
				}
			})
		}
	})
	return out
}

// PodsInActiveQ returns the pods that are ready.
func (q *queue) PodsInActiveQ() []*v1.Pod { return q.pods(record.Active) }

// PodsInBackoffQ returns the pods in backoff.
func (q *queue) PodsInBackoffQ() []*v1.Pod { return q.pods(record.Backoff) }

// UnschedulablePods returns the rejected pods and the gated ones.
func (q *queue) UnschedulablePods() []*v1.Pod {
	return q.podsIf(func(v engine.View, p *cluster.Pod) bool { return !incomplete(v, p) }, record.Unschedulable,
		record.Gated)
}

// IncompletePodGroupPodsPods returns the gated pods whose group has no object.
func (q *queue) IncompletePodGroupPodsPods() []*v1.Pod { return q.podsIf(incomplete, record.Gated) }

// incomplete reports whether a pod is in a native group that has no object.
func incomplete(v engine.View, p *cluster.Pod) bool {
	return p.Gang != nil && p.Gang.Key.Source == cluster.GangOfGroup && v.Snapshot().GangObject(p.Gang.Key) == nil
}

// InFlightPods returns the pods that are being scheduled.
func (q *queue) InFlightPods() []*v1.Pod { return q.pods(record.InFlight) }

// PendingPods returns all pods that wait.
func (q *queue) PendingPods() ([]*v1.Pod, string) {
	all := q.pods(record.Active, record.Backoff, record.Unschedulable, record.Gated)
	return all, fmt.Sprintf("%d pods wait", len(all))
}

// Activate makes pods be tried at once, as a plugin of the test can, and waits until the scheduler knows that.
func (q *queue) Activate(logger klog.Logger, pods map[string]*v1.Pod) {
	q.s.handle.Load().(fwk.Handle).Activate(logger, pods)
	q.s.ask(func(engine.View) {})
}

// GetPod returns a pod that waits.
func (q *queue) GetPod(name, namespace string, _ *v1.PodSchedulingGroup) (info *framework.QueuedPodInfo, found bool) {
	q.s.ask(func(v engine.View) {
		for _, sub := range []record.SubQueue{record.Active, record.Backoff, record.Unschedulable, record.Gated} {
			v.Queue().Each(sub, func(u *kumikiqueue.Unit) {
				for _, p := range u.Members {
					if p.Name == name && p.Namespace == namespace {
						info, found = entry(u, p), true
					}
				}
			})
		}
	})
	return info, found
}

// entry returns what upstream's queue says of a pod.
func entry(u *kumikiqueue.Unit, p *cluster.Pod) *framework.QueuedPodInfo {
	pod, _ := framework.NewPodInfo(object(p)) // terms that cannot be read leave the rest
	return &framework.QueuedPodInfo{PodInfo: pod, QueueingParams: framework.QueueingParams{
		Attempts: u.Attempts, UnschedulablePlugins: sets.New(u.Plugins...), Timestamp: time.Unix(0, int64(u.Since)),
		PendingPlugins: sets.New(u.Pending...), GatingPlugin: u.Gate,
	}}
}

// NominatedPodsForNode returns the pods that are nominated to a node.
func (q *queue) NominatedPodsForNode(node string) (out []fwk.PodInfo) {
	q.s.ask(func(v engine.View) {
		for _, p := range v.Queue().NominatedOn(node) {
			info, _ := framework.NewPodInfo(object(p))
			out = append(out, info)
		}
	})
	return out
}

// next returns the next pod that it has not returned yet, and waits for one. The pod stays in the queue, which a
// scheduler that does not run leaves as it is.
func (q *queue) next(klog.Logger) (framework.QueuedEntityInfo, error) {
	for q.s.ctx.Err() == nil {
		var info *framework.QueuedPodInfo
		q.s.ask(func(v engine.View) {
			v.Queue().Each(record.Active, func(u *kumikiqueue.Unit) {
				if uid := string(u.Members[0].UID); info == nil && !q.taken[uid] {
					q.taken[uid] = true
					info = entry(u, u.Members[0])
					info.Attempts++ // upstream counts it when it is taken
				}
			})
		})
		if info != nil {
			return info, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, q.s.ctx.Err()
}
