// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

const (
	namespace = "bench"
	// creators is how many pods are being created at once (upstream: scheduler_perf creates with 30).
	creators = 30
	// stuckAfter is how long nothing may be bound before a run is given up.
	stuckAfter = 60 * time.Second
	// settledAfter is how long the number of events must stand still, where a scheduler does not write one for each pod.
	settledAfter = 3 * time.Second
)

// nodeSpec is scheduler_perf's node: 4 cores, 32Gi, 110 pods.
const nodeSpec = `shapes:
- name: node
  count: %d
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
`

// pod is scheduler_perf's pod: one container that asks for 100m and 500Mi.
func pod(name string) *corev1.Pod {
	noToken := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &noToken,
			Containers: []corev1.Container{{
				Name: "pause", Image: "registry.k8s.io/pause:3.10.1",
				Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
				}},
			}},
		},
	}
}

// Run is what one run of one scheduler gave.
type Run struct {
	Scheduler string `json:"scheduler"`
	Round     int    `json:"round"`
	// CreateSeconds is from the first create to the answer to the last, BindSeconds from the first create until the
	// watch showed the last pod bound, SettleSeconds until the last event could be read as well.
	CreateSeconds float64 `json:"createSeconds"`
	BindSeconds   float64 `json:"bindSeconds"`
	SettleSeconds float64 `json:"settleSeconds"`
	// PodsPerSecond is pods / BindSeconds.
	PodsPerSecond float64 `json:"podsPerSecond"`
	// P50, P99 and Max of the seconds from a pod's create call to its bind.
	P50 float64 `json:"p50Seconds"`
	P99 float64 `json:"p99Seconds"`
	Max float64 `json:"maxSeconds"`
	// Events that could be read at the end, one per pod if none was dropped.
	Events int64 `json:"events"`
	// CPU seconds, from the first create until settled.
	SchedulerCPU float64 `json:"schedulerCPUSeconds"`
	ServersCPU   float64 `json:"serversCPUSeconds"`
	BenchCPU     float64 `json:"benchCPUSeconds"`
	// PeakRSS and FinalRSS of the scheduler in bytes.
	PeakRSS  int64 `json:"peakRSSBytes"`
	FinalRSS int64 `json:"finalRSSBytes"`
	// Shares of the machine from the first create until settled: what did nothing, and what was used by others than
	// scheduler, API server, etcd and this program.
	Idle   float64 `json:"idleShare"`
	Others float64 `json:"othersShare"`
	// Calls are the writes that the API server answered, those of this program included: one create for each pod.
	Calls Calls `json:"calls"`
	// Oversold must be empty.
	Oversold []string `json:"oversold,omitempty"`
}

