// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pipeline"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/profilecheck/inject"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// site is the cluster on which all injections take place.
type site struct {
	o       Options
	cluster *testcluster.Cluster
	client  *kubernetes.Clientset
	etcd    *slowSocket
}

// setup is how the scheduler is started.
type setup struct {
	// config is the end of the configuration file.
	config string
	env    []string
	// wrapper is a command that starts the command behind it.
	wrapper []string
	// kubeconfig is that of the scheduler; empty for the usual one.
	kubeconfig string
	qps        int
	// injected: the program is that with causes in it, and fault is what package inject reads.
	injected bool
	fault    string
	// lease is the lease that the scheduler needs; empty for none.
	lease string
}

// ground is the environment of one injection.
type ground struct {
	*site
	scheduler Scheduler
	namespace string
	removed   bool // the cause is not there
	noop      bool // the no-op binder is started instead of the scheduler
	setup     setup
	// churn: pods of the load are deleted again.
	churn    bool
	ready    []func(context.Context) error
	cleanups []func()
	loads    sync.WaitGroup
	stopLoad context.CancelFunc
	err      error
}

// usualQPS is the limit of the scheduler's client where it is not the cause.
const usualQPS = 1000

func (s *site) ground(t turn, removed bool) *ground {
	return &ground{site: s, scheduler: t.scheduler, namespace: directory(t.scheduler.Name, t.c.Name, t.seed, removed),
		removed: removed, setup: setup{qps: usualQPS}}
}

// directory is the name of the directory below Options.Dir that keeps the profile of an injection. Its
// namespace has the same name.
func directory(scheduler, name string, seed uint64, removed bool) string {
	dir := fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(name, "+", "-"), scheduler, seed)
	if removed {
		dir += "-removed"
	}
	return dir
}

func (g *ground) begin(ctx context.Context) error {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}}
	if _, err := g.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	// Pods are refused until the controller has created their service account.
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			_, err := g.client.CoreV1().ServiceAccounts(g.namespace).Get(ctx, "default", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
	if err != nil {
		return fmt.Errorf("waiting for the service account of namespace %s: %w", g.namespace, err)
	}
	return nil
}

// end ends what runs for the injection, and deletes its pods.
func (g *ground) end(ctx context.Context) {
	if g.stopLoad != nil {
		g.stopLoad()
	}
	g.loads.Wait()
	for _, f := range slices.Backward(g.cleanups) {
		f()
	}
	none := int64(0)
	err := g.client.CoreV1().Pods(g.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none},
		metav1.ListOptions{})
	if err != nil {
		g.err = errors.Join(g.err, fmt.Errorf("deleting the pods: %w", err))
	}
}

// cleanup is called at the end, the last one first.
func (g *ground) cleanup(f func()) { g.cleanups = append(g.cleanups, f) }

// whenReady is called when the scheduler is ready, before the recording. The context ends with the load.
func (g *ground) whenReady(f func(context.Context) error) { g.ready = append(g.ready, f) }

// proxy starts a proxy between the scheduler and the API server.
func (g *ground) proxy() (*fault.Proxy, error) {
	p, err := fault.Start(g.o.Dir, g.cluster.SchedulerKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	g.cleanup(func() { _ = p.Close() })
	g.setup.kubeconfig = p.Kubeconfig()
	return p, nil
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

func (g *ground) create(ctx context.Context, change func(*v1.Pod)) (string, error) {
	p, err := g.client.CoreV1().Pods(g.namespace).Create(ctx, g.pod(change), metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a pod: %w", err)
	}
	return p.Name, nil
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
				_, errs[i] = g.create(ctx, change)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// load creates pods at a rate, from the moment at which the scheduler is ready.
func (g *ground) load(rate int, change func(*v1.Pod)) {
	g.whenReady(func(ctx context.Context) error {
		g.loads.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				g.loads.Go(func() { g.one(ctx, change) })
			}
		})
		return nil
	})
}

// churned is how long a pod of a load with churn exists.
const churned = time.Second

