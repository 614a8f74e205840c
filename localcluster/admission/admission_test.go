// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func list(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func testNode(allocatable ...string) *v1.Node {
	all := append([]string{"cpu", "4", "memory", "8Gi", "pods", "10", "ephemeral-storage", "10Gi"}, allocatable...)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "east"}},
		Status:     v1.NodeStatus{Allocatable: list(all...)},
	}
}

func testPod(requests ...string) *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{
		NodeName:   "n",
		Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list(requests...)}}},
	}}
}

func with(pod *v1.Pod, edit func(*v1.Pod)) *v1.Pod {
	edit(pod)
	return pod
}

func hostPortPod(ip string, protocol v1.Protocol, port int32) *v1.Pod {
	return with(testPod(), func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostIP: ip, Protocol: protocol, HostPort: port}}
	})
}

// Each row is a rule of the kubelet; taking the rule out of Admit makes its row
// fail.
func TestAdmitRules(t *testing.T) {
	full := []*v1.Pod{testPod("cpu", "3", "memory", "6Gi")}
	tainted := testNode()
	tainted.Spec.Taints = []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoExecute}}
	cordoned := testNode()
	cordoned.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	always := v1.ContainerRestartPolicyAlways
	strict := v1.SupplementalGroupsPolicyStrict
	for name, test := range map[string]struct {
		node   *v1.Node
		others []*v1.Pod
		pod    *v1.Pod
		// reason is empty when the pod must be admitted.
		reason string
	}{
		"fits exactly":            {testNode(), full, testPod("cpu", "1", "memory", "2Gi"), ""},
		"one thousandth too much": {testNode(), full, testPod("cpu", "1001m"), "OutOfcpu"},
		"one byte too much":       {testNode(), full, testPod("memory", "2147483649"), "OutOfmemory"},
		"cpu is named before memory": {
			testNode(), full, testPod("cpu", "2", "memory", "3Gi"), "OutOfcpu"},
		"ephemeral storage":            {testNode(), nil, testPod("ephemeral-storage", "11Gi"), "OutOfephemeral-storage"},
		"asks for nothing, node full":  {testNode(), []*v1.Pod{testPod("cpu", "4")}, testPod(), ""},
		"explicit zero, node full":     {testNode(), []*v1.Pod{testPod("cpu", "4")}, testPod("cpu", "0"), ""},
		"number of pods comes first":   {testNode("pods", "1"), full, testPod("cpu", "9"), "OutOfpods"},
		"node without allocatable":     {&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nil, testPod(), "OutOfpods"},
		"huge pages of the right size": {testNode("hugepages-2Mi", "100Mi"), nil, testPod("cpu", "1", "hugepages-2Mi", "100Mi"), ""},
		"huge pages of another size":   {testNode("hugepages-2Mi", "100Mi"), nil, testPod("cpu", "1", "hugepages-1Gi", "1Gi"), "OutOfhugepages-1Gi"},
		"huge pages in use": {
			testNode("hugepages-2Mi", "100Mi"), []*v1.Pod{testPod("hugepages-2Mi", "2Mi")},
			testPod("hugepages-2Mi", "100Mi"), "OutOfhugepages-2Mi"},
		"device taken": {
			testNode("example.com/gpu", "2"), []*v1.Pod{testPod("example.com/gpu", "1")},
			testPod("example.com/gpu", "2"), "OutOfexample.com/gpu"},
		"device the node does not have at all": {testNode(), nil, testPod("example.com/gpu", "1"), ""},
		"an amount beyond int64":               {testNode(), nil, testPod("memory", "50E"), "OutOfmemory"},
		"init containers run one by one": {testNode(), nil, with(testPod("cpu", "2"), func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list("cpu", "4")}}}
		}), ""},
		"sidecars run beside": {testNode(), nil, with(testPod("cpu", "2"), func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: list("cpu", "3")}}}
		}), "OutOfcpu"},
		"overhead": {testNode(), nil, with(testPod("cpu", "4"), func(p *v1.Pod) { p.Spec.Overhead = list("cpu", "1m") }), "OutOfcpu"},
		"pod-level resources": {testNode(), nil, with(testPod("cpu", "1"), func(p *v1.Pod) {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: list("cpu", "5")}
		}), "OutOfcpu"},
		"node selector": {testNode(), nil, with(testPod(), func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{"zone": "west"}
		}), "NodeAffinity"},
		"another node's pod": {testNode(), nil, with(testPod(), func(p *v1.Pod) { p.Spec.NodeName = "m" }), "NodeName"},
		"port taken": {
			testNode(), []*v1.Pod{hostPortPod("", "", 80)}, hostPortPod("10.0.0.1", v1.ProtocolTCP, 80), "NodePorts"},
		"port on another address": {
			testNode(), []*v1.Pod{hostPortPod("10.0.0.2", "", 80)}, hostPortPod("10.0.0.1", "", 80), ""},
		"port of another protocol": {
			testNode(), []*v1.Pod{hostPortPod("", v1.ProtocolUDP, 80)}, hostPortPod("", v1.ProtocolTCP, 80), ""},
		"NoExecute taint":            {tainted, nil, testPod(), "TaintToleration"},
		"NoSchedule does not matter": {cordoned, nil, testPod(), ""},
		"tolerated taint": {tainted, nil, with(testPod(), func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists}}
		}), ""},
		"static pods tolerate all": {tainted, nil, with(testPod(), func(p *v1.Pod) {
			p.Annotations = map[string]string{staticPodSourceAnnotation: "file"}
		}), ""},
		"resources are named before affinity": {testNode(), nil, with(testPod("cpu", "9"), func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{"zone": "west"}
		}), "OutOfcpu"},
		"another operating system": {testNode(), nil, with(testPod("cpu", "9"), func(p *v1.Pod) {
			p.Spec.OS = &v1.PodOS{Name: v1.Windows}
		}), "PodOSNotSupported"},
		"label of another operating system": {testNode(), nil, with(testPod(), func(p *v1.Pod) {
			p.Labels = map[string]string{v1.LabelOSStable: "windows"}
		}), "PodOSSelectorNodeLabelDoesNotMatch"},
		"strict supplemental groups": {testNode(), nil, with(testPod(), func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: &strict}
		}), "SupplementalGroupsPolicyNotSupported"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Admit(test.node, test.others, test.pod)
			if got.Admitted != (test.reason == "") || got.Reason != test.reason {
				t.Errorf("got %+v, want reason %q", got, test.reason)
			}
		})
	}
}

