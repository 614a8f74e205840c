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
// The scheduler writes a bundle that names the cause. It replays with equal digests, and answers why a pod waits.
// `make incident` runs it.
func TestAnIncidentOfAStoppedAPIServer(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: "shapes: [{name: n, count: 50, capacity: {cpu: 64, memory: 64Gi, pods: 250}}]"})
	dir := t.TempDir()
	running := program("kumiki", "scheduler", "--kubeconfig="+cluster.SchedulerKubeconfig, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", freePort(t)), "--incident-dir="+dir,
		// A leader ends when it could not renew its lease for so long.
		"--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s")
	var log bytes.Buffer
	running.Stderr = &log
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Process.Signal(syscall.SIGTERM)
		running.Wait()
		if t.Failed() {
			t.Logf("the scheduler's log:\n%s", log.String())
		}
	})
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
	if err := cluster.Stop(testcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage)
	if err := cluster.Cont(testcluster.APIServer); err != nil {
		t.Fatal(err)
	}

	var found record.Incident
	within(t, "an incident is listed", func() bool {
		code, out, _ := command(t, "kumiki", "incident", "list", "--kubeconfig", cluster.Kubeconfig, "-o", "json")
		var list record.Incidents
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil {
			return false
		}
		for _, in := range list.Incidents {
			if in.Cause == "no-binds" {
				found = in
			}
		}
		return found.ID != ""
	})
	stop()
	pods := 0
	for range creators {
		pods += <-created
	}
	t.Logf("%d pods were created; %+v", pods, found)
	if filepath.Dir(found.File) != dir || found.Error != "" {
		t.Errorf("the bundle is in %q (%s), want a file in %s", found.File, found.Error, dir)
	}
	name := filepath.Join(t.TempDir(), "a.kumiki")
	code, out, errs := command(t, "kumiki", "incident", "get", found.ID, "--kubeconfig", cluster.Kubeconfig, "-f", name)
	if code != 0 || !strings.Contains(out, "no bind succeeded") {
		t.Fatalf("get: code %d\n%s%s", code, out, errs)
	}
	code, out, errs = command(t, "kumiki", "incident", "replay", name, "-o", "json")
	var replayed record.IncidentReplay
	if err := json.Unmarshal([]byte(out), &replayed); code != 0 || err != nil || replayed.Different > 0 ||
		replayed.Decisions < 100 || replayed.Events != found.Events {
		t.Errorf("replay: code %d, %v\n%s%s", code, err, out, errs)
	}
	if code, out, errs = command(t, "kumiki", "replay", name); code != 0 || !strings.Contains(out, "the same") {
		t.Errorf("replay: code %d\n%s%s", code, out, errs)
	}
	if code, out, errs = command(t, "kumiki", "why", "pod/load-0-0", "-n", "default", "--from", name); code != 0 {
		t.Errorf("why --from: code %d\n%s%s", code, out, errs)
	}
}

// creators is how many pods are created at the same time.
const creators = 8

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

// within waits until something is so, and fails after a minute.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}
