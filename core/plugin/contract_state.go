// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Quiet is an uncached PodFilter that may know without a scan of all rows that its Column would reject none. It is
// asked in the decision that it was prepared for. False says nothing.
type Quiet interface {
	PodFilter
	Quiet(s cluster.Snapshot) bool
}

// DeviceCounts counts devices for the scores of resources that device classes back (KEP-5004).
type DeviceCounts interface {
	// Revision changes whenever a count may have changed on a row that did not.
	Revision(s cluster.Snapshot) uint64
	// Count is how many devices of the class that backs a resource the node of a row could use, and how many of
	// those are taken; 0 when no class backs it. Revision was asked before, in the same step.
	Count(s cluster.Snapshot, n cluster.NodeIdx, resource v1.ResourceName) (devices, taken int64)
}

// CountingDevices is a Scorer that can score what device classes back, given a plugin that counts it.
type CountingDevices interface {
	Scorer
	// WithDevices returns the plugin with a counter of devices.
	WithDevices(c DeviceCounts) Plugin
}

// Remedier is a plugin that may be able to do something about its rejections besides evicting pods (upstream:
// PostFilter of DynamicResources).
type Remedier interface {
	Plugin
	// Remedy is asked after a decision that found no node for p, before preemption, also when a PrepareFilter
	// rejected the pod. The writes are to be carried out (the effect Release suits; no component waits for them): what
	// they change comes back as changes of objects, which wake the pod. The message is what upstream's PostFilter
	// says, for the record.
	Remedy(s cluster.Snapshot, p *cluster.Pod) (writes []cluster.Write, message string)
}

// Announcer is a Reservation that has a message about its pod if it is not ready at once.
type Announcer interface {
	Reservation
	// Announce is asked once, when Ready has said for the first time that the pod must wait.
	Announce() Notice
}

// Notice is an event about a pod, of type Normal.
type Notice struct{ Reason, Action, Note string }
