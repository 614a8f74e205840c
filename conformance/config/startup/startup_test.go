// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// theFile has something of every part: our settings, arguments of every kind, plugin sets, an extender that is
// ignorable and never answers.
const theFile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 5
leaderElection: {leaderElect: true, resourceName: one-file, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}
clientConnection: {kubeconfig: %q, qps: 100, burst: 200}
extenders:
- urlPrefix: http://127.0.0.1:1
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 2
  ignorable: true
  httpTimeout: 1s
  managedResources: [{name: example.com/foo, ignoredByScheduler: true}]
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: DefaultPreemption, args: {minCandidateNodesPercentage: 20}}
  - {name: DynamicResources, args: {filterTimeout: 5s, bindingTimeout: 1m}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}
  - name: NodeAffinity
    args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}
  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu}, {name: memory}]}}
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}}
  - {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 60}}
  - {name: Kumiki, args: {seed: 7, inFlightBinds: 50, strategy: powerOfTwo, fitScoresReal: true}}
- schedulerName: second
  percentageOfNodesToScore: 50
  plugins:
    multiPoint: {disabled: [{name: ImageLocality}]}
    score: {enabled: [{name: NodeResourcesFit, weight: 4}]}
`

// TestOneFileStartsBoth catches a setting of ours that upstream's decoder refuses, and a file of upstream's that
// ours does.
func TestOneFileStartsBoth(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	upstream := build(ctx, t)
	cluster := testcluster.Start(t, testcluster.Options{})
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, theFile, cluster.SchedulerKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(rest)

	stop := startUpstream(ctx, t, upstream, file, cluster.SchedulerKubeconfig)
	bound(ctx, t, client, "upstream")
	stop()

	c, err := config.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	o := app.DefaultOptions()
	o.Config, o.Serve.Secure.BindPort = c, freePort(t)
	s, err := app.NewScheduler(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	running, end := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- s.Run(running) }()
	ready(ctx, t, o.Serve.Secure.BindPort, ended)
	bound(ctx, t, client, "kumiki")
	end()
	if err := <-ended; err != nil {
		t.Errorf("kumiki ended with %v", err)
	}
}

// build links upstream's scheduler.
func build(ctx context.Context, t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kube-scheduler")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, "github.com/kumiki-scheduler/kumiki/conformance/cmd/kube-scheduler")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building kube-scheduler: %v\n%s", err, out)
	}
	return binary
}

// startUpstream starts kube-scheduler, waits until it is ready and returns how it is stopped.
func startUpstream(ctx context.Context, t *testing.T, binary, file, kubeconfig string) (stop func()) {
	t.Helper()
	port := freePort(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "--config="+file, fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1",
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig, "--cert-dir="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			lines := strings.Split(log.String(), "\n")
			t.Logf("kube-scheduler said last:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	})
	ready(ctx, t, port, ended)
	return stop
}

// ready waits until a scheduler says that it is.
func ready(ctx context.Context, t *testing.T, port int, ended <-chan error) {
	t.Helper()
	// The certificate is made anew at every start.
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	until(ctx, t, func() (bool, string) {
		select {
		case err := <-ended:
			t.Fatalf("the scheduler ended before it was ready: %v", err)
		default:
		}
		response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/readyz", port))
		if err != nil {
			return false, err.Error()
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

// bound creates a pod for each profile and waits until they have a node.
func bound(ctx context.Context, t *testing.T, client kubernetes.Interface, by string) {
	t.Helper()
	for _, scheduler := range []string{"default-scheduler", "second"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: by + "-" + scheduler, Namespace: "default"},
			Spec: v1.PodSpec{SchedulerName: scheduler, Containers: []v1.Container{{Name: "c", Image: "registry.example/pause"}}}}
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, func() (bool, string) {
			got, err := client.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return got.Spec.NodeName != "", fmt.Sprintf("pod %s has no node: %v", pod.Name, got.Status.Conditions)
		})
	}
}

// until asks again and again, until the answer is yes or the time is up.
func until(ctx context.Context, t *testing.T, ask func() (yes bool, why string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		yes, why := ask()
		if yes {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(why)
		case <-time.After(200 * time.Millisecond):
		}
	}
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
