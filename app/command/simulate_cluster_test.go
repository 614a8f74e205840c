// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestRecordedClusterGivesTheSameDecisions: kumiki runs a real cluster, with pods that wait, that are bound, that evict
// others, that are deleted, and gangs. Its recording, played with the recorded outcomes against the simulated API
// server, has the same effects, and the simulated API server explains every version of a pod that the real one showed.
func TestRecordedClusterGivesTheSameDecisions(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{
		NodeSpec: "shapes: [{name: n, count: 8, capacity: {cpu: 4, memory: 16Gi, pods: 110}}]"})
	tape := filepath.Join(t.TempDir(), "run.tape")
	running := program("kumiki", "scheduler", "--kubeconfig="+cluster.SchedulerKubeconfig, "--bind-address=127.0.0.1",
		"--secure-port=0", "--record="+tape, "--config="+file(t, head+"clientConnection: {kubeconfig: "+
			cluster.SchedulerKubeconfig+"}\n"+gangsByAnnotation))
	var log bytes.Buffer
	running.Stderr = &log
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	load(t, kubernetes.NewForConfigOrDie(cfg))
	running.Process.Signal(syscall.SIGTERM)
	if err := running.Wait(); err != nil {
		t.Logf("the scheduler ended with %v\n%s", err, log.String())
	}
	code, out, errs := simulate("--from", tape, "--as-recorded", "-o", "json")
	var r recordedRun
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, errs, out)
	}
	if r.Binds < 40 || r.Evictions < 4 || r.Statuses < 10 || r.Foreign > 0 || r.Overcommits > 0 {
		t.Errorf("%+v", r)
	}
	t.Logf("%d events, %d decisions, %d binds, %d evictions, %d statuses", r.Events, r.Decisions, r.Binds, r.Evictions, r.Statuses)
}

// gangsByAnnotation makes the annotation pod_group count.
const gangsByAnnotation = `profiles:
- pluginConfig:
  - name: Kumiki
    args: {gangs: {annotation: "On"}}
`

// load fills the cluster of 32 cores, and lets pods of higher priority evict some.
func load(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, pods := t.Context(), client.CoreV1().Pods("default")
	high := int32(1000)
	create := func(name, cpu string, priority *int32, gang string) {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Priority: priority,
			Containers: []v1.Container{{Name: "c", Image: "c", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
		if priority != nil {
			p.Spec.Priority, p.Spec.PriorityClassName = nil, "high"
		}
		if gang != "" {
			p.Annotations = map[string]string{"pod_group": gang, "pod_group_size": "4"}
		}
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating pod %s: %v", name, err)
		}
	}
	bound := func(what string, least int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
			if err == nil && len(list.Items) >= least {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: not %d pods are bound after a minute: %v", what, least, err)
			}
		}
	}
	prio := kubeClass("high", high)
	if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, prio, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // 32 fit
		create(fmt.Sprintf("low-%d", i), "1", nil, "")
	}
	bound("the first pods", 32)
	for i := range 4 {
		create(fmt.Sprintf("high-%d", i), "2", &high, "")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		n := 0
		for i := range list.Items {
			if list.Items[i].Spec.PriorityClassName == "high" {
				n++
			}
		}
		if err == nil && n == 4 {
			break
		}
	}
	// Which pods wait is not certain: a pod that was tried before all nodes were ready is tried again after others. And
	// victims are gone.
	waiting, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		t.Fatal(err)
	}
	for i := range waiting.Items {
		if err := pods.Delete(ctx, waiting.Items[i].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.PriorityClassName == "" && i%2 == 0 {
			if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 4 {
		create(fmt.Sprintf("train-%d", i), "1", nil, "train")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		p, err := pods.Get(ctx, "train-3", metav1.GetOptions{})
		if err == nil && p.Spec.NodeName != "" {
			return
		}
	}
	t.Fatal("the last pods are not bound after a minute")
}

func kubeClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}
