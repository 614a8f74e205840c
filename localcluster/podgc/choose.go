// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
	"k8s.io/kubernetes/pkg/util/taints"
)

// cause is why a pod is deleted.
type cause string

const (
	// surplus: more pods have terminated than are kept.
	surplus cause = "terminated pods above the threshold"
	// neverScheduled: the pod is terminating and has no node whose kubelet would end it.
	neverScheduled cause = "terminating without a node"
	// outOfService: the pod is terminating on a node that is not ready and has the taint out-of-service.
	outOfService cause = "terminating on a node that is out of service"
	// orphaned: the pod's node does not exist any more.
	orphaned cause = "its node is gone"
)

// removal is a pod to delete.
type removal struct {
	pod   *v1.Pod
	cause cause
}

// choose returns the pods to delete, each once. nodes holds those of the cache by name; gone are names of nodes that
// are known not to exist.
func choose(pods []*v1.Pod, nodes map[string]*v1.Node, gone sets.Set[string], threshold int) []removal {
	tooMany := surplusOf(pods, threshold)
	var out []removal
	for _, pod := range pods {
		terminating, node := pod.DeletionTimestamp != nil, nodes[pod.Spec.NodeName]
		switch {
		case tooMany.Has(pod):
			out = append(out, removal{pod, surplus})
		case terminating && pod.Spec.NodeName == "":
			out = append(out, removal{pod, neverScheduled})
		case terminating && node != nil && !nodeutil.IsNodeReady(node) &&
			taints.TaintKeyExists(node.Spec.Taints, v1.TaintNodeOutOfService):
			out = append(out, removal{pod, outOfService})
		case gone.Has(pod.Spec.NodeName):
			out = append(out, removal{pod, orphaned})
		}
	}
	return out
}

// surplusOf returns the terminated pods that exceed a threshold: evicted ones first, because no controller counts them,
// then the oldest.
func surplusOf(pods []*v1.Pod, threshold int) sets.Set[*v1.Pod] {
	if threshold <= 0 {
		return nil
	}
	var ended []*v1.Pod
	for _, pod := range pods {
		if terminated(pod) {
			ended = append(ended, pod)
		}
	}
	if len(ended) <= threshold {
		return nil
	}
	slices.SortFunc(ended, func(a, b *v1.Pod) int {
		if evicted(a) != evicted(b) {
			if evicted(a) {
				return -1
			}
			return 1
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return sets.New(ended[:len(ended)-threshold]...)
}

// terminated reports whether all containers of a pod have ended for good.
func terminated(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// evicted reports whether a kubelet ended a pod because its node ran out of a resource.
func evicted(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed && pod.Status.Reason == "Evicted"
}
