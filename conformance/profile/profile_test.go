// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
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
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app/command"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

const (
	nodes = 500
	pods  = 400
	// seconds is the duration of the recording. The pods are created when the trace has begun, and must be bound before
	// it ends.
	seconds = 45
	// most is the largest accepted ratio of the cycles to the scheduling algorithm in them. It was 1.03 to 1.05 in five
	// runs on a busy machine with two processors.
	most = 1.15
	// patience ends a wait that hangs.
	patience = 2 * time.Minute
)

// TestCyclesOfKubeSchedulerFromOutside: all pods fit, so there are as many cycles as pods. Each cycle contains what
// kube-scheduler measures as its scheduling algorithm, so their sum is not smaller, and little is outside of it.
func TestCyclesOfKubeSchedulerFromOutside(t *testing.T) {
	binary := buildKubeScheduler(t)
	cluster := testcluster.Start(t, testcluster.Options{Nodes: nodes, NoHeartbeats: true})
	address, certificate := startKubeScheduler(t, binary, cluster)
	file := filepath.Join(t.TempDir(), "upstream.kumiki")
	begun := &marker{text: "the trace has begun", seen: make(chan struct{})}
	recorded := make(chan int, 1)
	var out bytes.Buffer
	go func() {
		recorded <- command.Run(context.WithoutCancel(t.Context()), []string{"kumiki", "profile", "record", "-f", file,
			fmt.Sprintf("--seconds=%d", seconds), "--kubeconfig", cluster.Kubeconfig, "--scheduler-endpoint", address,
			"--scheduler-ca", certificate}, strings.NewReader(""), &out, begun)
	}()
	select {
	case <-begun.seen:
	case code := <-recorded:
		t.Fatalf("kumiki profile record ended with code %d: %s", code, begun)
	case <-time.After(patience):
		t.Fatalf("the trace did not begin: %s", begun)
	}
	bindPods(t, cluster.Kubeconfig)
	if code := <-recorded; code != 0 || out.String() != file+"\n" {
		t.Fatalf("kumiki profile record: code %d, output %q: %s", code, out.String(), begun)
	}
	b, err := bundle.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := apm.Analyze(b)
	if err != nil {
		t.Fatal(err)
	}
	judgeCycles(t, p)
	judgeLanes(t, p)
}

// judgeCycles compares cycles with pods and with kube-scheduler's own metric.
func judgeCycles(t *testing.T, p *apm.Profile) {
	t.Helper()
	c := p.Cycles
	if c == nil || c.Algorithm == nil || c.AlgorithmCount == nil {
		t.Fatalf("cycles %+v, not observed: %v", c, p.Unknown)
	}
	ratio := float64(c.Total) / float64(*c.Algorithm)
	t.Logf("%d cycles of %v, median %v, p99 %v; its own measurement %v of %d: ratio %.3f", c.Placed, c.Total, c.Median,
		c.P99, *c.Algorithm, *c.AlgorithmCount, ratio)
	if c.Placed != pods || c.Measured != pods || *c.AlgorithmCount != pods {
		t.Errorf("%d cycles, %d measured, %d by its own count, for %d pods", c.Placed, c.Measured, *c.AlgorithmCount,
			pods)
	}
	if ratio < 1 || ratio > most {
		t.Errorf("the cycles take %v, the scheduling algorithm in them %v: the ratio is %.3f, want 1 to %v", c.Total,
			*c.Algorithm, ratio, most)
	}
}

