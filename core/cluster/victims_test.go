// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// A pod counts as preempted only while it goes, and only when a scheduler evicted it.
func TestPreempted(t *testing.T) {
	in := cluster.NewIntake()
	for _, c := range []struct {
		name      string
		going     bool
		condition v1.PodCondition
		want      bool
	}{
		{"goes for another", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}, true},
		{"is marked and not deleted yet", false, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}, false},
		{"goes because of a taint", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: "DeletionByTaintManager"}, false},
		{"was marked once", true, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionFalse,
			Reason: v1.PodReasonPreemptionByScheduler}, false},
		{"goes by itself", true, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}, false},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"},
			Status: v1.PodStatus{Conditions: []v1.PodCondition{c.condition}}}
		if c.going {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if got := in.Pod(p).Preempted; got != c.want {
			t.Errorf("a pod that %s: preempted %v", c.name, got)
		}
	}
}

// A pod's start becomes known in a version that changes nothing else; caches ordered by age are notified of it.
func TestRenewals(t *testing.T) {
	in, s := cluster.NewIntake(), cluster.NewStore()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: v1.PodSpec{NodeName: "n"}}
	s.SetPod(in.Pod(p))
	_, changes, _ := s.Snapshot().Changes(0)
	_, renewals, _ := s.Snapshot().Renewals(0)
	s.SetPod(in.Pod(p))
	p.Status.StartTime = &metav1.Time{Time: time.Unix(5, 0)}
	s.Begin()
	s.SetPod(in.Pod(p))
	s.Abort()
	s.SetPod(in.Pod(p))
	if rows, _, _ := s.Snapshot().Changes(changes); len(rows) != 0 {
		t.Errorf("rows %v changed", rows)
	}
	if rows, _, ok := s.Snapshot().Renewals(renewals); !ok || len(rows) != 3 {
		t.Errorf("%d renewals (known %v), want one for each time that the start came or went", len(rows), ok)
	}
}
