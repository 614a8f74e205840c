// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestAStandbySaysWhoHoldsItsLease: once for each holder. A kumiki with the same profiles is the other replica; one with
// other profiles is a mistake, unless it is a rollout, and whose pods wait is named.
func TestAStandbySaysWhoHoldsItsLease(t *testing.T) {
	const mistake, standby = "A kumiki with other profiles holds the lease", "Another process holds the lease"
	for name, tt := range map[string]struct {
		annotations map[string]string
		mistakes    int
		standbys    int
	}{
		"replica":                       {map[string]string{HolderAnnotation: "them_1", SchedulersAnnotation: "ours,more"}, 0, 1},
		"another deployment":            {map[string]string{HolderAnnotation: "them_1", SchedulersAnnotation: "theirs"}, 1, 0},
		"kube-scheduler":                {nil, 0, 1},
		"kube-scheduler after a kumiki": {map[string]string{HolderAnnotation: "gone_1", SchedulersAnnotation: "theirs"}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			said := logOf(t)
			api := kubetest.NewAPIServer()
			them, seconds := "them_1", int32(15)
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "shared", Annotations: tt.annotations},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &them, LeaseDurationSeconds: &seconds},
			}
			if _, err := api.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			e, err := NewElection(LeaseConfig{Client: api.CoordinationV1(), Namespace: "kube-system", Name: "shared", Hostname: "host",
				Schedulers: []string{"ours", "more"}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, _, err := e.lock.Get(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if m, s := len(said.lines(mistake)), len(said.lines(standby)); m != tt.mistakes || s != tt.standbys {
				t.Errorf("%d and %d lines, want %d and %d", m, s, tt.mistakes, tt.standbys)
			}
			for _, line := range said.lines(mistake) {
				for _, part := range []string{"kube-system/shared", "them_1", `schedulersOfHolder="theirs"`, `schedulers="ours,more"`} {
					if !strings.Contains(line, part) {
						t.Errorf("%q lacks %q", line, part)
					}
				}
			}
		})
	}
}
