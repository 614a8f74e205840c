// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func checkNode(name, cpu, pods string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse(pods),
	}}}
}

func podsOn(node string, n int) []corev1.Pod {
	var out []corev1.Pod
	for i := range n {
		p := pod(fmt.Sprintf("%s-%d", node, i))
		p.Spec.NodeName = node
		out = append(out, *p)
	}
	return out
}

func TestOversold(t *testing.T) {
	nodes := []corev1.Node{checkNode("full", "1", "110"), checkNode("roomy", "4", "110"), checkNode("few", "4", "3")}
	if got := oversold(nodes, slices.Concat(podsOn("full", 10), podsOn("few", 3), podsOn("", 50))); len(got) != 0 {
		t.Errorf("exactly full is not too full, and pods without a node count nowhere: %v", got)
	}
	got := oversold(nodes, slices.Concat(podsOn("full", 11), podsOn("roomy", 11), podsOn("few", 4), podsOn("away", 2)))
	want := []string{
		"node away: does not exist and has 2 pods",
		"node few: 4 of pods asked for, 3 there",
		"node full: 1100m of cpu asked for, 1 there",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatEndedHoldsNothing(t *testing.T) {
	pods := podsOn("full", 11)
	pods[3].Status.Phase = corev1.PodSucceeded
	if got := oversold([]corev1.Node{checkNode("full", "1", "110")}, pods); len(got) != 0 {
		t.Errorf("ten pods that run fit: %v", got)
	}
}

// A resource that the node does not have at all is oversold by the first pod.
func TestOversoldWithoutTheResource(t *testing.T) {
	pods := podsOn("roomy", 1)
	pods[0].Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	got := oversold([]corev1.Node{checkNode("roomy", "4", "110")}, pods)
	if want := []string{"node roomy: 1 of example.com/gpu asked for, 0 there"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