// one creates a pod. An error shows in the result: the pod is missing.
func (g *ground) one(ctx context.Context, change func(*v1.Pod)) {
	name, err := g.create(ctx, change)
	if err != nil || !g.churn {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(churned):
		_ = g.client.CoreV1().Pods(g.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// configuration writes the configuration file of the scheduler.
func (g *ground) configuration(dir string) (string, error) {
	kubeconfig := g.setup.kubeconfig
	if kubeconfig == "" {
		kubeconfig = g.cluster.SchedulerKubeconfig
	}
	election := "{leaderElect: false}"
	if g.setup.lease != "" {
		election = fmt.Sprintf("{leaderElect: true, resourceNamespace: kube-system, resourceName: %s}", g.setup.lease)
	}
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"leaderElection: %s\nclientConnection: {kubeconfig: %q, qps: %d, burst: %d}\n%s", election, kubeconfig,
		g.setup.qps, g.setup.qps, g.setup.config)
	file := filepath.Join(dir, "scheduler.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration: %w", err)
	}
	return file, nil
}

// start starts the scheduler. The caller calls stop.
func (g *ground) start(ctx context.Context, dir string, port int) (stop func(), err error) {
	if g.noop {
		return g.spawn(ctx, dir, []string{g.o.Kumiki, "bench", "null", "--kubeconfig", g.cluster.SchedulerKubeconfig,
			"--qps", fmt.Sprint(g.setup.qps), "--burst", fmt.Sprint(g.setup.qps)})
	}
	file, err := g.configuration(dir)
	if err != nil {
		return nil, err
	}
	program := g.scheduler.Program
	if g.setup.injected {
		program = g.o.Injected
	}
	line := append(slices.Clone(g.setup.wrapper), program)
	if g.scheduler.Name == kumikiName {
		line = append(line, "scheduler")
	}
	line = append(line, "--config="+file, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--authentication-kubeconfig="+g.cluster.SchedulerKubeconfig,
		"--authorization-kubeconfig="+g.cluster.SchedulerKubeconfig)
	return g.spawn(ctx, dir, line)
}

// spawn starts a program with its log in a directory. The caller calls stop.
func (g *ground) spawn(ctx context.Context, dir string, line []string) (stop func(), err error) {
	log, err := os.Create(filepath.Join(dir, "scheduler.log"))
	if err != nil {
		return nil, fmt.Errorf("creating the log: %w", err)
	}
	scheduler := exec.CommandContext(ctx, line[0], line[1:]...)
	scheduler.Env = append(os.Environ(), g.setup.env...)
	if g.setup.fault != "" {
		scheduler.Env = append(scheduler.Env, inject.Env+"="+g.setup.fault)
	}
	scheduler.Stderr, scheduler.Stdout = log, log
	scheduler.SysProcAttr = testcluster.ChildAttributes(syscall.SIGTERM)
	if err := testcluster.Spawn(scheduler); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the scheduler: %w", err), log.Close())
	}
	return func() {
		_ = scheduler.Process.Kill()
		_ = scheduler.Wait()
		log.Close()
	}, nil
}

// launch starts the scheduler, and the load once it is ready. The caller calls stop.
func (g *ground) launch(ctx context.Context, dir string) (port int, stop func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, nil, fmt.Errorf("creating a directory: %w", err)
	}
	if port, err = freePort(); err != nil {
		return 0, nil, err
	}
	if stop, err = g.start(ctx, dir, port); err != nil || g.noop {
		return port, stop, err
	}
	err = g.waitReady(ctx, port)
	loading, cancel := context.WithCancel(ctx)
	g.stopLoad = cancel
	for _, f := range g.ready {
		if err == nil {
			err = f(loading)
		}
	}
	if err != nil {
		stop()
		return 0, nil, err
	}
	return port, stop, nil
}

// record starts a scheduler, records it while it works, and analyses the profile.
func (g *ground) record(ctx context.Context) (v bottleneck.Verdict, err error) {
	dir := filepath.Join(g.o.Dir, g.namespace)
	port, stop, err := g.launch(ctx, dir)
	if err != nil {
		return v, err
	}
	defer stop()
	profile := filepath.Join(dir, profileName)
	out, err := exec.CommandContext(ctx, g.o.Kumiki, "profile", "record", "--kubeconfig", g.cluster.Kubeconfig,
		"--scheduler-endpoint", fmt.Sprintf("127.0.0.1:%d", port), "--scheduler-insecure", "--seconds",
		fmt.Sprint(g.o.Seconds), "-f", profile).CombinedOutput()
	if err != nil {
		return v, fmt.Errorf("recording: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return verdictOf(profile)
}

// profileName is the name of a recorded profile in its directory.
const profileName = "why.kumiki"

// verdictOf analyses a profile.
func verdictOf(profile string) (v bottleneck.Verdict, err error) {
	b, err := bundle.Open(profile)
	if err != nil {
		return v, err
	}
	defer b.Close()
	return pipeline.Why(b)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// waitReady waits until the scheduler serves, and lets the recorder read profiles: for some 100 ms after its start it
// does not know yet who signs client certificates, and denies them.
func (g *ground) waitReady(ctx context.Context, port int) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", g.cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	cfg.Insecure, cfg.CAFile, cfg.CAData = true, "", nil
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return fmt.Errorf("preparing requests to the scheduler: %w", err)
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/debug/pprof/threadcreate"} {
		if err := waitFor(ctx, client, fmt.Sprintf("https://127.0.0.1:%d%s", port, path)); err != nil {
			return err
		}
	}
	return nil
}

// waitFor waits until an address is served.
func waitFor(ctx context.Context, client *http.Client, address string) error {
	for range 600 {
		answer, err := client.Get(address)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		client.CloseIdleConnections() // who asks is decided when a connection begins
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("the scheduler does not serve %s after a minute", address)
}
