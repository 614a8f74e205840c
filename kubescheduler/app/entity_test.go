// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"
)

// queued is a pod or a pod group in the queue, as host/framework passes it.
type queued struct {
	*upstream.QueuedPodInfo
	group bool
}

func (q queued) Type() fwk.EntityKeyType {
	if q.group {
		return fwk.PodGroupKeyType
	}
	return fwk.PodKeyType
}

// TestEntitiesAreUpstreams: a pod in the queue is upstream's QueuedPodInfo with what the queue knows of it; a pod group
// stays what it is.
func TestEntitiesAreUpstreams(t *testing.T) {
	pod := &v1.Pod{}
	pod.Name = "p"
	info, err := upstream.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Unix(1, 0)
	in := queued{QueuedPodInfo: &upstream.QueuedPodInfo{PodInfo: info, QueueingParams: upstream.QueueingParams{
		Timestamp: time.Unix(2, 0), Attempts: 3, BackoffExpiration: time.Unix(4, 0), UnschedulableCount: 5,
		ConsecutiveErrorsCount: 6, InitialAttemptTimestamp: &first, UnschedulablePlugins: sets.New("A"),
		PendingPlugins: sets.New("B"), GatingPlugin: "C"}}}
	got, is := entity(in).(*upstream.QueuedPodInfo)
	if !is || got == in.QueuedPodInfo || got.Pod != pod {
		t.Fatalf("a pod becomes %T", entity(in))
	}
	p := got.QueueingParams
	if !p.Timestamp.Equal(time.Unix(2, 0)) || p.Attempts != 3 || !p.BackoffExpiration.Equal(time.Unix(4, 0)) ||
		p.UnschedulableCount != 5 || p.ConsecutiveErrorsCount != 6 || p.InitialAttemptTimestamp != &first ||
		!p.UnschedulablePlugins.Has("A") || !p.PendingPlugins.Has("B") || p.GatingPlugin != "C" {
		t.Errorf("parameters %+v", p)
	}
	in.group = true
	if got := entity(in); got != fwk.QueuedEntityInfo(in) {
		t.Errorf("a pod group becomes %T", got)
	}
}
