// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

// verdict is one side's answer.
type verdict struct {
	admitted        bool
	reason, message string
	// failures as "reason: message" of every rule that refused, sorted.
	failures []string
}

// recorder keeps the failures that upstream would try to help by evicting.
type recorder struct {
	reasons []lifecycle.PredicateFailureReason
}

func (r *recorder) HandleAdmissionFailure(_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason,
	_ lifecycle.Operation) ([]lifecycle.PredicateFailureReason, error) {
	r.reasons = reasons
	return reasons, nil
}

func upstream(node *v1.Node, others []*v1.Pod, pod *v1.Pod) verdict {
	// Upstream writes a label into the node it is given.
	node = node.DeepCopy()
	rec := &recorder{}
	handler := lifecycle.NewPredicateAdmitHandler(
		func(context.Context, bool) (*v1.Node, error) { return node, nil }, rec,
		func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil })
	res := handler.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others})
	out := verdict{admitted: res.Admit, reason: res.Reason, message: res.Message}
	for _, r := range rec.reasons {
		switch r := r.(type) {
		case *lifecycle.InsufficientResourceError:
			out.failures = append(out.failures, fmt.Sprintf("%s%s: %s", lifecycle.InsufficientResourcePrefix, r.ResourceName, r.Error()))
		case *lifecycle.PredicateFailureError:
			out.failures = append(out.failures, fmt.Sprintf("%s: %s", r.PredicateName, r.Error()))
		}
	}
	sort.Strings(out.failures)
	return out
}

func ours(node *v1.Node, others []*v1.Pod, pod *v1.Pod) verdict {
	v := admission.Admit(node, others, pod)
	out := verdict{admitted: v.Admitted, reason: v.Reason, message: v.Message}
	for _, f := range v.Failures {
		out.failures = append(out.failures, f.Reason+": "+f.Message)
	}
	sort.Strings(out.failures)
	return out
}

// early are the reasons that end admission before the rules are looked at; they
// are not among upstream's failures.
var early = []string{lifecycle.PodOSSelectorNodeLabelDoesNotMatch, lifecycle.PodOSNotSupported, lifecycle.SupplementalGroupsPolicyNotSupported}

// compare returns the difference, or "". Of several extended resources that are
// short upstream names a random one first, so the reason is compared only when
// it is another rule's.
func compare(up, our verdict) string {
	if up.admitted != our.admitted {
		return fmt.Sprintf("upstream %+v, kumiki %+v", up, our)
	}
	if slices.Contains(early, up.reason) {
		our.failures = nil
	}
	if !slices.Equal(up.failures, our.failures) {
		return fmt.Sprintf("failures: upstream %q, kumiki %q", up.failures, our.failures)
	}
	if len(up.failures) > 1 && slices.Contains(up.failures, our.reason+": "+our.message) && our.reason != up.reason && scalar(up.reason) && scalar(our.reason) {
		return ""
	}
	if up.reason != our.reason || up.message != our.message {
		return fmt.Sprintf("upstream %s: %s, kumiki %s: %s", up.reason, up.message, our.reason, our.message)
	}
	return ""
}

func scalar(reason string) bool {
	switch reason {
	case lifecycle.OutOfCPU, lifecycle.OutOfMemory, lifecycle.OutOfEphemeralStorage, lifecycle.OutOfPods:
		return false
	}
	return len(reason) > len(lifecycle.InsufficientResourcePrefix) && reason[:len(lifecycle.InsufficientResourcePrefix)] == lifecycle.InsufficientResourcePrefix
}

// arriving is a pod as it reaches the kubelet: bound to the node, now and then
// to another one, with the fields only a kubelet reads.
func arriving(r *gen.Rand, pod *v1.Pod, node string) *v1.Pod {
	p := gen.Bind(pod, node)
	p.Spec.SchedulingGates = nil
	if r.Rare(30) {
		p.Spec.NodeName = "another"
	}
	if r.Rare(25) {
		p.Labels = map[string]string{v1.LabelOSStable: gen.Pick(r, "linux", "windows")}
	}
	if r.Rare(25) {
		p.Spec.OS = &v1.PodOS{Name: gen.Pick(r, v1.Linux, v1.Windows)}
	}
	if r.Rare(25) {
		policy := gen.Pick(r, v1.SupplementalGroupsPolicyStrict, v1.SupplementalGroupsPolicyMerge)
		p.Spec.SecurityContext = &v1.PodSecurityContext{SupplementalGroupsPolicy: &policy}
	}
	return p
}

func TestKubeletAdmissionAgrees(t *testing.T) {
	klog.SetLogger(logr.Discard()) // upstream logs each refusal
	const scenarios = 60
	cases, refused := 0, map[string]int{} // reason -> times
	for n := range scenarios {
		s := gen.Make(21, n, gen.Sizes{Pods: 12})
		r := gen.NewRand(22, uint64(n))
		on := map[string][]*v1.Pod{} // node name -> running pods
		for _, p := range s.Bound {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
		for _, node := range s.Nodes {
			if r.Rare(3) {
				supported := r.Chance(50)
				node.Status.Features = &v1.NodeFeatures{SupplementalGroupsPolicy: &supported}
			}
			for _, a := range s.Asks {
				pod := arriving(r, a.Pod, node.Name)
				up, our := upstream(node, on[node.Name], pod), ours(node, on[node.Name], pod)
				if diff.Overflows(pod) {
					// Upstream reads the amount as 0; the local cluster refuses it.
					if our.admitted {
						t.Fatalf("%s: a pod past int64 is admitted", s.Name)
					}
					continue
				}
				cases++
				if !up.admitted {
					refused[up.reason]++
				}
				if d := compare(up, our); d != "" {
					path := fmt.Sprintf("%s/case.yaml", t.TempDir())
					small := *s
					small.Nodes, small.Bound, small.Nominated = []*v1.Node{node}, on[node.Name], nil
					small.Asks = s.Asks[:0:0]
					a.Pod = pod
					small.Asks = append(small.Asks, a)
					if err := small.Save(path); err != nil {
						t.Error(err)
					}
					text, _ := os.ReadFile(path)
					t.Fatalf("%s, node %s, pod %s: %s\n%s", s.Name, node.Name, pod.Name, d, text)
				}
			}
		}
	}
	t.Logf("%d cases, refused by reason: %v", cases, refused)
	for _, reason := range append(early, lifecycle.OutOfCPU, lifecycle.OutOfMemory, lifecycle.OutOfEphemeralStorage, lifecycle.OutOfPods,
		"OutOfhugepages-2Mi", "OutOfexample.com/gpu", "NodeAffinity", "NodeName", "NodePorts", "TaintToleration") {
		if refused[reason] == 0 {
			t.Errorf("no case was refused for %s", reason)
		}
	}
}
