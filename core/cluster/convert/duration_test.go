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

// TestEvictableForGangs: a pod declares by annotation or by PriorityClass that it may be evicted for gangs, if the
// configuration lets it (faults evictableAlways, evictableClassUnread, evictableOfNode).
func TestEvictableForGangs(t *testing.T) {
	yes := true
	daemon := metav1.OwnerReference{Kind: "DaemonSet", Name: "d", Controller: &yes}
	rules := GangRules{Evictable: true, EvictableClasses: []string{"spare"}}
	for _, c := range []struct {
		name, annotation, class string
		owners                  []metav1.OwnerReference
		rules                   GangRules
		want                    bool
	}{
		{name: "nothing", rules: rules},
		{name: "annotation", annotation: "true", rules: rules, want: true},
		{name: "another value", annotation: "yes", rules: rules},
		{name: "class", class: "spare", rules: rules, want: true},
		{name: "another class", class: "sparely", rules: rules},
		{name: "no class, and none is named", rules: GangRules{Evictable: true}},
		{name: "a pod of a DaemonSet", annotation: "true", owners: []metav1.OwnerReference{daemon}, rules: rules},
		{name: "off", annotation: "true", class: "spare", rules: GangRules{EvictableClasses: []string{"spare"}}},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: c.owners}}
		p.Annotations, p.Spec.PriorityClassName = map[string]string{EvictableAnnotation: c.annotation}, c.class
		in := NewIntake()
		in.DeclareGangs(c.rules)
		if got := in.Pod(p).EvictableForGangs; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
