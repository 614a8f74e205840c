// SPDX-License-Identifier: Apache-2.0

package diff

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Exception is one difference from upstream that we mean. This file is the whole
// list; a change to it is reviewed as a change of behaviour. docs/compatibility.md
// tells users about each.
type Exception struct {
	Name string
	// Why we differ.
	Why string
	// Applies says whether the case is of this kind at all.
	Applies func(s *scenario.Scenario, p *v1.Pod) bool
	// Holds says whether our answer is the one we promise instead of upstream's.
	Holds func(up, our *outcome.Outcome) bool
}

// Exceptions are checked in order; the first that applies decides.
//
// Ties need no entry: the set of best nodes is compared, and the draw inside it
// is ours by design.
var Exceptions = []Exception{
	{
		Name: "quantity overflow",
		Why: "a request past int64 (50E of memory) reads as 0 in upstream, so the pod lands anywhere; " +
			"kumiki saturates, marks the amount and lets the pod land nowhere",
		Applies: func(_ *scenario.Scenario, p *v1.Pod) bool { return overflows(p) },
		Holds:   func(_, our *outcome.Outcome) bool { return our.Gate != nil || our.Infeasible() },
	},
}

// overflows says whether a request of the pod does not fit int64 in the unit it
// is counted in (milli for cpu).
func overflows(p *v1.Pod) bool {
	lists := []v1.ResourceList{p.Spec.Overhead}
	if p.Spec.Resources != nil {
		lists = append(lists, p.Spec.Resources.Requests)
	}
	for i := range p.Spec.Containers {
		lists = append(lists, p.Spec.Containers[i].Resources.Requests)
	}
	for i := range p.Spec.InitContainers {
		lists = append(lists, p.Spec.InitContainers[i].Resources.Requests)
	}
	for _, l := range lists {
		for name, q := range l {
			limit := resource.MustParse("9223372036854775807")
			if name == v1.ResourceCPU {
				limit = resource.MustParse("9223372036854775")
			}
			if q.Cmp(limit) > 0 {
				return true
			}
		}
	}
	return false
}

// exception returns the exception that applies to the case, or nil.
func exception(s *scenario.Scenario, p *v1.Pod) *Exception {
	for i := range Exceptions {
		if Exceptions[i].Applies(s, p) {
			return &Exceptions[i]
		}
	}
	return nil
}
