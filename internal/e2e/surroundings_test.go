// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// TestBadSurroundings runs schedulers in surroundings that are wrong, all at the same time on one cluster: behind a mesh
// that ends idle connections, with clocks an hour off, two deployments with one lease, and with kubeconfigs that the
// API server refuses. Each part has nodes and a scheduler name of its own. The checker judges all binds at the end.
func TestBadSurroundings(t *testing.T) {
	// A connection that is dead without a sign is found after three seconds instead of 45.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: `
shapes:
- {name: mesh-closed, count: 1, capacity: {cpu: "8", memory: 8Gi}, labels: {part: mesh-closed}}
- {name: mesh-reset, count: 1, capacity: {cpu: "8", memory: 8Gi}, labels: {part: mesh-reset}}
- {name: mesh-forgotten, count: 1, capacity: {cpu: "8", memory: 8Gi}, labels: {part: mesh-forgotten}}
- {name: clock-ahead, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: clock-ahead}}
- {name: clock-behind, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: clock-behind}}
- {name: one, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: one}}
- {name: two, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: two}}
- {name: expiry, count: 1, capacity: {cpu: "4", memory: 8Gi}, labels: {part: expiry}}
`, NoHeartbeats: true})
	l := &line{client: adminClient(t, cluster)}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
	if _, err := l.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	history := checker.Follow(t.Context(), l.client)
	t.Run("all", func(t *testing.T) {
		for _, how := range []fault.Idle{fault.IdleClosed, fault.IdleReset, fault.IdleForgotten} {
			t.Run("mesh "+how.String(), func(t *testing.T) {
				t.Parallel()
				l.behindMesh(t, cluster.SchedulerKubeconfig, how)
			})
		}
		for name, ahead := range map[string]time.Duration{"clock-ahead": time.Hour, "clock-behind": -time.Hour} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l.apart(t, cluster.Kubeconfig, name, ahead)
			})
		}
		t.Run("one lease", func(t *testing.T) {
			t.Parallel()
			l.shareALease(t, cluster)
		})
		t.Run("refused", func(t *testing.T) {
			t.Parallel()
			refusedKubeconfigs(t, cluster)
		})
		t.Run("expires", func(t *testing.T) {
			t.Parallel()
			l.expiresMeanwhile(t, cluster.SchedulerKubeconfig)
		})
	})
	judge(t, l.client, history)
}

// of names the scheduler of a pod.
func of(scheduler string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.SchedulerName = scheduler } }

// optionsFor are the options of a scheduler in this process for one profile.
func optionsFor(cfg *rest.Config, name string) (app.Options, componentmetrics.KubeRegistry) {
	o := app.DefaultOptions()
	o.Config.Profiles[0].SchedulerName = name
	o.Config.LeaderElection.Enabled = false
	registry := componentmetrics.NewKubeRegistry()
	o.Rest, o.Serve.Secure, o.Metrics, o.AuditPeriod = cfg, nil, metrics.New(registry), 0
	return o, registry
}

// meshIdle is when a mesh ends a connection, before the client asks whether it is alive.
const meshIdle = 1200 * time.Millisecond

// behindMesh: watches are resumed after each silence, with what happened meanwhile, though they are never audited. Of
// changes it catches: a watch that is not opened again, and a mesh that does not strike.
func (l *line) behindMesh(t *testing.T, kubeconfig string, how fault.Idle) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := fault.StartMesh(strings.TrimPrefix(cfg.Host, "https://"), meshIdle, how)
	if err != nil {
		t.Fatal(err)
	}
	defer mesh.Close()
	cfg.Host = "https://" + mesh.Address()
	part := "mesh-" + how.String()
	o, _ := optionsFor(cfg, part)
	_, end := runInside(t.Context(), t, o)
	defer end()
	for round := range 2 {
		burst := fmt.Sprintf("%s-%d", part, round)
		l.pods(t, part, burst, "1", 4, of(part))
		l.placed(t, burst, 4)
		l.silence(t, mesh)
	}
	l.pods(t, part, part+"-over", "1", 1, of(part))
	l.refused(t, part+"-over-0")
	l.silence(t, mesh)
	gone := part + "-0-0"
	if err := l.client.CoreV1().Pods("default").Delete(t.Context(), gone, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	l.placed(t, part+"-over", 1)
}

// silence lets the mesh end connections.
func (l *line) silence(t *testing.T, mesh *fault.Mesh) {
	t.Helper()
	before := mesh.Ended()
	eventually(t, "the mesh ends connections", func() (bool, string) { return mesh.Ended() >= before+2, fmt.Sprint(mesh.Ended()) })
}

// apart: the API server's clock is an hour ahead of the scheduler's, or behind. A lease that a dead process held is
// taken over after its duration, pods are placed, evicted and tried again after a failure, and no metric and no answer
// has a negative duration or one of an hour. Core scenarios have what a victim that does not go does then
// (s41_api_clock_ahead).
func (l *line) apart(t *testing.T, kubeconfig, name string, ahead time.Duration) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: kubeconfig, ContentType: "application/json", AcceptContentTypes: "application/json"})
	if err != nil {
		t.Fatal(err)
	}
	rules := &fault.Rules{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fault.NewTransport(rules, fault.Skew{Ahead: ahead, Next: next})
	})
	o, registry := optionsFor(cfg, name)
	o.Config.LeaderElection = config.LeaderElection{Enabled: true, Namespace: "default", Name: name,
		LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 500 * time.Millisecond}
	dead, seconds := "dead", int32(4)
	if _, err := l.client.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &dead, LeaseDurationSeconds: &seconds,
			AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fails := binding(fault.ErrorBefore(http.StatusInternalServerError))
	fails.Name, fails.Times = name+"-low-0", 2
	failed := rules.On(fails)
	scheduler, end := runInside(t.Context(), t, o)
	defer end()
	l.pods(t, name, name+"-low", "1", 4, of(name))
	l.placed(t, name+"-low", 4)
	if failed.Hits() != 2 {
		t.Errorf("%d binds failed, want 2", failed.Hits())
	}
	l.pods(t, name, name+"-waits", "1", 1, of(name))
	l.refused(t, name+"-waits-0")
	l.pods(t, name, name+"-high", "1", 1, of(name), func(p *v1.Pod) { p.Spec.PriorityClassName = "high" })
	l.placed(t, name+"-high", 1)
	left := 0
	for _, p := range listPods(t, l.client) {
		if strings.HasPrefix(p.Name, name+"-low-") && p.DeletionTimestamp == nil {
			left++
		}
	}
	if left != 3 {
		t.Errorf("%d pods of low priority are left, want 3 of 4", left)
	}
	if err := scheduler.Ask(t.Context(), func(e *engine.Engine) {
		report, known := question.New(e.View()).ExplainPod("default", name+"-waits-0")
		if waits := time.Duration(report.At - report.Since); !known || waits < 0 || waits > 10*time.Minute {
			t.Errorf("the pod that waits is known: %v, and waits for %s", known, waits)
		}
	}); err != nil {
		t.Fatal(err)
	}
	noHour(t, registry)
}

// noHour checks that no duration in metrics is negative, or about as long as the clocks are apart.
func noHour(t *testing.T, registry componentmetrics.Gatherer) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			h := m.GetHistogram()
			if h.GetSampleSum() < 0 || m.GetCounter().GetValue() < 0 || m.GetGauge().GetValue() < 0 {
				t.Errorf("%s is negative: %v", family.GetName(), m)
			}
			if strings.HasSuffix(family.GetName(), "_seconds") && h.GetSampleSum() > 3000 {
				t.Errorf("%s has an hour in it: %v", family.GetName(), m)
			}
			seen += int(h.GetSampleCount())
		}
	}
	if seen == 0 {
		t.Error("no duration was measured")
	}
}

// shareALease: two deployments with different profiles have one lease. One of them schedules; the other says whose pods
// wait and why, and schedules when the first has ended. kumiki why finds the one that leads, whichever pod is asked for.
func (l *line) shareALease(t *testing.T, cluster *testcluster.Cluster) {
	first := startProcess(t, cluster.SchedulerKubeconfig, profileEnv+"=one")
	leads := func(p *process) func() (bool, string) {
		return func() (bool, string) { return strings.Contains(p.log.String(), `what="became leader"`), "" }
	}
	eventually(t, "the first leads", leads(first))
	second := startProcess(t, cluster.SchedulerKubeconfig, profileEnv+"=two")
	l.pods(t, "one", "one", "1", 1, of("one"))
	l.pods(t, "two", "two", "1", 1, of("two"))
	l.placed(t, "one", 1)
	eventually(t, "the second says that it waits", func() (bool, string) {
		said := second.log.String()
		return strings.Contains(said, "A kumiki with other profiles holds the lease") && strings.Contains(said, `schedulersOfHolder="one"`) &&
			strings.Contains(said, `schedulers="two"`) && strings.Contains(said, `lease="kube-system/kube-scheduler"`), said
	})
	if yes, _ := leads(second)(); yes {
		t.Error("both lead")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	found, err := ask.Find(t.Context(), cfg, ask.Default(), "two")
	if err != nil || len(found) != 1 || found[0].Holder != holder(t, l.client) || strings.Join(found[0].Names, ",") != "one" {
		t.Errorf("kumiki why finds %v, %v", found, err)
	}
	first.stop()
	eventually(t, "the second leads", leads(second))
	l.placed(t, "two", 1)
}

// expiresMeanwhile: a token expires while the scheduler runs, with its watches; later it has a new one. Pods are placed
// again without a restart.
func (l *line) expiresMeanwhile(t *testing.T, kubeconfig string) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	rules := &fault.Rules{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return fault.NewTransport(rules, next) })
	o, _ := optionsFor(cfg, "expiry")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, end := runInside(ctx, t, o)
	defer end()
	l.pods(t, "expiry", "before-expiry", "1", 1, of("expiry"))
	l.placed(t, "before-expiry", 1)
	expired := rules.On(fault.Request{Fate: fault.ErrorBefore(http.StatusUnauthorized)})
	rules.EndWatches("*", fault.Closed)
	l.pods(t, "expiry", "after-expiry", "1", 2, of("expiry"))
	if err := expired.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	expired.Remove()
	l.placed(t, "after-expiry", 2)
}