// measure makes one run on a cluster of its own.
func measure(ctx context.Context, o Options, name string, round int) (_ Run, err error) {
	progress := func(format string, args ...any) {
		fmt.Fprintf(o.Progress, "%s, round %d: "+format+"\n", append([]any{name, round}, args...)...)
	}
	progress("starting a cluster of %d nodes", o.Nodes)
	c, err := o.launch(ctx, testcluster.Options{
		NodeSpec: fmt.Sprintf(nodeSpec, o.Nodes), PodStages: "none", NoKubeletAdmission: true, NoHeartbeats: true,
	})
	if err != nil {
		return Run{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := newBurst(o, c)
	if err != nil {
		return Run{}, err
	}
	defer b.clients.Close()
	if err := b.prepare(ctx); err != nil {
		return Run{}, err
	}
	dir, err := os.MkdirTemp("", "kumiki-bench-")
	if err != nil {
		return Run{}, err
	}
	defer os.RemoveAll(dir)
	s, err := startScheduler(ctx, o, name, c.SchedulerKubeconfig, dir)
	if err != nil {
		return Run{}, err
	}
	defer s.close()
	if err := s.connect(c.Kubeconfig); err != nil {
		return Run{}, err
	}
	if err := s.waitReady(ctx); err != nil {
		return Run{}, err
	}
	progress("creating %d pods", o.Pods)
	r, err := b.run(ctx, s)
	if err != nil {
		return Run{}, fmt.Errorf("%s, round %d: %w\n%s", name, round, err, s.lastWords())
	}
	r.Scheduler, r.Round = name, round
	progress("%.0f pods/s, p99 %.2f s, %.1f CPU seconds, %.0f MiB at most; machine idle %.0f%%, others %.0f%%",
		r.PodsPerSecond, r.P99, r.SchedulerCPU, float64(r.PeakRSS)/(1<<20), 100*r.Idle, 100*r.Others)
	return r, nil
}

// burst creates pods on a cluster and watches what becomes of them.
type burst struct {
	o       Options
	cluster *testcluster.Cluster
	clients *kube.Clients
	client  *kubernetes.Clientset // of creates and questions
	servers []int                 // processes of API server and etcd
	names   []string
	watch   *stopwatch
}

func newBurst(o Options, c *testcluster.Cluster) (*burst, error) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: c.Kubeconfig, QPS: -1})
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(cfg)
	if err != nil {
		return nil, err
	}
	b := &burst{o: o, cluster: c, clients: clients, client: clients.Binds}
	for i := range o.Pods {
		b.names = append(b.names, fmt.Sprintf("pod-%06d", i))
	}
	b.watch = newStopwatch(b.names)
	return b, nil
}

// prepare makes the namespace and then ends all that is not API server and etcd, so that nothing else works while the
// scheduler is measured.
func (b *burst) prepare(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	for {
		_, err := b.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("wait for the service account: %w", err)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	for _, role := range []testcluster.Role{testcluster.Controllers, testcluster.Nodes} {
		if err := b.cluster.Kill(role); err != nil {
			return err
		}
	}
	children, err := b.cluster.Status()
	if err != nil {
		return err
	}
	for _, child := range children {
		if child.Role == testcluster.APIServer || child.Role == testcluster.Etcd {
			b.servers = append(b.servers, child.PID)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run creates the pods, waits until all are bound and told of, and reads what it cost.
func (b *burst) run(ctx context.Context, s *scheduler) (Run, error) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	watching := make(chan struct{})
	helpers.Go(func() { b.watchBound(ctx, func() { close(watching) }) })
	select {
	case <-watching:
	case <-ctx.Done():
		return Run{}, fmt.Errorf("watch pods: %w", ctx.Err())
	}
	profiled := make(chan error, 1)
	if b.o.ProfileDir != "" {
		helpers.Go(func() { profiled <- s.profile(ctx, b.o.ProfileDir, b.o.ProfileSeconds) })
	} else {
		profiled <- nil
	}

	asked, err := callsNow(ctx, b.client)
	if err != nil {
		return Run{}, err
	}
	before, err := usageNow(s.cmd.Process.Pid, b.servers)
	if err != nil {
		return Run{}, err
	}
	created, err := b.create(ctx)
	if err != nil {
		return Run{}, err
	}
	if err := b.waitBound(ctx, s); err != nil {
		return Run{}, err
	}
	events, settled, err := b.waitSettled(ctx)
	if err != nil {
		return Run{}, err
	}
	after, err := usageNow(s.cmd.Process.Pid, b.servers)
	if err != nil {
		return Run{}, err
	}

	_, last := b.watch.unbound()
	first := b.watch.first()
	r := Run{
		CreateSeconds: created.Sub(first).Seconds(), BindSeconds: last.Sub(first).Seconds(), SettleSeconds: settled.Sub(first).Seconds(),
		Events: events,
	}
	r.PodsPerSecond = float64(b.o.Pods) / r.BindSeconds
	took := b.watch.latencies()
	slices.Sort(took)
	r.P50, r.P99, r.Max = quantile(took, 0.50), quantile(took, 0.99), quantile(took, 1)
	used := after.since(before)
	r.SchedulerCPU, r.ServersCPU, r.BenchCPU = used.scheduler, used.servers, used.self
	r.Idle, r.Others = used.idleShare(), used.othersShare()
	answered, err := callsNow(ctx, b.client)
	if err != nil {
		return Run{}, err
	}
	r.Calls = answered.since(asked)
	if r.FinalRSS, r.PeakRSS, err = memoryOf(s.cmd.Process.Pid); err != nil {
		return Run{}, err
	}
	if err := b.check(ctx, &r); err != nil {
		return Run{}, err
	}
	if err := <-profiled; err != nil {
		return Run{}, fmt.Errorf("profile: %w", err)
	}
	return r, nil
}

// watchBound notes pods that get a node, until ctx ends.
func (b *burst) watchBound(ctx context.Context, listed func()) {
	const assigned = "spec.nodeName!="
	pods := b.clients.Watches.CoreV1().Pods(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = assigned
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = assigned
			return pods.Watch(ctx, o)
		},
	}
	see := &seen{pod: func(p *corev1.Pod) { b.watch.sawBound(p.Name) }, listed: listed, known: map[string]bool{}}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, b.clients.Watches), &corev1.Pod{}, see,
		cache.ReflectorOptions{Name: "bound pods"}).RunWithContext(ctx)
}

