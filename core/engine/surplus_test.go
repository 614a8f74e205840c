// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// A gang that has the pods that it needs is not blocked, although one beyond them fits no node: no capacity may be held
// for that one. Fault: extrasHold.
func TestSurplusPodsDoNotBlockTheirGang(t *testing.T) {
	p := newPlayed(t, func(*engine.Profile) {})
	p.nodes("n")
	p.send(engine.Synced{})
	p.tick(1)
	cpu := func(amount string) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(amount)}
		}
	}
	p.gang("g", cpu("1")) // it needs three
	p.gangPod("surplus", "g", cpu("4"))
	rejected := 0
	for range 8 { // at the first attempt with the gang, and again by the timeout of unschedulable pods
		for p.play(); p.engine.Ready(); {
			for _, f := range p.engine.Step(engine.Cycle{}) {
				if e, is := f.(engine.WriteEvent); is && e.Pod.Name == "surplus" {
					rejected++
				}
			}
		}
		p.tick(200)
	}
	if rejected < 2 {
		t.Errorf("the surplus pod was tried %d times", rejected)
	}
	for _, g := range p.engine.State().Blocked.Gangs {
		if g.Since != 0 {
			t.Errorf("the gang is blocked: %+v", g)
		}
	}
}
