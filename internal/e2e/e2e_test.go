// SPDX-License-Identifier: Apache-2.0

// Package e2e owns the scenarios that need a real API server: pods are placed, processes are killed in the middle of
// a burst, and a checker that shares no code with the scheduler checks the result.
package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// schedulerEnv makes this test binary a scheduler with the kubeconfig that it names: a process that can be killed.
const schedulerEnv = "KUMIKI_E2E_SCHEDULER"

// coordinatedEnv makes that scheduler let the API server choose who leads.
const coordinatedEnv = "KUMIKI_E2E_COORDINATED"

// profileEnv is the scheduler name of that scheduler's profile.
const profileEnv = "KUMIKI_E2E_PROFILE"

func TestMain(m *testing.M) {
	kubeconfig := os.Getenv(schedulerEnv)
	if kubeconfig == "" {
		os.Exit(m.Run())
	}
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	flags.Set("v", "2")
	// A test that was killed takes its schedulers with it.
	go func(parent int) {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		os.Exit(1)
	}(os.Getppid())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := options(kubeconfig)
	o.CoordinatedElection = os.Getenv(coordinatedEnv) != ""
	if name := os.Getenv(profileEnv); name != "" {
		o.Config.Profiles[0].SchedulerName = name
	}
	if err := app.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are the defaults on a free port, with leases that a test can wait for.
func options(kubeconfig string) app.Options {
	o := app.DefaultOptions()
	o.Kubeconfig = kubeconfig
	o.Serve.Secure.BindAddress = []byte{127, 0, 0, 1}
	listener, err := freePort()
	if err != nil {
		panic(err)
	}
	o.Serve.Secure.Listener = listener
	o.Config.Kumiki.Gangs.Annotation = config.On // no pod has it that is not to be in a gang
	o.Config.LeaderElection.LeaseDuration = 4 * time.Second
	o.Config.LeaderElection.RenewDeadline = 3 * time.Second
	o.Config.LeaderElection.RetryPeriod = 500 * time.Millisecond
	return o
}

// process is a scheduler in a process of its own, which is started again when it ends by itself, as a kubelet would.
type process struct {
	t          *testing.T
	kubeconfig string
	env        []string // besides that of this process
	mu         sync.Mutex
	cmd        *exec.Cmd
	stopping   bool
	starts     int
	log        lines
	ended      chan struct{}
}

// runInside runs a scheduler in this process until end is called, which waits for it and demands that it ended
// without an error.
func runInside(ctx context.Context, t *testing.T, o app.Options) (s *app.Scheduler, end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	s, err := app.NewScheduler(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the scheduler %v ended: %v", o.Config.Profiles[0].SchedulerName, err)
		}
	}
}

// lines is what a process writes while others read it.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write keeps what a process wrote.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(text)
}

// String is all that was written.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func startProcess(t *testing.T, kubeconfig string, env ...string) *process {
	p := &process{t: t, kubeconfig: kubeconfig, env: env, ended: make(chan struct{})}
	p.start()
	go func() {
		defer close(p.ended)
		for {
			p.mu.Lock()
			cmd := p.cmd
			p.mu.Unlock()
			cmd.Wait()
			p.mu.Lock()
			if p.stopping {
				p.mu.Unlock()
				return
			}
			p.mu.Unlock()
			p.start()
		}
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			lines := strings.Split(p.log.String(), "\n")
			t.Logf("the scheduler's last words:\n%s", strings.Join(lines[max(0, len(lines)-80):], "\n"))
		}
	})
	return p
}

func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(append(os.Environ(), schedulerEnv+"="+p.kubeconfig), p.env...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		p.t.Errorf("starting the scheduler: %v", err)
	}
	p.starts++
}

// started counts starts.
func (p *process) started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// kill ends the process as a crash does; it is started again.
func (p *process) kill() { p.signal(syscall.SIGKILL) }

// terminate asks the process to hand over; it is started again.
func (p *process) terminate() { p.signal(syscall.SIGTERM) }

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Logf("signal %s to the scheduler: %v", s, err)
	}
}

func (p *process) stop() {
	p.mu.Lock()
	p.stopping = true
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Process.Signal(syscall.SIGCONT) // in case it was stopped
	p.mu.Unlock()
	<-p.ended
}

func adminClient(t *testing.T, c *testcluster.Cluster) *kubernetes.Clientset {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pod(name, cpu string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"scenario": "e2e"}},
		Spec: v1.PodSpec{
			AutomountServiceAccountToken: new(bool),
			Containers: []v1.Container{{Name: "c", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
			}}},
		},
	}
}

// create makes pods, again and again while the API server is away.
func create(t *testing.T, client *kubernetes.Clientset, pods ...*v1.Pod) {
	t.Helper()
	for _, p := range pods {
		eventually(t, "pod "+p.Name+" is created", func() (bool, string) {
			_, err := client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
			if err != nil && !strings.Contains(err.Error(), "already exists") {
				return false, err.Error()
			}
			return true, ""
		})
	}
}

// eventually asks until the answer is yes. The test's deadline is the only limit.
func eventually(t *testing.T, what string, is func() (bool, string)) {
	t.Helper()
	deadline, limited := t.Deadline()
	for {
		yes, why := is()
		if yes {
			return
		}
		if limited && time.Until(deadline) < 20*time.Second {
			t.Fatalf("waited until the end for: %s: %s", what, why)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func listPods(t *testing.T, client *kubernetes.Clientset) []v1.Pod {
	t.Helper()
	var items []v1.Pod
	eventually(t, "pods can be listed", func() (bool, string) {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		items = list.Items
		return true, ""
	})
	return items
}

// allBound waits until so many pods exist and none of them is without a node, leaving out the named ones.
func allBound(t *testing.T, client *kubernetes.Clientset, count int, except ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods are bound", count), func() (bool, string) {
		bound := 0
		var waiting []string
		for _, p := range listPods(t, client) {
			if p.Spec.NodeName != "" {
				bound++
			} else {
				waiting = append(waiting, p.Name)
			}
		}
		return bound == count && len(waiting) == len(except), fmt.Sprintf("%d bound, waiting: %.200v", bound, waiting)
	})
}

// judge is the verdict of the checker on the cluster as it stands.
func judge(t *testing.T, client *kubernetes.Clientset, h *checker.History) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range append(checker.Sums(nodes.Items, listPods(t, client)), h.Stop()...) {
		t.Error(fault)
	}
}
