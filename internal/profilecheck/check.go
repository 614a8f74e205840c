// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pipeline"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Options say what to check.
type Options struct {
	Cases []Case
	Seeds []uint64
	// Kumiki records, Scheduler is the program that is recorded: kumiki or kube-scheduler.
	Kumiki, Scheduler string
	Seconds           int
	// LocalCluster is the directory of the program that starts the cluster; empty builds it.
	LocalCluster string
	// Dir keeps logs and profiles.
	Dir      string
	Progress io.Writer
}

// Result is one injection.
type Result struct {
	Injected bottleneck.Cause
	Seed     uint64
	Strength string
	Verdict  bottleneck.Verdict
	Err      error
}

// Named is the cause that was named; "not known" without one.
func (r *Result) Named() string {
	switch {
	case r.Err != nil:
		return "failed"
	case !r.Verdict.Known:
		return "not known"
	}
	return r.Verdict.Findings[0].Cause.String()
}

// nodes is the number of fake nodes.
const nodes = 20

// Run injects all causes, one after the other, on one cluster.
func Run(ctx context.Context, o Options) ([]Result, error) {
	cluster, err := testcluster.Launch(ctx, testcluster.Options{BinaryDir: o.LocalCluster, Nodes: nodes,
		PodStages: "none", NoKubeletAdmission: true, NoHeartbeats: true, Args: []string{
			"--apiserver-arg=--max-requests-inflight=150",
			"--apiserver-arg=--max-mutating-requests-inflight=50"}})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	var out []Result
	for _, c := range o.Cases {
		for _, seed := range o.Seeds {
			g := &ground{o: o, cluster: cluster, client: client, qps: 1000,
				namespace: fmt.Sprintf("%s-%d", c.Cause, seed)}
			r := g.check(ctx, c, seed)
			out = append(out, r)
			fmt.Fprintf(o.Progress, "%s seed %d (%s): %s\n", c.Cause, seed, r.Strength, r.describe())
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
		}
	}
	return out, nil
}

func (r *Result) describe() string {
	if r.Err != nil {
		return "failed: " + r.Err.Error()
	}
	text := r.Named()
	for _, f := range r.Verdict.Findings[:min(3, len(r.Verdict.Findings))] {
		text += fmt.Sprintf("; %s %.0f %%", f.Cause, 100*f.Share)
	}
	return fmt.Sprintf("%s; explained %.0f %% of %.1f pod-seconds, %.0f/s placed %s", text, 100*r.Verdict.Explained,
		r.Verdict.PodSeconds, r.Verdict.Placed, r.Verdict.NotKnown)
}

// ground is the environment of one injection.
type ground struct {
	o         Options
	cluster   *testcluster.Cluster
	client    *kubernetes.Clientset
	namespace string
	qps       int // of the scheduler's client
	// onReady is called when the scheduler is ready, before the recording.
	onReady  func()
	verdict  bottleneck.Verdict
	cleanups []func()
	loads    sync.WaitGroup
	stopLoad context.CancelFunc
}

func (g *ground) check(ctx context.Context, c Case, seed uint64) Result {
	r := Result{Injected: c.Cause, Seed: seed}
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}}
	if _, r.Err = g.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); r.Err != nil {
		return r
	}
	r.Strength, r.Err = c.run(ctx, g, rand.New(rand.NewPCG(seed, uint64(c.Cause))))
	if g.stopLoad != nil {
		g.stopLoad()
		g.loads.Wait()
	}
	for _, f := range g.cleanups {
		f()
	}
	none := int64(0)
	err := g.client.CoreV1().Pods(g.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none},
		metav1.ListOptions{})
	r.Err = errors.Join(r.Err, err)
	r.Verdict = g.verdict
	return r
}

// proxy starts a proxy between the scheduler and the API server.
func (g *ground) proxy() (*fault.Proxy, error) {
	p, err := fault.Start(g.o.Dir, g.cluster.SchedulerKubeconfig)
	if err == nil {
		g.cleanups = append(g.cleanups, func() { _ = p.Close() })
	}
	return p, err
}

