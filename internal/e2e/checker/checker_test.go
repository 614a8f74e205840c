// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func list(cpu string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
}

func testPod(name, node, cpu string) v1.Pod {
	return v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: list(cpu)}}}},
	}
}

func testNode(name, cpu string, pods int) v1.Node {
	offers := list(cpu)
	offers[v1.ResourcePods] = resource.MustParse(fmt.Sprint(pods))
	return v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: offers}}
}

// TestEachFaultIsFound shows a fault of each kind to the checker: one that finds nothing is worth nothing.
func TestEachFaultIsFound(t *testing.T) {
	full := []v1.Pod{testPod("a", "n", "1500m"), testPod("b", "n", "500m")}
	failed := testPod("f", "n", "1")
	failed.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfcpu"}
	withInit := testPod("i", "n", "1")
	withInit.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list("2001m")}}}
	withOverhead := testPod("o", "n", "2")
	withOverhead.Spec.Overhead = list("1n")
	same := testPod("c", "m", "1m")
	same.UID = "a"
	for name, c := range map[string]struct {
		pods []v1.Pod
		want string // empty: nothing is wrong
	}{
		"full":                     {full, ""},
		"one thousandth too many":  {append(full[:2:2], testPod("c", "n", "1m")), "node n: pods ask for"},
		"an overflow":              {[]v1.Pod{testPod("c", "n", "50E")}, "node n: pods ask for"},
		"too many pods":            {[]v1.Pod{testPod("a", "n", "0"), testPod("b", "n", "0"), testPod("c", "n", "0"), testPod("d", "n", "0")}, "holds 4 pods"},
		"a kubelet's refusal":      {[]v1.Pod{failed}, "OutOfcpu"},
		"an init container":        {[]v1.Pod{withInit}, "node n: pods ask for"},
		"overhead":                 {[]v1.Pod{withOverhead}, "node n: pods ask for"},
		"a node that is not there": {[]v1.Pod{testPod("a", "elsewhere", "1")}, "does not exist"},
		"a UID twice":              {append(full[:2:2], same), "have one UID"},
		"a resource that no node offers": {[]v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "g"}, Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}}}}, "example.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Sums([]v1.Node{testNode("n", "2", 3), testNode("m", "2", 3)}, c.pods)
			switch {
			case c.want == "" && len(found) != 0:
				t.Errorf("found %v in a good cluster", found)
			case c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)):
				t.Errorf("found %q, want one with %q", found, c.want)
			}
		})
	}
}

// TestAPodThatMovesIsFound follows a pod whose node changes.
func TestAPodThatMovesIsFound(t *testing.T) {
	client := fake.NewClientset()
	p := testPod("a", "l", "1")
	create(t, client, &p)
	h := Follow(t.Context(), client)
	h.eventually(t, func() bool { return len(h.on) == 1 })
	h.eventually(t, func() bool {
		// Again and again, because the watch may begin after any of them.
		p.Spec.NodeName = map[string]string{"l": "m", "m": "l"}[p.Spec.NodeName]
		if _, err := client.CoreV1().Pods("ns").Update(t.Context(), &p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return len(h.found) > 0
	})
	if found := h.Stop(); !strings.Contains(found[0], "moved from node") {
		t.Errorf("found %v", found)
	}
}

func create(t *testing.T, client *fake.Clientset, p *v1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods("ns").Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until is reports true about the events of the watch; the test's own deadline ends it.
func (h *History) eventually(t *testing.T, is func() bool) {
	t.Helper()
	for {
		h.mu.Lock()
		done := is()
		h.mu.Unlock()
		if done {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("it never came")
		case <-time.After(time.Millisecond):
		}
	}
}
