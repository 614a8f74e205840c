// SPDX-License-Identifier: Apache-2.0

//go:build plugins

package randomscheduler

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// programs are two programs with one plugin: scheduler -> package.
var programs = map[string]string{
	"kumiki":         "github.com/kumiki-scheduler/kumiki/examples/randomscheduler",
	"kube-scheduler": "github.com/kumiki-scheduler/kumiki/conformance/cmd/randomscheduler",
}

const (
	nodes = 10
	pods  = 250 // of each scheduler; nodes have capacity for all draws
	alone = 20  // more pods that fit one node only
	// limit is the chi-square that 99 of 100 draws with nodes-1 degrees of freedom stay below.
	limit = 21.67
)

// TestDrawsOnACluster: in each scheduler, the nodes have equal shares of the pods, by chi-square at 1 %; pods that fit
// one node run there; and PostBind logs each pod once.
func TestDrawsOnACluster(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: nodes})
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client := kubernetes.NewForConfigOrDie(cfg)
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	only := list.Items[0].Name
	logs := map[string]*output{}          // scheduler -> what it writes
	for name, program := range programs { // order: each is started
		logs[name] = start(t, cluster, name, program)
		create(t, client, name, "draw", pods, nil)
		create(t, client, name, "alone", alone, map[string]string{v1.LabelHostname: only})
	}
	for name := range programs { // order: each is judged
		bound := await(t, client, name)
		counts := map[string]int{} // node -> pods that were drawn
		for _, p := range bound {
			switch {
			case strings.HasPrefix(p.Name, name+"-draw"):
				counts[p.Spec.NodeName]++
			case p.Spec.NodeName != only:
				t.Errorf("%s: %s fits %s alone and is on %s", name, p.Name, only, p.Spec.NodeName)
			}
		}
		square, expected := 0.0, float64(pods)/nodes
		for _, n := range list.Items {
			d := float64(counts[n.Name]) - expected
			square += d * d / expected
		}
		t.Logf("%s: chi-square %.2f with %d degrees of freedom; pods by node %v", name, square, nodes-1, counts)
		if square > limit {
			t.Errorf("%s: chi-square %.2f, want at most %.2f", name, square, limit)
		}
		logged(t, name, logs[name])
	}
}

// logged waits until PostBind has logged each pod once.
func logged(t *testing.T, name string, out *output) {
	t.Helper()
	n := 0
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) {
			n = strings.Count(out.String(), `] "Bound" `)
			return n >= pods+alone, nil
		})
	if err != nil || n != pods+alone {
		t.Errorf("%s: PostBind logged %d pods, want %d", name, n, pods+alone)
	}
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns all of it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start builds a program and runs it until the test ends, with the configuration of the example under another scheduler
// name.
func start(t *testing.T, cluster *testcluster.Cluster, name, program string) *output {
	t.Helper()
	dir := t.TempDir()
	binary, file := filepath.Join(dir, name), filepath.Join(dir, "config.yaml")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, program).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	text, err := os.ReadFile("../../examples/randomscheduler/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("default-scheduler"), []byte(name))
	text = fmt.Appendf(text, "clientConnection: {kubeconfig: %s}\nleaderElection: {leaderElect: false}\n",
		cluster.SchedulerKubeconfig)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", file, "--secure-port=0"}
	if name == "kumiki" {
		args = append([]string{"scheduler"}, args...)
	}
	run, out := exec.Command(binary, args...), &output{}
	run.Stdout, run.Stderr = out, out
	run.SysProcAttr = testcluster.ChildAttributes(syscall.SIGKILL)
	if err := testcluster.Spawn(run); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if text := out.String(); t.Failed() {
			t.Logf("%s wrote last:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return out
}

// create creates pods of a scheduler.
func create(t *testing.T, client kubernetes.Interface, scheduler, kind string, n int, selector map[string]string) {
	t.Helper()
	for i := range n {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", scheduler, kind, i)}}
		p.Spec = v1.PodSpec{SchedulerName: scheduler, NodeSelector: selector,
			Containers: []v1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}}
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				_, err := client.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
				if apierrors.IsForbidden(err) {
					return false, nil // the service account of the namespace does not exist yet
				}
				return err == nil, err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// await returns the pods of a scheduler once all are bound.
func await(t *testing.T, client kubernetes.Interface, scheduler string) (bound []v1.Pod) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
			if err != nil {
				return false, err
			}
			bound = bound[:0]
			for _, p := range list.Items {
				if p.Spec.SchedulerName == scheduler {
					bound = append(bound, p)
				}
			}
			return len(bound) == pods+alone, nil
		})
	if err != nil {
		t.Fatalf("%s bound %d of %d pods: %v", scheduler, len(bound), pods+alone, err)
	}
	return bound
}