func (g *ground) pod(change func(*v1.Pod)) *v1.Pod {
	no, none := false, int64(0)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Namespace: g.namespace},
		Spec: v1.PodSpec{AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &none,
			Containers: []v1.Container{{Name: "c", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}}}}}}
	if change != nil {
		change(p)
	}
	return p
}

// creators is how many pods are created at once.
const creators = 8

// backlog creates pods at full speed.
func (g *ground) backlog(ctx context.Context, n int, change func(*v1.Pod)) error {
	var all sync.WaitGroup
	errs := make([]error, creators)
	for i := range creators {
		all.Go(func() {
			for j := i; j < n && errs[i] == nil; j += creators {
				_, errs[i] = g.client.CoreV1().Pods(g.namespace).Create(ctx, g.pod(change), metav1.CreateOptions{})
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// load creates pods at a rate, from the moment at which the scheduler is ready.
func (g *ground) load(ctx context.Context, rate int, change func(*v1.Pod)) {
	ready := g.onReady
	g.onReady = func() {
		if ready != nil {
			ready()
		}
		ctx, cancel := context.WithCancel(ctx)
		g.stopLoad = cancel
		g.loads.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				g.loads.Go(func() {
					_, _ = g.client.CoreV1().Pods(g.namespace).Create(ctx, g.pod(change), metav1.CreateOptions{})
				})
			}
		})
	}
}

// record starts a scheduler, records it while it works, and analyses the profile.
func (g *ground) record(ctx context.Context, config string, env []string, kubeconfig string) error {
	if kubeconfig == "" {
		kubeconfig = g.cluster.SchedulerKubeconfig
	}
	dir := filepath.Join(g.o.Dir, g.namespace)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q, qps: %d, burst: %d}\n%s", kubeconfig,
		g.qps, g.qps, config)
	file := filepath.Join(dir, "scheduler.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	line := []string{g.o.Scheduler}
	if filepath.Base(g.o.Scheduler) == "kumiki" {
		line = append(line, "scheduler")
	}
	line = append(line, "--config="+file, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--authentication-kubeconfig="+g.cluster.SchedulerKubeconfig,
		"--authorization-kubeconfig="+g.cluster.SchedulerKubeconfig)
	log, err := os.Create(filepath.Join(dir, "scheduler.log"))
	if err != nil {
		return fmt.Errorf("creating the log: %w", err)
	}
	defer log.Close()
	scheduler := exec.CommandContext(ctx, line[0], line[1:]...)
	scheduler.Env, scheduler.Stderr, scheduler.Stdout = append(os.Environ(), env...), log, log
	scheduler.SysProcAttr = testcluster.ChildAttributes(syscall.SIGTERM)
	if err := scheduler.Start(); err != nil {
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	defer func() {
		_ = scheduler.Process.Kill()
		_ = scheduler.Wait()
	}()
	if err := waitReady(ctx, port); err != nil {
		return err
	}
	if g.onReady != nil {
		g.onReady()
	}
	profile := filepath.Join(dir, "why.kumiki")
	out, err := exec.CommandContext(ctx, g.o.Kumiki, "profile", "record", "--kubeconfig", g.cluster.Kubeconfig,
		"--scheduler-endpoint", fmt.Sprintf("127.0.0.1:%d", port), "--scheduler-insecure", "--seconds",
		fmt.Sprint(g.o.Seconds), "-f", profile).CombinedOutput()
	if err != nil {
		return fmt.Errorf("recording: %w: %s", err, strings.TrimSpace(string(out)))
	}
	b, err := bundle.Open(profile)
	if err != nil {
		return err
	}
	defer b.Close()
	g.verdict, err = pipeline.Why(b)
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// waitReady waits until the scheduler serves.
func waitReady(ctx context.Context, port int) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for range 600 {
		answer, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/readyz", port))
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the scheduler is not ready after a minute")
}
