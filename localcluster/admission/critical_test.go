// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func named(name string, qos v1.PodQOSClass, priority int32, requests ...string) *v1.Pod {
	return with(testPod(requests...), func(p *v1.Pod) {
		p.Name = name
		p.Status.QOSClass = qos
		p.Spec.Priority = &priority
	})
}

const sysCritical = criticalPriority

// Each row is a rule of who has to go.
func TestPreempt(t *testing.T) {
	const best, burst, sure = v1.PodQOSBestEffort, v1.PodQOSBurstable, v1.PodQOSGuaranteed
	for name, test := range map[string]struct {
		pod     *v1.Pod
		others  []*v1.Pod
		victims []string
		// reason is empty when the pod must be admitted.
		reason string
	}{
		"not critical: stays refused": {named("p", burst, 1000, "cpu", "4"),
			[]*v1.Pod{named("a", burst, 0, "cpu", "4")}, nil, "OutOfcpu"},
		"one is enough": {named("p", burst, sysCritical, "cpu", "2"),
			[]*v1.Pod{named("a", burst, 0, "cpu", "1"), named("b", burst, 0, "cpu", "2"), named("c", burst, 0, "cpu", "1")},
			[]string{"b"}, ""},
		"burstable before guaranteed": {named("p", burst, sysCritical, "cpu", "2"),
			[]*v1.Pod{named("a", sure, 0, "cpu", "2"), named("b", burst, 0, "cpu", "2")}, []string{"b"}, ""},
		"guaranteed only for the rest": {named("p", burst, sysCritical, "cpu", "3"),
			[]*v1.Pod{named("a", sure, 0, "cpu", "2"), named("b", burst, 0, "cpu", "2")}, []string{"b", "a"}, ""},
		"best effort gives its place": {named("p", burst, sysCritical),
			[]*v1.Pod{named("a", burst, 0), named("b", best, 0)}, []string{"b"}, ""},
		"critical ones of the same rank stay": {named("p", burst, sysCritical, "cpu", "2"),
			[]*v1.Pod{named("a", burst, sysCritical, "cpu", "4")}, nil, "UnexpectedAdmissionError"},
		"critical ones of lower rank go": {named("p", burst, sysCritical+1000, "cpu", "2"),
			[]*v1.Pod{named("a", burst, sysCritical, "cpu", "4")}, []string{"a"}, ""},
		"other failures are reported instead": {with(named("p", burst, sysCritical, "cpu", "4"), func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{"zone": "west"}
		}), []*v1.Pod{named("a", burst, 0, "cpu", "4")}, nil, "NodeAffinity"},
	} {
		t.Run(name, func(t *testing.T) {
			node := testNode()
			if name == "best effort gives its place" {
				node = testNode("pods", "2")
			}
			result := Preempt(test.pod, test.others, Admit(node, test.others, test.pod))
			var victims []string
			for _, v := range result.Victims {
				victims = append(victims, v.Name)
			}
			if result.Verdict.Admitted != (test.reason == "") || result.Verdict.Reason != test.reason || !slices.Equal(victims, test.victims) {
				t.Errorf("verdict %+v, victims %v; want reason %q, victims %v", result.Verdict, victims, test.reason, test.victims)
			}
		})
	}
}

func TestPreemptNamesMissingAmounts(t *testing.T) {
	pod := named("p", v1.PodQOSBurstable, sysCritical, "cpu", "5")
	got := Preempt(pod, nil, Admit(testNode(), nil, pod)).Verdict.Message
	if !strings.HasSuffix(got, "no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]") {
		t.Errorf("message is %q", got)
	}
}

// A critical pod that fits the empty node is always admitted, and fits once the
// victims are gone. Mutant: taking one class's missing amount for the whole.
func TestPreemptFreesEnough(t *testing.T) {
	classes := []v1.PodQOSClass{v1.PodQOSBestEffort, v1.PodQOSBurstable, v1.PodQOSGuaranteed}
	rapid.Check(t, func(t *rapid.T) {
		node := testNode("pods", "6")
		var others []*v1.Pod
		for range rapid.IntRange(0, 8).Draw(t, "others") {
			pod := named("o", rapid.SampledFrom(classes).Draw(t, "class"), 0,
				"cpu", rapid.SampledFrom([]string{"0", "500m", "1", "2"}).Draw(t, "cpu"),
				"memory", rapid.SampledFrom([]string{"0", "1Gi", "3Gi"}).Draw(t, "memory"))
			if Admit(node, others, pod).Admitted {
				others = append(others, pod)
			}
		}
		pod := named("p", v1.PodQOSBurstable, sysCritical,
			"cpu", rapid.SampledFrom([]string{"1", "3", "4"}).Draw(t, "want cpu"),
			"memory", rapid.SampledFrom([]string{"0", "4Gi", "8Gi"}).Draw(t, "want memory"))
		result := Preempt(pod, others, Admit(node, others, pod))
		if !result.Verdict.Admitted {
			t.Fatalf("a critical pod that fits the empty node is refused: %+v", result.Verdict)
		}
		stay := slices.DeleteFunc(slices.Clone(others), func(o *v1.Pod) bool { return slices.Contains(result.Victims, o) })
		if v := Admit(node, stay, pod); !v.Admitted {
			t.Fatalf("evicting %d of %d pods is not enough: %+v", len(result.Victims), len(others), v)
		}
	})
}
