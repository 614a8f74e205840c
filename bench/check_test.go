// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func checkNode(name, cpu, pods string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse(pods),
	}}}
}

// testPod asks for a tenth of a core.
func testPod(name string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi")}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
}

// placedPod is a pod of namespace ns whose UID is its name.
func placedPod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
}

func podsOn(node string, n int) []corev1.Pod {
	var out []corev1.Pod
	for i := range n {
		p := testPod(fmt.Sprintf("%s-%d", node, i))
		p.Spec.NodeName = node
		out = append(out, *p)
	}
	return out
}

func TestOversold(t *testing.T) {
	nodes := []corev1.Node{checkNode("full", "1", "110"), checkNode("large", "4", "110"), checkNode("few", "4", "3")}
	if got := oversold(nodes, slices.Concat(podsOn("full", 10), podsOn("few", 3), podsOn("", 50))); len(got) != 0 {
		t.Errorf("exactly full is not too full, and pods without a node count nowhere: %v", got)
	}
	got := oversold(nodes, slices.Concat(podsOn("full", 11), podsOn("large", 11), podsOn("few", 4), podsOn("away", 2)))
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
	pods := podsOn("large", 1)
	pods[0].Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	got := oversold([]corev1.Node{checkNode("large", "4", "110")}, pods)
	if want := []string{"node large: 1 of example.com/gpu asked for, 0 there"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Catches: a resource that devices stand for counted against the node, which has none of it; others of the same pod not
// counted.
func TestDevicesStandForResources(t *testing.T) {
	pods := podsOn("large", 1)
	pods[0].Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	pods[0].Spec.Containers[0].Resources.Requests["example.com/nic"] = resource.MustParse("1")
	pods[0].Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c",
		RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "pause", ResourceName: "example.com/gpu", RequestName: "r"}}}
	got := oversold([]corev1.Node{checkNode("large", "4", "110")}, pods)
	if want := []string{"node large: 1 of example.com/nic asked for, 0 there"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Catches: a controller's second claim for a pod, made when the scheduler had used the first, told as a scheduler's fault; and a
// scheduler's fault excused by the claim of another pod, or for another purpose.
func TestAClaimThatAControllerMadeTwice(t *testing.T) {
	claim := func(name, purpose, owner string, pods ...types.UID) resourceapi.ResourceClaim {
		yes := true
		c := resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{resourceapi.PodResourceClaimAnnotation: purpose},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: owner, UID: types.UID(owner), Controller: &yes}}}}
		for _, uid := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", UID: uid})
			c.Status.Allocation = &resourceapi.AllocationResult{}
		}
		return c
	}
	user := func(name, made string) corev1.Pod {
		p := placedPod(name, "node")
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &made}}
		return *p
	}
	got := soldTwice([]resourceapi.ResourceClaim{
		claim("first", "gpu", "twice", "twice"), claim("second", "gpu", "twice"),
		claim("of-other", "gpu", "other", "unreserved"), claim("bare", "gpu", "unreserved"),
		claim("nic", "nic", "half", "half"), claim("half-gpu", "gpu", "half"),
	}, []corev1.Pod{user("twice", "second"), user("unreserved", "bare"), user("half", "half-gpu")})
	want := []string{
		"pod ns/half: is bound and claim half-gpu is not reserved for it",
		"pod ns/unreserved: is bound and claim bare is not reserved for it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Catches: a device that two claims have alone, one that two share taken for that, a reservation without an allocation, and
// a bound pod whose claim is another's.
func TestDevicesSoldTwice(t *testing.T) {
	share, pool := types.UID("s"), "a"
	claim := func(name, device string, shareID *types.UID, pods ...types.UID) resourceapi.ResourceClaim {
		c := resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		for _, uid := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", UID: uid})
		}
		if device != "" {
			c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Driver: "d", Pool: pool, Device: device, ShareID: shareID}}}}
		}
		return c
	}
	user := func(name string, claim string) corev1.Pod {
		p := placedPod(name, "node")
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}}
		return *p
	}
	got := soldTwice([]resourceapi.ResourceClaim{
		claim("one", "0", nil, "pod-1"), claim("two", "0", nil, "pod-2"), claim("part", "1", &share, "pod-3"), claim("rest", "1", &share, "pod-4"),
		claim("bare", "", nil, "pod-5"),
	}, []corev1.Pod{user("pod-1", "one"), user("pod-2", "two"), user("pod-6", "part")})
	want := []string{
		"claim ns/bare: reserved for 1 pods and not allocated",
		"device d/a/0: claims ns/one and ns/two have it",
		"pod ns/pod-6: is bound and claim part is not reserved for it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
