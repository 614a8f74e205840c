// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestNothingIsLostWhenProcessesDieInABurst kills the scheduler, the API server and etcd while pods are being
// placed, and then looks: every pod is bound, to one node for good, and no node holds more than it offers. The
// burst fills the cluster to nineteen twentieths, so that a pod decided on twice would show.
func TestNothingIsLostWhenProcessesDieInABurst(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: tenNodes})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)

	total := 0
	// inBurst creates n pods and calls strike when a third of them is bound, while the others come.
	inBurst := func(stage string, n int, strike func() error) {
		t.Helper()
		struck := make(chan error, 1)
		before := history.Bound()
		go func() {
			eventually(t, stage+": the burst is under way", func() (bool, string) {
				bound := history.Bound()
				return bound >= before+n/3, fmt.Sprintf("%d pods bound", bound)
			})
			struck <- strike()
		}()
		pods := make([]*v1.Pod, n)
		for i := range pods {
			pods[i] = pod(fmt.Sprintf("%s-%d", stage, i), "250m")
		}
		total += n
		create(t, client, pods...)
		if err := <-struck; err != nil {
			t.Fatal(err)
		}
		allBound(t, client, total)
	}
	again := func(role testcluster.Role) func() error {
		return func() error { return errors.Join(cluster.Kill(role), cluster.Restart(role)) }
	}
	inBurst("scheduler-killed", 150, func() error { scheduler.kill(); return nil })
	inBurst("apiserver-killed", 150, again(testcluster.APIServer))
	inBurst("etcd-killed", 150, again(testcluster.Etcd))
	inBurst("handed-over", 150, func() error { scheduler.terminate(); return nil })
	judge(t, client, history)
	if history.Bound() != total {
		t.Errorf("the watch saw %d pods bound, want %d", history.Bound(), total)
	}
	t.Logf("%d pods, scheduler started %d times", total, scheduler.started())
}

// TestAStoppedLeaderDoesNoHarmWhenItGoesOn freezes the leader in a burst for longer than its lease. A standby takes
// over; then the old leader goes on, with decisions of its own that are of the past.
func TestAStoppedLeaderDoesNoHarmWhenItGoesOn(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: tenNodes})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	leader := startProcess(t, cluster.SchedulerKubeconfig)
	create(t, client, pod("first", "250m"))
	allBound(t, client, 1)
	old := holder(t, client)
	startProcess(t, cluster.SchedulerKubeconfig) // the standby

	const each = 200
	burst := func(stage string) {
		for i := range each {
			create(t, client, pod(fmt.Sprintf("%s-%d", stage, i), "250m"))
		}
	}
	go func() {
		eventually(t, "the burst is under way", func() (bool, string) { return history.Bound() > each/4, "" })
		leader.signal(syscall.SIGSTOP)
	}()
	burst("old-leader")
	eventually(t, "the standby leads", func() (bool, string) {
		now := holder(t, client)
		return now != old && now != "", now
	})
	go leader.signal(syscall.SIGCONT)
	burst("new-leader")
	allBound(t, client, 1+2*each)
	judge(t, client, history)
}

func holder(t *testing.T, client *kubernetes.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("lease %+v, %v", lease, err)
	}
	return *lease.Spec.HolderIdentity
}

// tenNodes have capacity for 630 pods of 250m.
const tenNodes = `
shapes:
- name: n
  count: 10
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
`
