// SPDX-License-Identifier: Apache-2.0

//go:build incident

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// outage is how long the API server is stopped.
const outage = 20 * time.Second

// TestAnIncidentOfAStoppedAPIServer: the API server of a real cluster is stopped for 20 seconds while pods are created.
// The leader loses its lease meanwhile and is started anew, as by a kubelet. The bundles that it leaves name the cause:
// the API server answered no request, and so the lease was lost. They replay with equal digests, and answer why a pod
// waits. `make incident` runs it.
func TestAnIncidentOfAStoppedAPIServer(t *testing.T) {
	for _, creators := range []int{1, 8} {
		t.Run(fmt.Sprintf("creators=%d", creators), func(t *testing.T) { stoppedAPIServer(t, creators) })
	}
}

func stoppedAPIServer(t *testing.T, creators int) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: "shapes: [{name: n, count: 50, capacity: {cpu: 64, memory: 64Gi, pods: 250}}]"})
	dir := t.TempDir()
	keepRunning(t, "scheduler", "--kubeconfig="+cluster.SchedulerKubeconfig, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", freePort(t)), "--incident-dir="+dir)
	client := adminOf(t, cluster.Kubeconfig)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	created := make(chan int, creators)
	for i := range creators {
		go func() { created <- createPods(ctx, client, i) }()
	}
	within(t, "pods are bound", func() bool {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(list.Items) >= 100
	})
	began := time.Now()
	if err := cluster.Stop(testcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage)
	if err := cluster.Cont(testcluster.APIServer); err != nil {
		t.Fatal(err)
	}

	found := map[string]record.Incident{} // cause -> its incident
	within(t, "the new leader lists the incidents", func() bool {
		code, out, _ := command(t, "kumiki", "incident", "list", "--kubeconfig", cluster.Kubeconfig, "-o", "json")
		var list record.Incidents
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil {
			return false
		}
		for _, in := range list.Incidents {
			found[in.Cause] = in
		}
		return found["lease-lost"].ID != ""
	})
	stop()
	pods := 0
	for range creators {
		pods += <-created
	}
	t.Logf("%d pods were created", pods)
	for _, in := range found {
		t.Logf("after %s: %s, %s, %s, %s", in.At.Sub(began), in.Cause, in.Took, in.Detail, in.ID)
		if consequence := in.Cause == "no-binds" || in.Cause == "watch-lag" || in.Cause == "bind-unanswered" ||
			in.Cause == "lease-unrenewed"; consequence && in.At.After(began) && in.At.Before(began.Add(outage)) {
			t.Errorf("%s was found, which only follows from the cause", in.Cause)
		}
	}
	explains(t, cluster.Kubeconfig, dir, found["api-unanswered"], "The API server answered no request.", "requests without an answer")
	explains(t, cluster.Kubeconfig, dir, found["lease-lost"], "The leader lost its lease", "the API server has not answered for")
}

// explains checks the bundle of an incident.
func explains(t *testing.T, kubeconfig, dir string, in record.Incident, words ...string) {
	t.Helper()
	if filepath.Dir(in.File) != dir || in.Error != "" {
		t.Fatalf("the bundle is in %q (%s), want a file in %s", in.File, in.Error, dir)
	}
	name := filepath.Join(t.TempDir(), "a.kumiki")
	code, out, errs := command(t, "kumiki", "incident", "get", in.ID, "--kubeconfig", kubeconfig, "-f", name)
	for _, w := range words {
		if code != 0 || !strings.Contains(out, w) {
			t.Fatalf("get: code %d, want %q:\n%s%s", code, w, out, errs)
		}
	}
	code, out, errs = command(t, "kumiki", "incident", "replay", name, "-o", "json")
	var replayed record.IncidentReplay
	if err := json.Unmarshal([]byte(out), &replayed); code != 0 || err != nil || replayed.Different > 0 ||
		replayed.Decisions < 100 || replayed.Events != in.Events {
		t.Errorf("replay: code %d, %v\n%s%s", code, err, out, errs)
	}
	if code, out, errs = command(t, "kumiki", "replay", name); code != 0 || !strings.Contains(out, "the same") {
		t.Errorf("replay: code %d\n%s%s", code, out, errs)
	}
	if code, out, errs = command(t, "kumiki", "why", "pod/load-0-0", "-n", "default", "--from", name); code != 0 {
		t.Errorf("why --from: code %d\n%s%s", code, out, errs)
	}
}

// keepRunning runs the program until the test ends, and starts it anew a second after it has ended.
func keepRunning(t *testing.T, line ...string) {
	t.Helper()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			p := program(append([]string{"kumiki"}, line...)...)
			p.Stderr = &log
			if err := testcluster.Spawn(p); err != nil {
				fmt.Fprintln(&log, err)
				return
			}
			over := context.AfterFunc(ctx, func() { p.Process.Signal(syscall.SIGTERM) })
			err := p.Wait()
			over()
			fmt.Fprintln(&log, "the scheduler ended:", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Logf("the scheduler's log:\n%s", log.String())
		}
	})
}

// createPods creates pods one after the other until ctx ends, and returns their number.
func createPods(ctx context.Context, client kubernetes.Interface, creator int) int {
	for n := 0; ; {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d-%d", creator, n)}, Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("10m")}}}}}}
		_, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		if ctx.Err() != nil {
			return n
		}
		if err == nil {
			n++
		}
	}
}

func adminOf(t *testing.T, kubeconfig string) *kubernetes.Clientset {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return kubernetes.NewForConfigOrDie(cfg)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// within waits until something is so, and fails after two minutes.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after two minutes it is not so that %s", what)
		}
	}
}
