// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Exception is one intended difference from upstream. This file is the whole
// list; a change to it is reviewed as a change of behaviour. docs/compatibility-decisions.md
// describes each for users.
type Exception struct {
	Name string
	// Why we differ.
	Why string
	// Applies reports whether the case is of this kind.
	Applies func(s *scenario.Scenario, p *v1.Pod) bool
	// Holds says whether our answer is the one we promise instead of upstream's.
	Holds func(s *scenario.Scenario, up, our *outcome.Outcome, p *v1.Pod) bool
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
		Applies: func(_ *scenario.Scenario, p *v1.Pod) bool { return StatesOverflow(p) },
		Holds: func(s *scenario.Scenario, up, our *outcome.Outcome, p *v1.Pod) bool {
			if s.Profile.Filters("NodeResourcesFit") && Overflows(p) {
				return our.Gate != nil || our.Infeasible()
			}
			// Nothing filters by requests, or a pod-level request stands for what the
			// containers state: only scores read the amount, and upstream's are wild.
			return slices.Equal(up.Feasible, our.Feasible)
		},
	},
}

// Overflows reports whether the sum of the pod's requests does not fit int64, in the unit in
// which it is counted (milli for cpu).
func Overflows(p *v1.Pod) bool {
	return tooLarge(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
}

// StatesOverflow reports whether the pod's requests overflow, or those of its containers
// without pod-level requests do.
func StatesOverflow(p *v1.Pod) bool {
	return Overflows(p) || tooLarge(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{SkipPodLevelResources: true}))
}

func tooLarge(list v1.ResourceList) bool {
	for name, q := range list { // order: any of them will do
		limit := largest
		if name == v1.ResourceCPU {
			limit = largestCPU
		}
		if q.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

var largest, largestCPU = resource.MustParse("9223372036854775807"), resource.MustParse("9223372036854775")

// Framing is how upstream is asked so that an answer means one thing. Each entry
// is a difference that users can see, and is documented like an exception.
var Framing = []string{
	"percentageOfNodesToScore is 100: kumiki looks at every node",
	"OpportunisticBatching is off: kumiki does not reuse the list of the pod before",
	"snapshots are taken anew: upstream counts the nodes that hold an image per node as of that node's last change",
	"ports are put anew when a pod leaves: upstream frees a port that another pod of the node holds too",
	"no history takes a request of \"0\" away: upstream calls that a scale-down though it frees nothing, and the API server allows no removal",
	"no device class leaves an extended resource that another class states: upstream 1.37.1 then forgets the other class",
	"no device is allocated to two claims at once: upstream takes it for free when one of them goes",
	"no storage states a maximal size of volumes without a capacity: upstream 1.37.1 crashes on its score",
	"no node reaches two storages of one class: upstream scores by any of them",
	"no profile balances by a resource that a device class backs: upstream 1.37.1 crashes on it (a cache that is nil)",
	"raw scores of DynamicResources and VolumeBinding that are 0 everywhere are no scores: " +
		"upstream also scores pods without claims",
	"reasons of one node are sorted: upstream lists extended resources in map order",
}

// Excepted reports whether any exception applies to the case.
func Excepted(s *scenario.Scenario, p *v1.Pod) bool { return exception(s, p) != nil }

// exception returns the exception that applies to the case, or nil.
func exception(s *scenario.Scenario, p *v1.Pod) *Exception {
	for i := range Exceptions {
		if Exceptions[i].Applies(s, p) {
			return &Exceptions[i]
		}
	}
	return nil
}
