// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
)

// A pod's start becomes known in a version that changes nothing else; caches ordered by age are notified of it.
func TestRenewals(t *testing.T) {
	in, s := convert.NewIntake(), cluster.NewStore()
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
