// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// opposite fills nodes where the default spreads load.
const opposite = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: somebody-else
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}
`

// TestShadow: two shadows follow a scheduler, as a user who may only list and watch. The one with the same weights
// agrees on every pod that was certainly decided on the state that it sees; the one that packs nodes reports regret,
// and the plugin that causes it. Both agree with the scheduler about what fits, for single pods and in a burst, and
// neither sends a write request. Faults: a tie that counts as regret; a profile that keeps its own name and so
// matches no pods; a lease or an event written by the shadow.
func TestShadow(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 6, NoHeartbeats: true})
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	admin := kubernetes.NewForConfigOrDie(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	viewer, err := clientcmd.BuildConfigFromFlags("", cluster.ViewerKubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	var running sync.WaitGroup
	defer running.Wait()
	inside, stop := context.WithCancel(ctx)
	defer stop()
	scheduler, err := app.NewScheduler(inside, quietly(cluster.SchedulerKubeconfig, config.Default()))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		if err := scheduler.Run(inside); err != nil {
			t.Errorf("the scheduler ended: %v", err)
		}
	})

	other, err := config.Parse([]byte(opposite))
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int64
	alike, unlike := newFollower(ctx, t, viewer, config.Default(), &writes), newFollower(ctx, t, viewer, other, &writes)
	for _, f := range []*follower{alike, unlike} {
		running.Go(func() { f.run(inside) })
		select {
		case <-f.shadow.Synced():
		case <-ctx.Done():
			t.Fatal("the shadow did not receive the cluster")
		}
	}

	const alone, burst = 12, 60
	for i := range alone {
		podsRun(ctx, t, admin, fmt.Sprintf("alone-%d", i), 1, "700m")
	}
	podsRun(ctx, t, admin, "burst", burst, "200m")
	for _, f := range []*follower{alike, unlike} {
		f.await(ctx, t, func(r record.ShadowReport) bool {
			return r.Pods.Judged+r.Pods.Unseen == alone+burst && r.RejectedByUs.Open == 0
		})
	}
	stop()
	running.Wait()

	same, differing := alike.last(t), unlike.last(t)
	t.Logf("same weights: %+v, quiet %+v, rejected %+v, latency %+v", same.Agreement, same.Quiet, same.RejectedByUs, same.Latency)
	t.Logf("other weights: %+v, quiet %+v", differing.Agreement, differing.Quiet)
	if q := same.Quiet; q.Pods < alone/2 || q.Share != 1 || q.Regret.Max != 0 {
		t.Errorf("with the same weights: %+v", q)
	}
	if q := differing.Quiet; q.Pods < alone/2 || q.Worse < q.Pods/2 || q.Regret.Max == 0 || len(q.Regret.ByPlugin) == 0 || q.Regret.ByPlugin[0].Plugin != config.NodeResourcesFit {
		t.Errorf("with other weights: %+v", q)
	}
	for _, r := range []record.ShadowReport{same, differing} {
		if r.RejectedByUs.Pods != 0 || r.RefusedByThem.Pods != 0 || r.Pods.Unjudged != 0 || r.Pods.Pending != 0 {
			t.Errorf("%+v, rejected %+v, refused %+v", r.Pods, r.RejectedByUs, r.RefusedByThem)
		}
		if r.Scheduler != "default-scheduler" || r.Latency.Ours.Count == 0 || r.Latency.Theirs.P50 <= 0 {
			t.Errorf("of %q: %+v", r.Scheduler, r.Latency)
		}
	}
	if same.Profile != "default-scheduler" || differing.Profile != "somebody-else" {
		t.Errorf("judged by %q and %q", same.Profile, differing.Profile)
	}
	if n := writes.Load(); n != 0 {
		t.Errorf("%d requests could have written", n)
	}
}

// quietly are options without serving and with metrics of its own, for several schedulers in one process.
func quietly(kubeconfig string, c config.Resolved) app.Options {
	o := app.DefaultOptions()
	o.Kubeconfig, o.Config = kubeconfig, c
	o.Serve.Secure = nil
	o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
	return o
}

// follower is a shadow with its report.
type follower struct {
	t      *testing.T
	shadow *app.Shadow
	file   string
}

func newFollower(ctx context.Context, t *testing.T, viewer *rest.Config, c config.Resolved, writes *atomic.Int64) *follower {
	t.Helper()
	o := quietly("", c)
	o.Rest = rest.CopyConfig(viewer)
	o.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next, writes} })
	f := &follower{t: t, file: filepath.Join(t.TempDir(), "report.json")}
	var err error
	if f.shadow, err = app.NewShadow(ctx, o, app.ShadowOptions{Scheduler: "default-scheduler", ReportFile: f.file}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *follower) run(ctx context.Context) {
	if _, err := f.shadow.Run(ctx); err != nil {
		f.t.Errorf("a shadow ended: %v", err)
	}
}

// await waits until ok reports true about the report.
func (f *follower) await(ctx context.Context, t *testing.T, ok func(record.ShadowReport) bool) {
	t.Helper()
	for {
		r, err := f.shadow.Report(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ok(r) {
			return
		}
		if !waitABit(ctx) {
			t.Fatalf("the report stays %+v", r)
		}
	}
}

// last is the report in the file after the end.
func (f *follower) last(t *testing.T) (r record.ShadowReport) {
	t.Helper()
	text, err := os.ReadFile(f.file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// countWrites counts requests that could write.
type countWrites struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c countWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.n.Add(1)
	}
	return c.next.RoundTrip(r)
}

// podsRun makes pods and waits until they run.
func podsRun(ctx context.Context, t *testing.T, admin kubernetes.Interface, name string, n int, cpu string) {
	t.Helper()
	for i := range n {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"load": name}}}
		pod.Spec.AutomountServiceAccountToken = new(bool)
		pod.Spec.Containers = []v1.Container{{Name: "c", Image: "img", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("100Mi")}}}}
		if _, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for running := 0; running < n; {
		list, err := admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "load=" + name})
		if err != nil {
			t.Fatal(err)
		}
		running = 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1.PodRunning {
				running++
			}
		}
		if !waitABit(ctx) {
			t.Fatal("the pods do not run")
		}
	}
}
