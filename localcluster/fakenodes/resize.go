// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

// resize says what became of an in-place resize: a pod whose spec asks for
// something else than what its containers were given (KEP-1287).
type resize struct {
	state resizeState
	// message says what is missing; valid in state deferred.
	message string
}

type resizeState int

const (
	// noResize: the containers have what the spec asks for.
	noResize resizeState = iota
	// granted: the node has capacity; the status is to be written.
	granted
	// deferred: the node has no capacity. The pod holds its previous amount, and gets more when
	// other pods free capacity. A kubelet of 1.36 says so even when the node could never hold
	// the pod.
	deferred
)

// hold takes the share of an admitted pod and settles its resize.
func (l *ledger) hold(e *entry) {
	h := l.host(e.pod.Spec.NodeName)
	delete(h.deferred, e.pod.UID)
	e.resize = resize{}
	node := l.nodes[e.pod.Spec.NodeName]
	if !resizing(e.pod) || node == nil {
		e.share = h.usage.Add(e.pod)
		return
	}
	desired := asDesired(e.pod)
	if message := shortage(h.usage.Admit(node, desired)); message != "" && l.enforce {
		e.resize = resize{state: deferred, message: message}
		h.deferred[e.pod.UID] = true
		e.share = h.usage.Add(asAllocated(e.pod))
		return
	}
	e.resize.state = granted
	e.share = h.usage.Add(desired)
}

// capacityFreed looks again at the resizes that wait on a node, the oldest pod
// first.
func (l *ledger) capacityFreed(name string) {
	h := l.hosts[name]
	if h == nil || len(h.deferred) == 0 {
		return
	}
	waiting := make([]*entry, 0, len(h.deferred))
	for uid := range h.deferred {
		waiting = append(waiting, l.pods[uid])
	}
	sort.Slice(waiting, func(i, j int) bool { return arrivedBefore(waiting[i].pod, waiting[j].pod) })
	for _, e := range waiting {
		h.usage.Remove(e.share)
		l.hold(e)
		l.touched = append(l.touched, e.pod.UID)
	}
}

// shortage is the message of the first lack of a resource, or "".
func shortage(v admission.Verdict) string {
	for _, f := range v.Failures {
		if f.Resource != "" {
			return f.Message
		}
	}
	return ""
}

// resizing reports whether the containers of a running pod have other amounts than its spec requests.
func resizing(pod *v1.Pod) bool {
	if pod.Status.Phase != v1.PodRunning {
		return false
	}
	// given: container name -> what it was given.
	given := map[string]v1.ResourceList{}
	for _, c := range pod.Status.ContainerStatuses {
		given[c.Name] = c.AllocatedResources
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		has, ok := given[c.Name]
		if !ok || has == nil {
			continue
		}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			want, now := c.Resources.Requests[name], has[name]
			if want.Cmp(now) != 0 {
				return true
			}
		}
	}
	return false
}

// asDesired is the pod as if it had been given what its spec asks for.
func asDesired(pod *v1.Pod) *v1.Pod {
	out := *pod
	out.Status = v1.PodStatus{}
	return &out
}

// asAllocated is the pod as if it asked for what it was given.
func asAllocated(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	for i := range out.Spec.Containers {
		c := &out.Spec.Containers[i]
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == c.Name && s.AllocatedResources != nil {
				c.Resources.Requests = s.AllocatedResources
			}
		}
	}
	out.Status = v1.PodStatus{}
	return out
}

// nextOfResize gives the status that tells about a resize, or nil when the
// status says it already.
func nextOfResize(pod *v1.Pod, r resize, now time.Time) *v1.PodStatus {
	var pending *v1.PodCondition
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodResizePending {
			pending = c
		}
	}
	switch {
	case r.state == granted:
		status := pod.Status.DeepCopy()
		for i := range status.ContainerStatuses {
			give(&status.ContainerStatuses[i], pod.Spec.Containers)
		}
		dropCondition(status, v1.PodResizePending)
		return status
	case r.state == deferred:
		if pending != nil && pending.Message == r.message && pending.ObservedGeneration == pod.Generation {
			return nil
		}
		status := pod.Status.DeepCopy()
		setCondition(status, pod, v1.PodResizePending, v1.ConditionTrue, v1.PodReasonDeferred, now)
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == v1.PodResizePending {
				c.Message = r.message
			}
		}
		return status
	case pending != nil:
		status := pod.Status.DeepCopy()
		dropCondition(status, v1.PodResizePending)
		return status
	}
	return nil
}

// give sets the resources of a container's status to those of its spec.
func give(s *v1.ContainerStatus, specs []v1.Container) {
	for i := range specs {
		if specs[i].Name == s.Name {
			s.AllocatedResources = specs[i].Resources.Requests.DeepCopy()
			s.Resources = &v1.ResourceRequirements{
				Requests: specs[i].Resources.Requests.DeepCopy(),
				Limits:   specs[i].Resources.Limits.DeepCopy(),
			}
		}
	}
}

func dropCondition(status *v1.PodStatus, t v1.PodConditionType) {
	kept := status.Conditions[:0]
	for _, c := range status.Conditions {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	status.Conditions = kept
}

// flush tells about the pods that were touched since the last flush. It is
// called without the lock.
func (l *ledger) flush() {
	l.mu.Lock()
	touched := l.touched
	l.touched = nil
	l.mu.Unlock()
	// notified: uid -> done, since capacity for several may have been freed at once.
	notified := map[types.UID]bool{}
	for _, uid := range touched {
		if !notified[uid] {
			notified[uid] = true
			l.changed(uid)
		}
	}
}