// judgeLanes checks that the parts of kube-scheduler are recognised, and that the lanes add up to the process.
func judgeLanes(t *testing.T, p *apm.Profile) {
	t.Helper()
	if p.Program != "kube-scheduler" || p.CPU.Process == nil || p.CPU.Unattributed == nil {
		t.Fatalf("program %q, CPU %+v, not observed: %v", p.Program, p.CPU, p.Unknown)
	}
	sum := *p.CPU.Unattributed
	for _, l := range p.Lanes {
		sum += *l.CPU
		t.Logf("%-15s CPU %10v, running %10v, %5d started, %2d at once, %.1f on average, %4d samples", l.Name, *l.CPU,
			l.Running, *l.Calls, l.AtOnce, l.Parallelism, l.Samples)
	}
	t.Logf("process %v, unattributed %v, factor %.3f", *p.CPU.Process, *p.CPU.Unattributed, *p.CPU.Factor)
	if sum != *p.CPU.Process {
		t.Errorf("lanes and residual are %v, the process used %v", sum, *p.CPU.Process)
	}
	lane := func(name apm.Lane) apm.Row {
		i := slices.IndexFunc(p.Lanes, func(r apm.Row) bool { return r.Lane == name })
		if i < 0 {
			t.Fatalf("there is no lane %q", name)
		}
		return p.Lanes[i]
	}
	if l := lane(apm.Loop); !l.InLoop || l.AtOnce != 1 || l.Running == 0 {
		t.Errorf("the loop is %+v", l)
	}
	if l := lane(apm.Binding); l.InLoop || *l.Calls < pods {
		t.Errorf("binding is %+v, with %d goroutines for %d pods", l, *l.Calls, pods)
	}
	for _, name := range []apm.Lane{apm.FilterWorkers, apm.ScoreWorkers} {
		if l := lane(name); !l.InLoop || *l.Calls < pods || l.AtOnce > p.Processors {
			t.Errorf("%s are %+v, %d goroutines on %d processors", name, l, *l.Calls, p.Processors)
		}
	}
	for _, name := range []apm.Lane{apm.Informers, apm.Client, apm.Serving, apm.Runtime, apm.Profiler} {
		lane(name)
	}
}

// buildKubeScheduler links upstream's scheduler into bin/; what is there and up to date stays.
func buildKubeScheduler(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	flags, err := os.ReadFile(filepath.Join(root, "localcluster", "ldflags.txt"))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "bin", "kube-scheduler")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags="+strings.TrimSpace(string(flags)),
		"-o", binary, "./conformance/cmd/kube-scheduler")
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building kube-scheduler: %v\n%s", err, said)
	}
	return binary
}

// startKubeScheduler starts upstream's scheduler, which evaluates all nodes for each pod, and returns its address and
// the file with its certificate, when the administrator of the cluster may read its metrics.
func startKubeScheduler(t *testing.T, binary string, cluster *testcluster.Cluster) (address, certificate string) {
	t.Helper()
	kubeconfig := cluster.SchedulerKubeconfig
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"percentageOfNodesToScore: 100\nleaderElection: {leaderElect: false}\n" +
		"clientConnection: {kubeconfig: " + kubeconfig + ", qps: 1000, burst: 1000}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config="+config, "--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig, "--cert-dir="+dir, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port))
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = testcluster.ChildAttributes(syscall.SIGKILL)
	if err := testcluster.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			lines := strings.Split(log.String(), "\n")
			t.Logf("kube-scheduler logged last:\n%s", strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	})
	certificate = filepath.Join(dir, "kube-scheduler.crt")
	eventually(t, "kube-scheduler serves its metrics", func() error {
		return readable("https://"+address+"/metrics", cluster.Kubeconfig, certificate)
	})
	return address, certificate
}

// readable returns an error unless the user of a kubeconfig may read a URL.
func readable(url, kubeconfig, certificate string) error {
	user, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	user.CAData, user.CAFile = nil, certificate
	client, err := rest.HTTPClientFor(user)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// bindPods creates the pods and waits until all of them are bound.
func bindPods(t *testing.T, kubeconfig string) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client := kubernetes.NewForConfigOrDie(cfg)
	for i := range pods {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i)},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "registry.example/app"}}}}
		eventually(t, "pod "+pod.Name+" exists", func() error {
			_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	eventually(t, "all pods are bound", func() error {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		bound := 0
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		if bound != pods {
			return fmt.Errorf("%d of %d", bound, pods)
		}
		return nil
	})
}

// eventually asks until there is no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// marker keeps what is written to it, and closes seen when it contains a text.
type marker struct {
	text string
	seen chan struct{}
	once sync.Once
	mu   sync.Mutex
	all  bytes.Buffer // guarded by mu
}

func (m *marker) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Write(p)
	if bytes.Contains(m.all.Bytes(), []byte(m.text)) {
		m.once.Do(func() { close(m.seen) })
	}
	return len(p), nil
}

func (m *marker) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.String()
}
