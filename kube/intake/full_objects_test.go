// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestWholeObjectsStayUntilTheEngineKnowsTheyAreGone: a decision about a pod must find it, and nodes that the engine
// still looks at.
func TestWholeObjectsStayUntilTheEngineKnowsTheyAreGone(t *testing.T) {
	in, pods, nodes := newTestInbox(t)
	whole := in.KeepFull()
	p := kubetest.PendingPod("p", "u1")
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "only whole pods have this"}}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	streamed, err := pods.Transformer()(p)
	if err != nil {
		t.Fatal(err)
	}
	pods.Replace([]any{streamed}, "1")
	nodes.Replace([]any{kubetest.Node("n")}, "1")
	taken(in, 1000)
	if got := whole.Pod(kubetest.Ref(p)); got == nil || len(got.Spec.Containers[0].Env) != 1 || got.ManagedFields != nil {
		t.Errorf("whole pod %v", got)
	}
	beat := kubetest.Node("n")
	beat.ResourceVersion = "9" // a change that no record shows
	nodes.Update(beat)
	if got := whole.Node("n"); got == nil || got.ResourceVersion != "9" {
		t.Errorf("whole node %v", got)
	}
	pods.Delete(p)
	nodes.Delete(beat)
	if whole.Pod(kubetest.Ref(p)) == nil || whole.Node("n") == nil {
		t.Error("gone before the engine took it")
	}
	taken(in, 1000)
	if whole.Pod(kubetest.Ref(p)) != nil || whole.Node("n") != nil {
		t.Error("kept although the engine took it")
	}
	pods.Add(kubetest.PendingPod("p", "u2"))
	if whole.Pod(kubetest.Ref(p)) != nil {
		t.Error("a pod of the same name was taken for it")
	}
	if plain, _, _ := newTestInbox(t); (FullObjects{plain}).Node("n") != nil {
		t.Error("an inbox without whole objects has one")
	}
}
