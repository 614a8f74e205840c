// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

// The defaults for scores are added without a second look at a pod whose containers say all they want; the slow twin
// always looks twice. Mutants: statesCPUAndMemory leaves out init containers, or asks for one of the two only.
func TestDefaultsOfScoresAgreeWithTheSlowTwin(t *testing.T) {
	containers := rapid.Custom(func(t *rapid.T) []v1.Container {
		list := make([]v1.Container, rapid.IntRange(0, 3).Draw(t, "containers"))
		for i := range list {
			requests := v1.ResourceList{}
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
				if rapid.Bool().Draw(t, "states "+string(name)) {
					requests[name] = *apiresource.NewMilliQuantity(rapid.Int64Range(0, 400_000_000_000).Draw(t, string(name)), apiresource.DecimalSI)
				}
			}
			list[i].Resources.Requests = requests
		}
		return list
	})
	always := v1.ContainerRestartPolicyAlways
	rapid.Check(t, func(t *rapid.T) {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: containers.Draw(t, "containers"), InitContainers: containers.Draw(t, "init containers")}}
		for i := range p.Spec.InitContainers {
			if rapid.Bool().Draw(t, "sidecar") {
				p.Spec.InitContainers[i].RestartPolicy = &always
			}
		}
		want := cpuAndMemory(resource.PodRequests(p, resource.PodResourcesOptions{NonMissingContainerRequests: defaults}))
		if s := specOf(p); s.ScoreNonZero != want || s.HeldNonZero != want {
			t.Fatalf("scored with %v, held with %v, want %v", s.ScoreNonZero, s.HeldNonZero, want)
		}
	})
}
