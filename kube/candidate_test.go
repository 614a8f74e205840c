// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/compatibility"
)

// TestTheAPIServerChooses: with coordinated election a process stands, and takes the lease only when it is given to it.
// It would fail with an elector that takes a lease that is free, and with a candidate of another version than the one
// emulated.
func TestTheAPIServerChooses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		e, err := NewElection(LeaseConfig{Client: api.CoordinationV1(), Namespace: "kube-system", Name: "kube-scheduler", Hostname: "host",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Candidates: api, Version: compatibility.NewEffectiveVersionFromString("1.37.1", "1.34", "1.34")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { e.Run(ctx); close(ended) }()
		defer func() { end(); <-ended }()
		time.Sleep(time.Minute)
		candidate, err := api.CoordinationV1beta1().LeaseCandidates("kube-system").Get(t.Context(), e.lock.identity, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := candidate.Spec; c.LeaseName != "kube-scheduler" || c.BinaryVersion != "1.37.1" || c.EmulationVersion != "1.37.0" || c.Strategy != coordinationv1.OldestEmulationVersion {
			t.Errorf("the candidate is %+v", c)
		}
		if e.Holds() || e.lock.won.Load() != nil {
			t.Fatal("it took a lease that the API server did not give it")
		}
		seconds, now := int32(15), metav1.NowMicro()
		strategy := coordinationv1.OldestEmulationVersion
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &e.lock.identity, LeaseDurationSeconds: &seconds, RenewTime: &now, Strategy: &strategy}}
		if _, err := api.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-e.Won()
		if !e.Holds() || !e.Contested() {
			t.Errorf("given the lease: holds %v, contested %v; want both, because others may have held it", e.Holds(), e.Contested())
		}
		time.Sleep(time.Minute)
		if kept, err := api.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{}); err != nil || kept.Spec.Strategy == nil {
			t.Errorf("renewed, the lease is %+v, %v", kept, err)
		}
	})
}
