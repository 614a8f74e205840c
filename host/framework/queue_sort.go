// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

var _ plugin.EntityLess = adapter{}

// Before reports whether a pod goes before another one, as far as the pods say.
func (a adapter) Before(p, q *cluster.Pod) bool {
	return a.EntityBefore(plugin.QueuedEntity{Pod: p}, plugin.QueuedEntity{Pod: q})
}

// EntityBefore reports whether Less says that p goes before q. A panic orders nothing.
func (a adapter) EntityBefore(p, q plugin.QueuedEntity) (before bool) {
	entity := a.h.profile.host.entity
	lent := loan{objects: [3]runtime.Object{objectIfKnown(p.Pod), objectIfKnown(q.Pod)}}
	err := a.h.guard(config.QueueSort, lent, func() { before = a.h.queueSort.Less(entity(&p), entity(&q)) })
	if err != nil {
		a.h.broken(config.QueueSort, Panicked, fmt.Errorf("comparing %s with %s: %w", p.Pod.Key(), q.Pod.Key(), err))
		return false
	}
	return before
}

// objectIfKnown returns the object of a pod, nil if the record was made without it.
func objectIfKnown(p *cluster.Pod) runtime.Object {
	if p.Full == nil {
		return nil
	}
	return p.Full
}

// entity returns what Less receives.
func (h *Host) entity(of *plugin.QueuedEntity) fwk.QueuedEntityInfo {
	if convert := h.env.Hooks.Entity; convert != nil {
		return convert(queued{of})
	}
	return queued{of}
}

// queued is a pod or a gang in the queue, as plugins see it. GetPodInfo returns the pod, for plugins that look for that
// method, which upstream's type for pods has.
type queued struct{ of *plugin.QueuedEntity }

var _ fwk.QueuedEntityInfo = queued{}

// Type returns the type of the entity.
func (q queued) Type() fwk.EntityKeyType {
	if q.of.Gang != (cluster.GangKey{}) {
		return fwk.PodGroupKeyType
	}
	return fwk.PodKeyType
}

// GetPodInfo returns the pod; of a gang, its first member.
func (q queued) GetPodInfo() fwk.PodInfo { return newPodInfo(q.of.Pod, "") }

// GetPriority returns the priority of the pod or the gang.
func (q queued) GetPriority() int32 { return q.of.Pod.Spec.Priority }

// GetTimestamp returns when it was added to the queue last.
func (q queued) GetTimestamp() time.Time { return moment(q.of.Since) }

// GetAttempts returns the number of attempts.
func (q queued) GetAttempts() int { return q.of.Attempts }

// GetBackoffExpiration returns when the backoff ends; zero for none.
func (q queued) GetBackoffExpiration() time.Time { return moment(q.of.BackoffUntil) }

// GetUnschedulableCount returns the number of rejections.
func (q queued) GetUnschedulableCount() int { return q.of.Unschedulable }

// GetConsecutiveErrorsCount returns the number of errors since the last rejection.
func (q queued) GetConsecutiveErrorsCount() int { return q.of.Errors }

// GetInitialAttemptTimestamp returns when it first entered the active queue, nil for never.
func (q queued) GetInitialAttemptTimestamp() *time.Time {
	if q.of.FirstActive == 0 {
		return nil
	}
	t := moment(q.of.FirstActive)
	return &t
}

// GetUnschedulablePlugins returns the plugins that rejected it.
func (q queued) GetUnschedulablePlugins() sets.Set[string] { return sets.New(q.of.Plugins...) }

// GetPendingPlugins returns the plugins that wait for something outside of the scheduler.
func (q queued) GetPendingPlugins() sets.Set[string] { return sets.New(q.of.Pending...) }

// GetGatingPlugin returns the plugin that gates it.
func (q queued) GetGatingPlugin() string { return q.of.Gate }

// GetGatingPluginEvents is nil.
func (q queued) GetGatingPluginEvents() []fwk.ClusterEvent { return nil }

// moment returns a time as plugins see it; zero for none.
func moment(t record.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(t))
}
