// SPDX-License-Identifier: Apache-2.0

package devices

import (
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Wakes on nodes (slices and allocations choose them by label, and a device plugin may begin to offer what a class
// backs), on claims, on claims made for the pod, and on anything new about classes and slices.
func (pl *Plugin) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel | plugin.UpdateNodeAllocatable}},
		{Event: plugin.Event{Resource: plugin.DeviceClaimObject, Action: plugin.Add | plugin.Update}, Hint: claimHint},
		{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.UpdatePodGeneratedResourceClaim}, Hint: podHint},
		{Event: plugin.Event{Resource: plugin.DeviceClassObject, Action: plugin.Add | plugin.Update}},
		{Event: plugin.Event{Resource: plugin.ResourceSliceObject, Action: plugin.Add | plugin.Update}},
	}
}

// claimHint wakes pods whose claim has come or has got another status, and all others when devices become free. The
// first version seen with an allocation differs from what was assumed by its timestamp, so that those who wait for it to
// be written wake.
func claimHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	shown, ok := ch.NewObject.(*resourceapi.ResourceClaim)
	if !ok {
		return plugin.QueueHint
	}
	if mutated(hintAnyClaim) {
		return plugin.QueueHint
	}
	uses := false
	if p.Spec.Devices != nil {
		claims, err := claimsOf(ch.State, p)
		if err != nil {
			return plugin.SkipHint
		}
		for _, c := range claims {
			uses = uses || c.UID == shown.UID
		}
	}
	is := shown
	if now, err := claimNow(ch.State, shown.Namespace, shown.Name); err == nil {
		is = now // what is decided about it and not yet seen counts
	}
	was, _ := ch.OldObject.(*resourceapi.ResourceClaim)
	switch {
	case was != nil && was.Status.Allocation != nil && is.Status.Allocation == nil && !mutated(hintNoDeallocation):
		return plugin.QueueHint
	case !uses:
		return plugin.SkipHint
	case was == nil:
		return plugin.QueueHint
	case apiequality.Semantic.DeepEqual(&was.Status, &is.Status) && !mutated(hintUnchangedStatus):
		return plugin.SkipHint
	}
	return plugin.QueueHint
}

// podHint wakes a pod once all its claims have been made.
func podHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	switch {
	case ch.NewPod == nil:
		return plugin.QueueHint
	case ch.NewPod.UID != p.UID && !mutated(hintAnyPod):
		return plugin.SkipHint
	case ch.NewPod.Spec.Devices == nil:
		return plugin.QueueHint
	}
	if _, err := claimsOf(ch.State, ch.NewPod); err != nil {
		return plugin.SkipHint
	}
	return plugin.QueueHint
}
