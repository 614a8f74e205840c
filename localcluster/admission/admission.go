// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Verdict is what the kubelet decides about one pod.
type Verdict struct {
	Admitted bool
	// Reason and Message go to the pod's status and, the message without
	// MessagePrefix, to its event. Empty when admitted.
	Reason  string
	Message string
	// Failures are all the rules that refused, in the kubelet's order; the
	// first gives Reason. A critical pod is refused for Resource failures only
	// when evicting others cannot help.
	Failures []Failure
}

// Failure is one rule that refused.
type Failure struct {
	Reason  string
	Message string
	// Resource is set when the rule is a lack of this resource. The amounts
	// are whole units, thousandths of a core for cpu.
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64
}

// MessagePrefix begins status.message of a pod that was not admitted.
const MessagePrefix = "Pod was rejected: "

// Reasons that are not a lack of a resource; the latter are OutOfPrefix and the
// resource's name.
const (
	OutOfPrefix               = "OutOf"
	ReasonNodeAffinity        = "NodeAffinity"
	ReasonNodeName            = "NodeName"
	ReasonNodePorts           = "NodePorts"
	ReasonTaints              = "TaintToleration"
	ReasonOSSelector          = "PodOSSelectorNodeLabelDoesNotMatch"
	ReasonOS                  = "PodOSNotSupported"
	ReasonSupplementalGroups  = "SupplementalGroupsPolicyNotSupported"
	nodeOS                    = "linux"
	staticPodSourceAnnotation = "kubernetes.io/config.source"
)

// Admit decides whether pod may run on node next to others: the pods that were
// admitted before and have not ended. It is Usage.Admit for callers that keep
// no Usage.
func Admit(node *v1.Node, others []*v1.Pod, pod *v1.Pod) Verdict {
	u := NewUsage()
	for _, p := range others {
		u.Add(p)
	}
	return u.Admit(node, pod)
}

// Admit decides whether pod may run on node next to what u holds; it does not
// add the pod.
func (u *Usage) Admit(node *v1.Node, pod *v1.Pod) Verdict {
	// These come first and alone: a critical pod must not evict anything when
	// they refuse.
	if want, ok := pod.Labels[v1.LabelOSStable]; ok && want != nodeOS {
		return refused([]Failure{{
			Reason:  ReasonOSSelector,
			Message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		}})
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != nodeOS {
		return refused([]Failure{{
			Reason:  ReasonOS,
			Message: "Failed to admit pod as the OS field doesn't match node OS",
		}})
	}
	if strictSupplementalGroups(pod) && !supportsStrictSupplementalGroups(node) {
		return refused([]Failure{{
			Reason:  ReasonSupplementalGroups,
			Message: "SupplementalGroupsPolicy=Strict is not supported in this node",
		}})
	}
	failures := u.lacking(node, pod)
	if ok, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !ok {
		failures = append(failures, predicate(ReasonNodeAffinity, "node(s) didn't match Pod's node affinity/selector"))
	}
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		failures = append(failures, predicate(ReasonNodeName, "node(s) didn't match the requested node name"))
	}
	if u.portsTaken(pod) {
		failures = append(failures, predicate(ReasonNodePorts, "node(s) didn't have free ports for the requested pod ports"))
	}
	if !static(pod) && hasUntoleratedNoExecute(node, pod) {
		failures = append(failures, predicate(ReasonTaints, "node(s) had taints that the pod didn't tolerate"))
	}
	return refused(failures)
}

// refused is the verdict on a list of failures; none means admitted.
func refused(failures []Failure) Verdict {
	if len(failures) == 0 {
		return Verdict{Admitted: true}
	}
	return Verdict{Reason: failures[0].Reason, Message: failures[0].Message, Failures: failures}
}

func predicate(name, text string) Failure {
	return Failure{Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, text)}
}

func insufficient(name v1.ResourceName, requested, used, capacity int64) Failure {
	return Failure{
		Reason: OutOfPrefix + string(name),
		Message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, requested, used, capacity),
		Resource: name, Requested: requested, Used: used, Capacity: capacity,
	}
}

