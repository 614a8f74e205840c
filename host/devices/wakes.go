// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Wakes registers for nodes (slices and allocations select them by label, and a device plugin may begin to offer what
// a class backs), claims, claims generated for the pod, and any change of classes and slices.
func (pl *Plugin) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject,
			Action: plugin.Add | plugin.UpdateNodeLabel | plugin.UpdateNodeAllocatable}},
		{Event: plugin.Event{Resource: plugin.DeviceClaimObject, Action: plugin.Add | plugin.Update | plugin.Delete},
			Hint: claimHint},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodGeneratedResourceClaim},
			Hint: podHint},
		{Event: plugin.Event{Resource: plugin.DeviceClassObject, Action: plugin.Add | plugin.Update}},
		{Event: plugin.Event{Resource: plugin.ResourceSliceObject, Action: plugin.Add | plugin.Update}},
	}
}

// claimHint wakes pods whose claim was created or has got another status, and all others when devices become free.
// The first observed version with an allocation differs from the assumed one by its timestamp, so that pods that wait
// for the write wake. It is called for every waiting pod on every change of any claim, so a change that concerns
// another pod is recognised by name.
//
// A claim that is deleted with its devices frees them; one without gives nothing.
func claimHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	if gone, ok := ch.OldObject.(*resourceapi.ResourceClaim); ok && ch.NewObject == nil {
		if gone.Status.Allocation == nil {
			return plugin.SkipHint
		}
		return plugin.QueueHint
	}
	shown, ok := ch.NewObject.(*resourceapi.ResourceClaim)
	if !ok {
		return plugin.QueueHint
	}
	was, _ := ch.OldObject.(*resourceapi.ResourceClaim)
	freed := was != nil && was.Status.Allocation != nil && shown.Status.Allocation == nil
	if freed {
		freed = now(ch.State, shown).Status.Allocation == nil
	}
	if !freed && !names(p, shown) {
		return plugin.SkipHint
	}
	uses := false
	if p.Spec.Devices != nil {
		claims, err := claimsOf(ch.State, p)
		if err != nil {
			return plugin.SkipHint
		}
		uses = slices.ContainsFunc(claims, func(c *resourceapi.ResourceClaim) bool { return c.UID == shown.UID })
	}
	switch {
	case freed:
		return plugin.QueueHint
	case !uses:
		return plugin.SkipHint
	case was == nil:
		return plugin.QueueHint
	case apiequality.Semantic.DeepEqual(&was.Status, &now(ch.State, shown).Status):
		return plugin.SkipHint
	}
	return plugin.QueueHint
}

// now returns a changed claim with what is decided about it and not yet observed.
func now(s cluster.Snapshot, shown *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	if claim, err := claimNow(s, shown.Namespace, shown.Name); err == nil {
		return claim
	}
	return shown
}

// names reports whether a pod names a claim of this name.
func names(p *cluster.Pod, claim *resourceapi.ResourceClaim) bool {
	if p.Spec.Devices == nil || p.Namespace != claim.Namespace {
		return false
	}
	for i := range p.Spec.Devices.Claims {
		if name := p.Spec.Devices.Claims[i].ResourceClaimName; name != nil && *name == claim.Name {
			return true
		}
	}
	if p.Claims == nil {
		return false
	}
	return slices.ContainsFunc(p.Claims.Statuses, func(st v1.PodResourceClaimStatus) bool {
		return st.ResourceClaimName != nil && *st.ResourceClaimName == claim.Name
	})
}

// podHint wakes a pod once all its claims have been generated.
func podHint(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
	if ch.NewPod == nil || ch.NewPod.Spec.Devices == nil {
		return plugin.QueueHint
	}
	if _, err := claimsOf(ch.State, ch.NewPod); err != nil {
		return plugin.SkipHint
	}
	return plugin.QueueHint
}