// create creates all pods as fast as the API server takes them and returns when the last answer came.
func (b *burst) create(ctx context.Context) (time.Time, error) {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, creators)
	for w := range creators {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(b.names) {
					return
				}
				p := pod(b.names[i])
				b.watch.ask(i)
				if _, err := b.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
					failed[w] = fmt.Errorf("create pod %s: %w", p.Name, err)
					return
				}
			}
		})
	}
	workers.Wait()
	return time.Now(), errors.Join(failed...)
}

// waitBound returns when all pods are bound.
func (b *burst) waitBound(ctx context.Context, s *scheduler) error {
	began := time.Now()
	for {
		select {
		case <-b.watch.done:
			return nil
		case <-s.ended:
			return fmt.Errorf("the scheduler ended: %v", s.exit)
		case <-ctx.Done():
			left, _ := b.watch.unbound()
			return fmt.Errorf("%d of %d pods are not bound: %w", left, len(b.names), ctx.Err())
		case <-time.After(time.Second):
		}
		left, last := b.watch.unbound()
		if last.Before(began) {
			last = began
		}
		if left > 0 && time.Since(last) > stuckAfter {
			return fmt.Errorf("%d of %d pods are not bound, and none was in %s", left, len(b.names), stuckAfter)
		}
	}
}

// waitSettled returns when there is an event for each pod, or when their number has stood still, and when that was.
func (b *burst) waitSettled(ctx context.Context) (events int64, at time.Time, err error) {
	events = -1
	for {
		n, err := b.countEvents(ctx)
		if err != nil {
			return 0, at, err
		}
		if n != events {
			events, at = n, time.Now()
		}
		if n >= int64(len(b.names)) || time.Since(at) > settledAfter {
			return events, at, nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, at, err
		}
	}
}

// countEvents asks for one event and how many more there are, which costs the API server little.
func (b *burst) countEvents(ctx context.Context) (int64, error) {
	list, err := b.client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("count events: %w", err)
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	return n, nil
}

// check reads the API server: every pod bound, no node oversold.
func (b *burst) check(ctx context.Context, r *Run) error {
	nodes, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	pods, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var unbound []string
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			unbound = append(unbound, pods.Items[i].Name)
		}
	}
	if len(unbound) > 0 || len(pods.Items) != len(b.names) {
		return fmt.Errorf("of %d pods that were created there are %d, and these have no node: %s",
			len(b.names), len(pods.Items), strings.Join(unbound[:min(len(unbound), 10)], ", "))
	}
	r.Oversold = oversold(nodes.Items, pods.Items)
	return nil
}