func TestAllFailuresAreReported(t *testing.T) {
	pod := with(testPod("cpu", "5", "memory", "9Gi"), func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "west"} })
	var got []string
	for _, f := range Admit(testNode(), nil, pod).Failures {
		got = append(got, f.Reason)
	}
	if want := []string{"OutOfcpu", "OutOfmemory", "NodeAffinity"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMessageOfShortage(t *testing.T) {
	got := Admit(testNode(), []*v1.Pod{testPod("cpu", "1500m")}, testPod("cpu", "3"))
	want := Failure{
		Reason:   "OutOfcpu",
		Message:  "Node didn't have enough resource: cpu, requested: 3000, used: 1500, capacity: 4000",
		Resource: "cpu", Requested: 3000, Used: 1500, Capacity: 4000,
	}
	if got.Message != want.Message || len(got.Failures) != 1 || got.Failures[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// During a resize a pod holds the larger of what it has and what it wants.
// Mutant: reading the spec alone in admittedRequests.
func TestResizeHoldsTheLarger(t *testing.T) {
	shrinking := with(testPod("cpu", "1"), func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{
			Name: "c", AllocatedResources: list("cpu", "3"),
			Resources: &v1.ResourceRequirements{Requests: list("cpu", "3")},
		}}
	})
	if got := Admit(testNode(), []*v1.Pod{shrinking}, testPod("cpu", "2")); got.Reason != "OutOfcpu" {
		t.Errorf("got %+v, want OutOfcpu: three cores are still allocated", got)
	}
}

func TestExtendedNames(t *testing.T) {
	for name, want := range map[string]bool{
		"example.com/gpu": true, "cpu": false, "hugepages-2Mi": false, "kubernetes.io/batch": false,
		"requests.example.com/gpu": false, "example.com/": false, "example.com/" + strings.Repeat("x", 64): false,
	} {
		if got := Extended(v1.ResourceName(name)); got != want {
			t.Errorf("Extended(%q) is %v, want %v", name, got, want)
		}
	}
}

func TestAmountsNeverReadAsNothing(t *testing.T) {
	got := amounts(list("memory", "50E", "cpu", "50E", "example.com/x", "1"))
	want := map[v1.ResourceName]int64{"memory": math.MaxInt64, "cpu": math.MaxInt64, "example.com/x": 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The usage that is kept up to date says the same as one that is summed up
// anew, after any sequence of pods that come and go. Mutant: a Remove that
// forgets ports or reads the pod again after it has changed.
func TestUsageEqualsSumOfPods(t *testing.T) {
	node := testNode("hugepages-2Mi", "10Mi", "example.com/gpu", "3")
	anyPod := rapid.Custom(func(t *rapid.T) *v1.Pod {
		pod := testPod(
			"cpu", fmt.Sprintf("%dm", rapid.IntRange(0, 2000).Draw(t, "cpu")),
			"memory", fmt.Sprintf("%dMi", rapid.IntRange(0, 4000).Draw(t, "memory")),
			"hugepages-2Mi", fmt.Sprintf("%dMi", 2*rapid.IntRange(0, 3).Draw(t, "pages")),
			"example.com/gpu", fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "gpu")))
		if rapid.Bool().Draw(t, "port") {
			pod.Spec.Containers[0].Ports = []v1.ContainerPort{{
				HostIP:   rapid.SampledFrom([]string{"", "10.0.0.1", "10.0.0.2"}).Draw(t, "ip"),
				HostPort: int32(rapid.IntRange(80, 82).Draw(t, "number")),
			}}
		}
		return pod
	})
	rapid.Check(t, func(t *rapid.T) {
		kept := NewUsage()
		var pods []*v1.Pod
		var shares []Share
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(pods) > 0 && rapid.IntRange(0, 2).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, len(pods)-1).Draw(t, "who")
				// What the object says at the end must not matter.
				pods[i].Spec.Containers[0].Resources.Requests = nil
				pods[i].Spec.Containers[0].Ports = nil
				kept.Remove(shares[i])
				pods, shares = append(pods[:i], pods[i+1:]...), append(shares[:i], shares[i+1:]...)
				continue
			}
			pod := anyPod.Draw(t, "pod")
			got, want := kept.Admit(node, pod), Admit(node, pods, pod)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("kept usage says %+v, the sum of the pods %+v", got, want)
			}
			if got.Admitted {
				pods, shares = append(pods, pod), append(shares, kept.Add(pod))
			}
		}
		if kept.Pods() != len(pods) {
			t.Fatalf("usage counts %d pods, want %d", kept.Pods(), len(pods))
		}
	})
}
