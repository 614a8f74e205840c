// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestEndOfAPod: the earlier one of what the kubelet enforces and what the pod states counts, from its start. What
// cannot be a duration does not count.
func TestEndOfAPod(t *testing.T) {
	const start = 1000
	for _, c := range []struct {
		name, stated string
		limit        int64
		started      bool
		deleted      int64
		end          record.Time // in seconds
		basis        cluster.EndBasis
	}{
		{name: "nothing is known", started: true},
		{name: "limit", limit: 60, started: true, end: 1060, basis: cluster.EndsByLimit},
		{name: "limit, not started", limit: 60},
		{name: "stated", stated: "1m30s", started: true, end: 1090, basis: cluster.EndsAsStated},
		{name: "stated before the limit", stated: "30s", limit: 60, started: true, end: 1030,
			basis: cluster.EndsAsStated},
		{name: "stated after the limit", stated: "2h", limit: 60, started: true, end: 1060, basis: cluster.EndsByLimit},
		{name: "deleted", stated: "2h", limit: 60, started: true, deleted: 1010, end: 1010, basis: cluster.EndsDeleted},
		{name: "negative", stated: "-5s", started: true},
		{name: "no duration", stated: "soon", started: true},
		{name: "no unit", stated: "90", started: true},
		{name: "absurd", stated: "1000000h", limit: math.MaxInt64, started: true},
		{name: "negative limit", limit: -1, started: true},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		if c.stated != "" {
			p.Annotations = map[string]string{DurationAnnotation: c.stated}
		}
		if c.limit != 0 {
			p.Spec.ActiveDeadlineSeconds = &c.limit
		}
		if c.started {
			p.Status.StartTime = &metav1.Time{Time: time.Unix(start, 0)}
		}
		if c.deleted != 0 {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(c.deleted, 0)}
		}
		at, basis := NewIntake().Pod(p).End()
		if at != c.end*record.Second || basis != c.basis {
			t.Errorf("%s: ends at %d s by basis %d, want %d by %d", c.name, at/record.Second, basis, c.end, c.basis)
		}
	}
}
