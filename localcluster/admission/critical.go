// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// What a kubelet writes about a pod that it evicts for a critical one.
const (
	ReasonPreempting  = "Preempting"
	MessagePreempting = "Preempted in order to admit critical pod"
	reasonNoVictims   = "UnexpectedAdmissionError"
	criticalPriority  = 2_000_000_000
	mirrorAnnotation  = "kubernetes.io/config.mirror"
	preemptionMessage = "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: "
	noVictimsMessage  = "no set of running pods found to reclaim resources: "
)

// Critical reports whether a kubelet evicts other pods for the pod: static and mirror pods, and
// those of the priority classes system-*-critical.
func Critical(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[mirrorAnnotation]
	return static(pod) || mirror || pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority
}

// Preemption is the result for a critical pod that did not fit.
type Preemption struct {
	// Verdict is the final one.
	Verdict Verdict
	// Victims are the pods to evict first, if it is admitted.
	Victims []*v1.Pod
}

// Preempt decides about a pod that verdict refuses. Pods that are not critical
// stay refused. For a critical pod a lack of resources alone is no reason to
// refuse: pods of less importance are evicted, as few as possible, best effort
// before burstable before guaranteed (pkg/kubelet/preemption, 1.37.1). Without
// enough of them the pod is refused.
func Preempt(pod *v1.Pod, others []*v1.Pod, verdict Verdict) Preemption {
	if verdict.Admitted || !Critical(pod) {
		return Preemption{Verdict: verdict}
	}
	var rest []Failure
	var missing needs
	for _, f := range verdict.Failures {
		if f.Resource == "" {
			rest = append(rest, f)
		} else {
			missing = append(missing, need{f.Resource, f.Requested - (f.Capacity - f.Used)})
		}
	}
	// A verdict without resource failures, or one that free capacity does not remove.
	if len(rest) > 0 {
		return Preemption{Verdict: refused(rest)}
	}
	candidates := byQOS(pod, others)
	best, burst, sure := candidates[v1.PodQOSBestEffort], candidates[v1.PodQOSBurstable], candidates[v1.PodQOSGuaranteed]
	if left := missing.less(best).less(burst).less(sure); len(left) > 0 {
		message := preemptionMessage + noVictimsMessage + left.String()
		return Preemption{Verdict: refused([]Failure{{Reason: reasonNoVictims, Message: message}})}
	}
	// From the most valued class down: of each as few as the less valued ones,
	// taken as a whole, cannot give.
	sureVictims := nearest(sure, missing.less(best).less(burst))
	burstVictims := nearest(burst, missing.less(best).less(sureVictims))
	bestVictims := nearest(best, missing.less(burstVictims).less(sureVictims))
	victims := append(append(bestVictims, burstVictims...), sureVictims...)
	return Preemption{Verdict: Verdict{Admitted: true}, Victims: victims}
}

// byQOS groups the pods that pod may evict: class -> pods.
func byQOS(pod *v1.Pod, others []*v1.Pod) map[v1.PodQOSClass][]*v1.Pod {
	out := map[v1.PodQOSClass][]*v1.Pod{}
	for _, other := range others {
		if !Critical(other) || outranks(pod, other) {
			out[other.Status.QOSClass] = append(out[other.Status.QOSClass], other)
		}
	}
	return out
}

func outranks(a, b *v1.Pod) bool {
	return a.Spec.Priority != nil && b.Spec.Priority != nil && *a.Spec.Priority > *b.Spec.Priority
}

// need is an amount of a resource that is missing; needs holds only positive
// ones.
type need struct {
	name   v1.ResourceName
	amount int64
}

type needs []need

// less is what is still missing when the pods are gone.
func (n needs) less(pods []*v1.Pod) needs {
	var out needs
	for _, want := range n {
		for _, p := range pods {
			want.amount -= request(p, want.name)
		}
		if want.amount > 0 {
			out = append(out, want)
		}
	}
	return out
}

func (n needs) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for _, want := range n {
		fmt.Fprintf(&b, "(res: %v, q: %d), ", want.name, want.amount)
	}
	b.WriteByte(']')
	return b.String()
}

// distance is 0 when the pod gives all that is missing, and grows by at most 1
// for each resource of which it does not.
func (n needs) distance(pod *v1.Pod) float64 {
	sum := 0.0
	for _, want := range n {
		if left := float64(want.amount - request(pod, want.name)); left > 0 {
			share := left / float64(want.amount)
			sum += float64(share * share)
		}
	}
	return sum
}

// nearest takes pods until nothing is missing, always the one that leaves
// least; of equals the one that holds less.
func nearest(pods []*v1.Pod, missing needs) []*v1.Pod {
	var out []*v1.Pod
	left := append([]*v1.Pod(nil), pods...)
	for len(missing) > 0 && len(left) > 0 {
		at := 0
		for i := range left {
			a, b := missing.distance(left[i]), missing.distance(left[at])
			if a < b || a == b && smaller(left[i], left[at]) {
				at = i
			}
		}
		out = append(out, left[at])
		missing = missing.less(left[at : at+1])
		left[at] = left[len(left)-1]
		left = left[:len(left)-1]
	}
	return out
}

// smaller reports whether a requests less than b: by memory, then by cpu; equal counts as smaller.
func smaller(a, b *v1.Pod) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if x, y := request(a, name), request(b, name); x != y {
			return x < y
		}
	}
	return true
}

// request is what a pod that is evicted is taken to give back. A kubelet reads
// it in another way than at admission: a request for the pod as a whole hides
// those of its containers, and overhead counts only next to a request.
func request(pod *v1.Pod, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipContainerLevelResources: resourcehelper.IsPodLevelResourcesSet(pod),
		ExcludeOverhead:             true,
	})[name]
	if overhead, ok := pod.Spec.Overhead[name]; ok && !q.IsZero() {
		q.Add(overhead)
	}
	return amounts(v1.ResourceList{name: q})[name]
}
