// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// neighbour runs a scheduler of this name in this process, behind rules, until the test ends. It returns its metrics.
func neighbour(t *testing.T, kubeconfig, name string, rules *fault.Rules) componentmetrics.KubeRegistry {
	t.Helper()
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fault.NewTransport(rules, next) })
	o := app.DefaultOptions()
	o.Config, err = config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {leaderElect: false}\nprofiles: [{schedulerName: " + name + "}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	registry := componentmetrics.NewKubeRegistry()
	o.Rest, o.Serve.Secure, o.Metrics = cfg, nil, metrics.New(registry)
	_, stop := runInside(t.Context(), t, o)
	t.Cleanup(func() {
		rules.Clear()
		stop()
	})
	return registry
}

// reads is one metric, summed over what has the label.
func reads(t *testing.T, registry componentmetrics.Gatherer, name, label string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			is := family.GetName() == name && label == ""
			for _, l := range m.GetLabel() {
				is = is || family.GetName() == name && label == l.GetName()+"="+l.GetValue()
			}
			if is {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// TestASecondSchedulerOnTheSameNodes: two schedulers decide about the same nodes, each for its own pods. Ours has
// decided 150 pods onto two nodes; 100 of their binds are on a slow way, 50 wait their turn. Then the other places
// a large pod on one of the nodes, and it does not fit beside what we decided. The newest of our pods are taken
// back, before their binds are sent, just as many as it takes, and no node ever holds more than it offers; the
// other's pod is left alone. When it goes, our pods get its capacity. It detects foreignTrusted (the node is
// overcommitted), and newestKept (pending binds cannot be withdrawn, so the node is overcommitted too) of
// core/engine.
func TestASecondSchedulerOnTheSameNodes(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NoHeartbeats: true, NodeSpec: `
shapes:
- {name: shared, count: 2, capacity: {cpu: "40", memory: 64Gi, pods: "110"}}
`})
	client := adminClient(t, cluster)
	history := checker.Follow(t.Context(), client)
	slow := &fault.Rules{}
	ours := neighbour(t, cluster.SchedulerKubeconfig, v1.DefaultSchedulerName, slow)
	neighbour(t, cluster.SchedulerKubeconfig, "the-other", &fault.Rules{})

	way := slow.On(binding(fault.Slow(time.Minute)))
	const pods = 150
	for i := range pods {
		create(t, client, pod(fmt.Sprint("ours-", i), "500m"))
	}
	eventually(t, "all of ours are decided", func() (bool, string) {
		assumed := reads(t, ours, "scheduler_cache_size", "type=assumed_pods")
		return assumed == pods, fmt.Sprintf("%v are", assumed)
	})
	large := pod("large", "10")
	large.Spec.SchedulerName = "the-other"
	create(t, client, large)
	eventually(t, "the other's pod is bound", func() (bool, string) {
		p, err := client.CoreV1().Pods("default").Get(t.Context(), "large", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		large = p
		return p.Spec.NodeName != "", ""
	})
	// 40 cores less 10 hold 60 of our pods, and 75 were decided to be there. The other node has capacity for 5.
	eventually(t, "the newest of ours are taken back", func() (bool, string) {
		back := reads(t, ours, "kumiki_foreign_conflicts_total", "result=recalled")
		return back == 15, fmt.Sprintf("%v of 15", back)
	})
	way.Remove()
	eventually(t, "ours fill what is left", func() (bool, string) {
		bound := history.Bound() - 1
		return bound == pods-10, fmt.Sprintf("%d bound", bound)
	})
	for result, want := range map[string]float64{"recalled": 15, "too_late": 0, "released": 0} {
		if got := reads(t, ours, "kumiki_foreign_conflicts_total", "result="+result); got != want {
			t.Errorf("%v conflicts are %s, want %v", got, result, want)
		}
	}
	if got := reads(t, ours, "kumiki_foreign_binds_rechecked_total", ""); got != 1 {
		t.Errorf("%v foreign binds were checked, want 1", got)
	}
	if got := reads(t, ours, "kumiki_oversells_seen_total", ""); got > 1 {
		t.Errorf("%v times a node was seen oversold; in the books it is until the recalls are answered", got)
	}
	now, err := client.CoreV1().Pods("default").Get(t.Context(), "large", metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil || now.Spec.NodeName != large.Spec.NodeName || waits(now) != "" {
		t.Errorf("the other's pod was touched: %v, %+v", err, now)
	}
	sums(t, client)
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "large", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	allBound(t, client, pods)
	judge(t, client, history)
}

// sums holds what the pods on each node ask for against what the node offers.
func sums(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range checker.Sums(nodes.Items, listPods(t, client)) {
		t.Error(fault)
	}
}
