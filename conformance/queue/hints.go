// SPDX-License-Identifier: Apache-2.0

package queue

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Change is one cluster event with its objects, as upstream's handlers give it.
type Change struct {
	Event fwk.ClusterEvent
	// Exactly one pair is used; old is nil on an add, new on a delete.
	OldNode, NewNode *v1.Node
	OldPod, NewPod   *v1.Pod
	// Another object.
	OldObject, NewObject scenario.APIObject
}

// resources: kind of object -> its name in events. Changes of other kinds wake no pod.
var resources = map[string]fwk.EventResource{
	"PersistentVolume": fwk.PersistentVolume, "PersistentVolumeClaim": fwk.PersistentVolumeClaim, "StorageClass": fwk.StorageClass,
	"CSINode": fwk.CSINode, "CSIDriver": fwk.CSIDriver, "CSIStorageCapacity": fwk.CSIStorageCapacity, "VolumeAttachment": fwk.VolumeAttachment,
	"ResourceClaim": fwk.ResourceClaim, "ResourceSlice": fwk.ResourceSlice, "DeviceClass": fwk.DeviceClass,
}

// ObjectChanges lists the events of an object's add, update or delete.
func ObjectChanges(old, obj scenario.APIObject) []Change {
	c := Change{Event: fwk.ClusterEvent{ActionType: fwk.Update}, OldObject: old, NewObject: obj}
	some := obj
	switch {
	case old == nil:
		c.Event.ActionType = fwk.Add
	case obj == nil:
		c.Event.ActionType, some = fwk.Delete, old
	}
	resource, tells := resources[scenario.KindOf(some)]
	if !tells {
		return nil
	}
	c.Event.Resource = resource
	return []Change{c}
}

// Objects are what upstream's plugins see while they give hints.
func Objects() *oracle.Objects { return sharedNow().api }

// NodeChanges lists the events of a node's add, update or delete.
func NodeChanges(old, node *v1.Node) []Change {
	events := []fwk.ClusterEvent{{Resource: fwk.Node, ActionType: fwk.Add}}
	switch {
	case node == nil:
		events[0].ActionType = fwk.Delete
	case old != nil:
		events = framework.NodeSchedulingPropertiesChange(node, old)
	}
	var out []Change
	for _, ev := range events {
		out = append(out, Change{Event: ev, OldNode: old, NewNode: node})
	}
	return out
}

// PodChanges lists the events of a bound pod's add, update or delete, and of a
// pending pod's own update. The delete of a pending pod is given as the delete of an
// assigned one, as it is when the pod had a nomination.
func PodChanges(old, pod *v1.Pod) []Change {
	events := []fwk.ClusterEvent{framework.EventAssignedPodAdd}
	switch {
	case pod == nil:
		events[0] = framework.EventAssignedPodDelete
	case old != nil:
		events = framework.PodSchedulingPropertiesChange(pod, old, pod.Spec.NodeName == "")
	}
	var out []Change
	for _, ev := range events {
		out = append(out, Change{Event: ev, OldPod: old, NewPod: pod})
	}
	return out
}

// UpstreamWakes reports whether upstream's plugin, having rejected the pod, wants it tried
// again after the change.
func UpstreamWakes(plugin string, pod *v1.Pod, c Change) bool {
	var old, obj any
	switch {
	case c.OldNode != nil || c.NewNode != nil:
		old, obj = whole(c.OldNode), whole(c.NewNode)
	case c.OldObject != nil || c.NewObject != nil:
		old, obj = c.objects()
	default:
		old, obj = whole(c.OldPod), whole(c.NewPod)
	}
	for registered, hints := range sharedNow().hints { // order: any of them will do
		if !framework.MatchClusterEvents(registered, c.Event) {
			continue
		}
		for _, h := range hints {
			if h.PluginName != plugin {
				continue
			}
			if hint, err := h.QueueingHintFn(klog.Background(), pod, old, obj); err != nil || hint == fwk.Queue {
				return true
			}
		}
	}
	return false
}

// objects are the pair as hints take it.
func (c Change) objects() (old, obj any) {
	if c.OldObject != nil {
		old = c.OldObject
	}
	if c.NewObject != nil {
		obj = c.NewObject
	}
	return old, obj
}

// whole turns a nil pointer into a nil interface, which is what hints test for.
func whole[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}
