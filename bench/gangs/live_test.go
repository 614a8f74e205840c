// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestPlay plays a workload on an API server that binds each pod as it is created: every batch runs, the object of a
// gang comes before its pods, and nothing is left behind.
func TestPlay(t *testing.T) {
	client := fake.NewClientset()
	groups := 0
	client.PrependReactor("create", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		groups++
		return false, nil, nil
	})
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.CreateAction).GetObject().(*v1.Pod)
		if p.Spec.SchedulingGroup != nil && groups == 0 {
			t.Errorf("pod %s comes before its group", p.Name)
		}
		if p.Spec.NodeName == "" {
			p.Spec.NodeName = nodeName(0)
		}
		return false, nil, nil
	})
	s := Scenario{Name: "s", Nodes: 1, Cores: 4, Until: time.Minute, Batches: []Batch{
		{Name: "old", Pods: 1, Running: true, Dies: time.Millisecond, Aside: true},
		{Gang: "a", Name: "a", Pods: 2, Size: 2, Run: time.Millisecond},
		{Name: "solo", Pods: 1, At: 2 * time.Millisecond},
	}}
	r, err := Play(t.Context(), client, s, "binder", "ns")
	if err != nil {
		t.Fatal(err)
	}
	if r.Ran != 2 || r.All != 2 || r.Held >= 0 || r.Attempts >= 0 || groups != 1 {
		t.Errorf("got %+v with %d groups", r, groups)
	}
	left, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("nodes are left: %v, %v", left, err)
	}
}
