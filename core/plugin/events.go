// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Resource is a kind of object whose changes can wake pods.
type Resource string

// The kinds (upstream: k8s.io/kube-scheduler/framework, EventResource).
const (
	// AssignedPod is a pod that is on a node, or holds a place there by its nomination.
	AssignedPod Resource = "AssignedPod"
	// UnscheduledPod is a pod that waits for a node, as other pods see it.
	UnscheduledPod Resource = "UnscheduledPod"
	// TargetPod is the waiting pod itself: its own update.
	TargetPod Resource = "TargetPod"
	// Pod occurs in registrations only; it matches the three above.
	Pod        Resource = "Pod"
	NodeObject Resource = "Node"

	VolumeObject        Resource = "PersistentVolume"
	ClaimObject         Resource = "PersistentVolumeClaim"
	StorageClassObject  Resource = "storage.k8s.io/StorageClass"
	CSINodeObject       Resource = "storage.k8s.io/CSINode"
	CSIDriverObject     Resource = "storage.k8s.io/CSIDriver"
	CapacityObject      Resource = "storage.k8s.io/CSIStorageCapacity"
	AttachmentObject    Resource = "storage.k8s.io/VolumeAttachment"
	DeviceClaimObject   Resource = "resource.k8s.io/ResourceClaim"
	ResourceSliceObject Resource = "resource.k8s.io/ResourceSlice"
	DeviceClassObject   Resource = "resource.k8s.io/DeviceClass"

	Wildcard Resource = "*"
)

// Action is a set of kinds of change, one bit each. The order of the bits carries meaning in Matches.
type Action uint32

// The actions, in upstream's order.
const (
	Add Action = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdateNodeDeclaredFeature
	UpdateNodePreemptionPolicy
	UpdatePodLabel
	UpdatePodScaleDown
	UpdatePodScaleUp
	UpdatePodToleration
	UpdatePodSchedulingGatesEliminated
	UpdatePodGeneratedResourceClaim
	afterLast

	All    = afterLast - 1
	Update = All &^ (Add | Delete)
)

// Event is a kind of change: what a plugin registers for, or what has happened.
type Event struct {
	Resource Resource
	Action   Action
	// Label names special events in metrics and logs; empty for ordinary ones.
	Label string
}

// The special events.
var (
	UnschedulableTimeout = Event{Wildcard, All, "UnschedulableTimeout"}
	ForceActivate        = Event{Wildcard, All, "ForceActivate"}
)

// Change is an event with the objects it is about: old is nil on an add, new on a delete.
type Change struct {
	Event            Event
	OldPod, NewPod   *cluster.Pod
	OldNode, NewNode *cluster.Node
	// OldObject and NewObject are of the type that Event.Resource names.
	OldObject, NewObject cluster.Object
	// State is the cluster when a hint is asked; the queue fills it in.
	State cluster.Snapshot
	// OnlyOthers says that the change helps neither the pod that it is about nor its gang.
	OnlyOthers bool
	// OnlyUpTo, when not nil, is the highest priority that the change helps: capacity that a nomination held
	// is free for pods of that priority or less.
	OnlyUpTo *int32
}

// Hint is what a plugin says of a change for a pod that it has rejected.
type Hint uint8

// The hints.
const (
	SkipHint  Hint = iota // the change cannot make this plugin accept the pod
	QueueHint             // it may
)

// Wake is one kind of event that may make a rejected pod schedulable (upstream: EnqueueExtensions).
type Wake struct {
	Event Event
	// Hint reports whether a change that matches Event helps p; nil means that it always does.
	Hint func(p *cluster.Pod, ch Change) Hint
	// Alike says that Hint reads nothing of p but its namespace, its Spec, and whether the change is one of p
	// itself: for all pods that share namespace and Spec it is asked once, and for the pod that has changed by
	// itself.
	Alike bool
}

// Waker is a plugin that says which events wake the pods it rejected. A native plugin that rejects is a Waker. Upstream
// takes one that registers nothing for one that waits for everything, which the host of such plugins must spell out.
type Waker interface {
	Plugin
	Wakes() []Wake
}

// IsWildcard reports whether e stands for any change at all.
func (e Event) IsWildcard() bool { return e.Resource == Wildcard && e.Action == All }

// Matches reports whether a registration e covers an event that happened. A general update does not match a
// registration for one specific kind of update; hence the comparison of actions. A wildcard event matches only
// wildcard registrations (upstream: framework.MatchClusterEvents).
func (e Event) Matches(happened Event) bool {
	if e.IsWildcard() {
		return true
	}
	sameKind := e.Resource == Wildcard || e.Resource == happened.Resource ||
		e.Resource == Pod && (happened.Resource == AssignedPod || happened.Resource == UnscheduledPod ||
			happened.Resource == TargetPod)
	return sameKind && e.Action&happened.Action != 0 && happened.Action <= e.Action
}

// String is the event's label in metrics and logs (upstream: ClusterEvent.Label).
func (e Event) String() string {
	if e.Label != "" {
		return e.Label
	}
	return string(e.Resource) + e.Action.String()
}

// String is the action's part of the label; combinations print as Update or All.
func (a Action) String() string {
	switch a {
	case Add:
		return "Add"
	case Delete:
		return "Delete"
	case UpdateNodeAllocatable:
		return "UpdateNodeAllocatable"
	case UpdateNodeLabel:
		return "UpdateNodeLabel"
	case UpdateNodeTaint:
		return "UpdateNodeTaint"
	case UpdateNodeCondition:
		return "UpdateNodeCondition"
	case UpdateNodeAnnotation:
		return "UpdateNodeAnnotation"
	case UpdateNodeDeclaredFeature:
		return "UpdateNodeDeclaredFeature"
	case UpdateNodePreemptionPolicy:
		return "UpdateNodePreemptionPolicy"
	case UpdatePodLabel:
		return "UpdatePodLabel"
	case UpdatePodScaleDown:
		return "UpdatePodScaleDown"
	case UpdatePodScaleUp:
		return "UpdatePodScaleUp"
	case UpdatePodToleration:
		return "UpdatePodToleration"
	case UpdatePodSchedulingGatesEliminated:
		return "UpdatePodSchedulingGatesEliminated"
	case UpdatePodGeneratedResourceClaim:
		return "UpdatePodGeneratedResourceClaim"
	case All:
		return "All"
	case Update:
		return "Update"
	}
	return ""
}

// FreesNothing reports whether a deleted pod had neither a node nor the promise of one, so that it frees nothing.
func FreesNothing(p *cluster.Pod) bool { return p.NodeName == "" && p.Nominated == "" }
