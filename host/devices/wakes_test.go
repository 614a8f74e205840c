// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

func TestEventsThatAreRegistered(t *testing.T) {
	var got []string
	for _, wk := range newWorld(t).pl.Wakes() {
		hint := "always"
		if wk.Hint != nil {
			hint = "hint"
		}
		for _, a := range []plugin.Action{plugin.Add, plugin.Delete, plugin.Update, plugin.UpdateNodeLabel,
			plugin.UpdateNodeTaint,
			plugin.UpdateNodeAllocatable, plugin.UpdatePodGeneratedResourceClaim, plugin.UpdatePodLabel} {
			if e := (plugin.Event{Resource: wk.Event.Resource, Action: a}); wk.Event.Matches(e) {
				got = append(got, string(e.Resource)+a.String()+" "+hint)
			}
		}
	}
	expect(t, "events", got, []string{
		"NodeAdd always", "NodeUpdateNodeLabel always", "NodeUpdateNodeAllocatable always",
		"resource.k8s.io/ResourceClaimAdd hint", "resource.k8s.io/ResourceClaimDelete hint",
		"resource.k8s.io/ResourceClaimUpdate hint",
		"resource.k8s.io/ResourceClaimUpdateNodeLabel hint", "resource.k8s.io/ResourceClaimUpdateNodeTaint hint",
		"resource.k8s.io/ResourceClaimUpdateNodeAllocatable hint",
		"resource.k8s.io/ResourceClaimUpdatePodGeneratedResourceClaim hint",
		"resource.k8s.io/ResourceClaimUpdatePodLabel hint",
		"TargetPodUpdatePodGeneratedResourceClaim hint",
		"resource.k8s.io/DeviceClassAdd always", "resource.k8s.io/DeviceClassUpdate always",
		"resource.k8s.io/DeviceClassUpdateNodeLabel always", "resource.k8s.io/DeviceClassUpdateNodeTaint always",
		"resource.k8s.io/DeviceClassUpdateNodeAllocatable always",
		"resource.k8s.io/DeviceClassUpdatePodGeneratedResourceClaim always",
		"resource.k8s.io/DeviceClassUpdatePodLabel always",
		"resource.k8s.io/ResourceSliceAdd always", "resource.k8s.io/ResourceSliceUpdate always",
		"resource.k8s.io/ResourceSliceUpdateNodeLabel always", "resource.k8s.io/ResourceSliceUpdateNodeTaint always",
		"resource.k8s.io/ResourceSliceUpdateNodeAllocatable always",
		"resource.k8s.io/ResourceSliceUpdatePodGeneratedResourceClaim always",
		"resource.k8s.io/ResourceSliceUpdatePodLabel always",
	})
}

// change sets a claim and asks the hint for a pod.
func (w *world) change(p *cluster.Pod, c *resourceapi.ResourceClaim) plugin.Hint {
	old := w.set(c)
	return claimHint(p, plugin.Change{OldObject: old, NewObject: c, State: w.s()})
}

// hint-any-claim, hint-no-deallocation, hint-unchanged-status
func TestWhichChangesOfClaimsWake(t *testing.T) {
	w := twoGPUs(t)
	p := w.pod("p", uses("mine"))
	expect(t, "another claim comes, mine is missing", w.change(p, newClaim("other")), plugin.SkipHint)
	expect(t, "mine comes", w.change(p, newClaim("mine")), plugin.QueueHint)
	expect(t, "another is allocated", w.change(p, allocated(newClaim("other"), "a", "d0")), plugin.SkipHint)
	expect(t, "another gives its device back", w.change(p, newClaim("other")), plugin.QueueHint)
	labelled := newClaim("mine")
	labelled.Labels = map[string]string{"a": "b"}
	expect(t, "mine gets a label", w.change(p, labelled), plugin.SkipHint)
	expect(t, "mine is allocated", w.change(p, allocated(newClaim("mine"), "a", "d0")), plugin.QueueHint)
	gone := func(c *resourceapi.ResourceClaim) plugin.Hint {
		return claimHint(p, plugin.Change{OldObject: c, State: w.s()})
	}
	expect(t, "another is deleted", gone(newClaim("other")), plugin.SkipHint)
	expect(t, "another is deleted with its device", gone(allocated(newClaim("other"), "a", "d0")), plugin.QueueHint)
	going := newClaim("mine")
	now := metav1.Now()
	going.DeletionTimestamp = &now
	expect(t, "mine is going", w.change(p, going), plugin.SkipHint)
	expect(t, "a pod of extended resources, a device is free", w.change(w.pod("q", asks("example.com/gpu", "1")),
		newClaim("third")), plugin.SkipHint)
}

// The finalizer is no deallocation, though what was assumed before had an allocation.
func TestTheFinalizerWakesNoPod(t *testing.T) {
	w := twoGPUs(t)
	w.claim("mine", want("r", 1))
	w.claim("other", want("r", 1))
	w.place(w.pod("p", uses("mine")), "a")
	c := w.api("mine")
	c.Finalizers = []string{resourceapi.Finalizer}
	expect(t, "hint", w.change(w.pod("q", uses("other")), c), plugin.SkipHint)
}

func TestClaimsMadeForAPodWakeIt(t *testing.T) {
	w := twoGPUs(t)
	before, after := w.pod("p", generated("gpu", "")), w.pod("p", generated("gpu", "p-gpu"))
	hint := func(of, now *cluster.Pod) plugin.Hint {
		return podHint(of, plugin.Change{OldPod: of, NewPod: now, State: w.s()})
	}
	expect(t, "named, not seen", hint(before, after), plugin.SkipHint)
	owned := newClaim("p-gpu", want("r", 1))
	controller := true
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-p",
		Controller: &controller}}
	w.set(owned)
	expect(t, "named and seen", hint(before, after), plugin.QueueHint)
}
