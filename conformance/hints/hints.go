// SPDX-License-Identifier: Apache-2.0

package hints

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Answer is what an event does to a pod that the plugin rejected.
type Answer string

// The answers.
const (
	Unheard Answer = "unheard" // the plugin does not receive such events
	Skip    Answer = "skip"
	Queue   Answer = "queue"
)

// Upstream asks what an upstream plugin registered. A hint that fails queues the pod, as upstream's queue has it.
func Upstream(registered []fwk.ClusterEventWithHint, event fwk.ClusterEvent, pod *v1.Pod, before, after any) Answer {
	answer := Unheard
	for _, r := range registered {
		if !framework.MatchClusterEvents(r.Event, event) {
			continue
		}
		answer = Skip
		if r.QueueingHintFn == nil {
			return Queue
		}
		if hint, err := r.QueueingHintFn(klog.Background(), pod, before, after); err != nil || hint == fwk.Queue {
			return Queue
		}
	}
	return answer
}

// Kumiki asks what a native plugin is woken by.
func Kumiki(wakes []plugin.Wake, change plugin.Change, pod *cluster.Pod) Answer {
	answer := Unheard
	for _, w := range wakes {
		if !w.Event.Matches(change.Event) {
			continue
		}
		answer = Skip
		if w.Hint == nil || w.Hint(pod, change) == plugin.QueueHint {
			return Queue
		}
	}
	return answer
}
