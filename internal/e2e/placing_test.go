// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"go.uber.org/goleak"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

func freePort() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// TestPodsArePlacedAndTheRestHasTheReason runs with exactly the role system:kube-scheduler.
func TestPodsArePlacedAndTheRestHasTheReason(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 5})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)

	// Some wait before the scheduler comes.
	for i := range 20 {
		create(t, client, pod(fmt.Sprint("early-", i), "100m"))
	}
	scheduler := startProcess(t, cluster.SchedulerKubeconfig)
	for i := range 20 {
		create(t, client, pod(fmt.Sprint("late-", i), "100m"))
	}
	create(t, client, pod("huge", "50E"), pod("big", "5000"))
	allBound(t, client, 40, "huge", "big")

	for _, name := range []string{"huge", "big"} {
		expectReason(t, client, name)
	}
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if endpoint, err := kube.EndpointOf(lease); err != nil || endpoint.Port() == 0 || len(endpoint.CA) == 0 {
		t.Errorf("endpoint in the lease: %+v, %v", endpoint, err)
	}

	// A restart with pods bound and pending: nothing moves, and what comes after is placed.
	scheduler.terminate()
	for i := range 20 {
		create(t, client, pod(fmt.Sprint("after-", i), "100m"))
	}
	allBound(t, client, 60, "huge", "big")
	judge(t, client, history)
}

// expectReason looks for the condition and the event of a pod that does not fit.
func expectReason(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	eventually(t, "pod "+name+" has the reason", func() (bool, string) {
		p, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == "Unschedulable" && c.Message != "" &&
				time.Since(c.LastTransitionTime.Time) < time.Hour && c.ObservedGeneration == p.Generation {
				return true, ""
			}
		}
		return false, fmt.Sprintf("conditions %+v", p.Status.Conditions)
	})
	eventually(t, "pod "+name+" has an event", func() (bool, string) {
		list, err := client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == "FailedScheduling" && e.Action == "Scheduling" &&
				e.ReportingController == "default-scheduler" {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d other events", len(list.Items))
	})
}

// TestARunLeavesNothingBehind runs a scheduler inside this process, asks it over https as an administrator does, and
// looks for goroutines when it has ended.
func TestARunLeavesNothingBehind(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 2})
	client := adminClient(t, cluster)
	create(t, client, pod("first", "100m"))
	before := goleak.IgnoreCurrent()

	scheduler, end := runInside(t.Context(), t, options(cluster.SchedulerKubeconfig))
	allBound(t, client, 1)

	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host, cfg.CAData, cfg.CAFile = "https://"+scheduler.Endpoint().Address, scheduler.Endpoint().CA, ""
	asker, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/readyz?verbose": "[+]leaderElection ok",
		"/metrics":        `scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1`,
	} {
		eventually(t, path+" answers", func() (bool, string) {
			res, err := asker.Get(cfg.Host + path)
			if err != nil {
				return false, err.Error()
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			return err == nil && res.StatusCode == 200 && strings.Contains(string(body), want), fmt.Sprintf("%d %.2000s", res.StatusCode, body)
		})
	}
	asker.CloseIdleConnections()
	end()
	// The connections for token and access reviews are k8s.io/apiserver's; they close when they have idled for a while.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"))
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *lease.Spec.HolderIdentity != "" {
		t.Errorf("the lease is still held by %s", *lease.Spec.HolderIdentity)
	}
}