// lacking compares the pod's requests with what is left: the number of pods
// first, then cpu, memory and ephemeral storage, then the others by name.
// Upstream looks at those in the random order of a map.
func (u *Usage) lacking(node *v1.Node, pod *v1.Pod) []Failure {
	var out []Failure
	allocatable := amounts(node.Status.Allocatable)
	if pods := allocatable[v1.ResourcePods]; int64(u.pods)+1 > pods {
		out = append(out, insufficient(v1.ResourcePods, 1, int64(u.pods), pods))
	}
	want := amounts(incomingRequests(pod, node))
	var names []v1.ResourceName
	for name, n := range want {
		if n > 0 && name != v1.ResourcePods {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := rank(names[i]), rank(names[j])
		return a < b || a == b && names[i] < names[j]
	})
	for _, name := range names {
		if used := u.requested[name]; want[name] > allocatable[name]-used {
			out = append(out, insufficient(name, want[name], used, allocatable[name]))
		}
	}
	return out
}

func rank(name v1.ResourceName) int {
	switch name {
	case v1.ResourceCPU:
		return 0
	case v1.ResourceMemory:
		return 1
	case v1.ResourceEphemeralStorage:
		return 2
	}
	return 3
}

// incomingRequests are the requests of a pod that arrives. Extended resources
// that the node does not have at all are left out of its containers, as a kubelet
// does: they may belong to the cluster and not to the node, or be served by a
// claim. In the overhead they count.
func incomingRequests(pod *v1.Pod, node *v1.Node) v1.ResourceList {
	// A shallow copy: only the two lists of containers are replaced.
	seen := *pod
	seen.Spec.Containers = withoutUnknown(pod.Spec.Containers, node)
	seen.Spec.InitContainers = withoutUnknown(pod.Spec.InitContainers, node)
	// No status: what an earlier kubelet allocated says nothing about now.
	return resourcehelper.PodRequests(&seen, resourcehelper.PodResourcesOptions{})
}

// withoutUnknown copies the containers without the extended resources that the
// node lacks.
func withoutUnknown(containers []v1.Container, node *v1.Node) []v1.Container {
	out := make([]v1.Container, len(containers))
	for i := range containers {
		out[i] = containers[i]
		requests := v1.ResourceList{}
		for name, q := range containers[i].Resources.Requests { // order: fills another map, key by key
			if _, known := node.Status.Allocatable[name]; known || !Extended(name) {
				requests[name] = q
			}
		}
		out[i].Resources.Requests = requests
	}
	return out
}

// admittedRequests are the requests of a pod that runs. With an in-place resize
// under way, of containers or of the whole pod, they are the larger of desired
// and allocated.
func admittedRequests(pod *v1.Pod) v1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
}

// amounts turns quantities into whole units, thousandths of a core for cpu, and drops the
// resources that are not counted.
func amounts(list v1.ResourceList) map[v1.ResourceName]int64 {
	// resource name -> amount
	out := make(map[v1.ResourceName]int64, len(list))
	for name, q := range list {
		switch {
		case name == v1.ResourceCPU:
			out[name] = bounded(q, q.MilliValue)
		case counted(name):
			out[name] = bounded(q, q.Value)
		}
	}
	return out
}

// bounded reads a quantity whose int64 form may have overflowed: Value gives 0
// or less for amounts such as 50E, which must never read as "asks for nothing".
func bounded(q resource.Quantity, value func() int64) int64 {
	n := value()
	if n <= 0 && q.Sign() > 0 {
		return math.MaxInt64
	}
	return n
}

func counted(name v1.ResourceName) bool {
	switch name {
	case v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
		return true
	}
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) ||
		Extended(name)
}

// Extended reports whether name is an extended resource: a qualified name with
// a domain outside kubernetes.io that can also be put under a quota.
func Extended(name v1.ResourceName) bool {
	s := string(name)
	if !strings.Contains(s, "/") || strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(s, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+s)) == 0
}

func strictSupplementalGroups(pod *v1.Pod) bool {
	sc := pod.Spec.SecurityContext
	return sc != nil && sc.SupplementalGroupsPolicy != nil &&
		*sc.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict
}

func supportsStrictSupplementalGroups(node *v1.Node) bool {
	f := node.Status.Features
	return f != nil && f.SupplementalGroupsPolicy != nil && *f.SupplementalGroupsPolicy
}

// static reports whether the pod came from the node itself, not the API server.
func static(pod *v1.Pod) bool {
	source, ok := pod.Annotations[staticPodSourceAnnotation]
	return ok && source != "api"
}

// hasUntoleratedNoExecute reports whether the node has a NoExecute taint that the pod does not
// tolerate. A kubelet does not refuse pods for NoSchedule taints, which apply to schedulers.
func hasUntoleratedNoExecute(node *v1.Node, pod *v1.Pod) bool {
	_, found := corev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		func(t *v1.Taint) bool { return t.Effect == v1.TaintEffectNoExecute }, false)
	return found
}
