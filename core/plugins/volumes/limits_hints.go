// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Wakes on whatever may leave a driver with capacity: new limits, pods and attachments that go; and on the claims that
// were missing.
func (pl *NodeVolumeLimits) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Add}},
		{Event: plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Update}, Hint: limitRaised},
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete},
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				if !plugin.FreesNothing(ch.OldPod) && pl.attaches(ch.OldPod) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add},
			Hint: func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
				claim, ok := ch.NewObject.(*v1.PersistentVolumeClaim)
				if !ok || namesClaim(p, claim) || hasEphemeralClaim(p, claim) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.AttachmentObject, Action: plugin.Delete}, Hint: pl.detached},
	}
}

// limitRaised queues when a driver can take more volumes than before. A driver without a limit counts as one that can
// take none.
func limitRaised(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
	before, okBefore := ch.OldObject.(*storagev1.CSINode)
	after, okAfter := ch.NewObject.(*storagev1.CSINode)
	if !okBefore || !okAfter {
		return plugin.QueueHint
	}
	was := map[string]int64{} // driver -> limit
	for i := range before.Spec.Drivers {
		was[before.Spec.Drivers[i].Name], _ = limitOf(&before.Spec.Drivers[i])
	}
	for i := range after.Spec.Drivers {
		driver := &after.Spec.Drivers[i]
		if limit, _ := limitOf(driver); limit > was[driver.Name] {
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}

// detached queues pods with claims, and those whose inline volumes the detaching driver took over. A generic ephemeral
// volume alone does not count.
func (pl *NodeVolumeLimits) detached(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	va, ok := ch.OldObject.(*storagev1.VolumeAttachment)
	if !ok {
		return plugin.QueueHint
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.PersistentVolumeClaim != nil {
			return plugin.QueueHint
		}
		m, migrated := pl.inline(v, p.Namespace)
		switch {
		case !migrated:
		case m.Err != nil || m.PV == nil:
			return plugin.QueueHint
		case m.PV.Spec.CSI != nil && m.PV.Spec.CSI.Driver == va.Spec.Attacher:
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}

// namesClaim reports whether a volume of a pod names a claim.
func namesClaim(p *cluster.Pod, claim *v1.PersistentVolumeClaim) bool {
	return claim.Namespace == p.Namespace && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
	})
}

// hasEphemeralClaim reports whether a claim is that of a generic ephemeral volume of a pod, by its name.
func hasEphemeralClaim(p *cluster.Pod, claim *v1.PersistentVolumeClaim) bool {
	return claim.Namespace == p.Namespace && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim == nil && v.Ephemeral != nil && p.EphemeralClaim(v.Name) == claim.Name
	})
}

// Advise says what to take off the node.
func (*NodeVolumeLimits) Advise(v *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	with := 0
	for _, p := range v.Pods {
		if len(p.Spec.Volumes) != 0 {
			with++
		}
	}
	r.Do = fmt.Sprintf("move pods with volumes off %s (it has %d), or wait until its unused volumes are detached",
		r.Node, with)
}
