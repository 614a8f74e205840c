// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestNothingIsLostWhenProcessesDieInABurst kills the scheduler, the API server and etcd while pods are being placed, and
// then looks: every pod is bound, to one node for good, and no node holds more than it offers. The burst fills the
// cluster to nine tenths, so that a pod decided on twice would show.
func TestNothingIsLostWhenProcessesDieInABurst(t *testing.T) {
	const nodes, cores = 10, 32 // of the default shape
	cluster := testcluster.Start(t, testcluster.Options{Nodes: nodes})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)

	total := 0
	burst := func(stage string, n int) {
		pods := make([]*v1.Pod, n)
		for i := range pods {
			pods[i] = pod(fmt.Sprintf("%s-%d", stage, i), "900m")
		}
		total += n
		create(t, client, pods...)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	burst("before", 40)
	scheduler.kill()
	burst("scheduler-killed", 60)
	allBound(t, client, total)

	done := make(chan struct{})
	go func() {
		defer close(done)
		burst("apiserver-killed", 80)
	}()
	must(cluster.Kill(testcluster.APIServer))
	must(cluster.Restart(testcluster.APIServer))
	<-done
	allBound(t, client, total)

	done = make(chan struct{})
	go func() {
		defer close(done)
		burst("etcd-killed", 80)
	}()
	must(cluster.Kill(testcluster.Etcd))
	must(cluster.Restart(testcluster.Etcd))
	<-done
	scheduler.terminate()
	burst("handed-over", 40)
	allBound(t, client, total)
	judge(t, client, history)
	if history.Bound() < total {
		t.Errorf("the watch saw %d pods bound, want %d", history.Bound(), total)
	}
	t.Logf("%d pods of %d cores, scheduler started %d times", total, nodes*cores, scheduler.starts)
}
