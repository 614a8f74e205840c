// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Write is one change of an object that a decision asks for. It is carried out on the object as the API server has it
// then, if that still has the UID and, where one is given, the ResourceVersion of Target; otherwise it fails.
type Write interface{ write() }

// Target is the object that is written.
type Target struct {
	Kind            Kind
	Namespace, Name string
	UID             UID
	ResourceVersion string // empty where any version will do
}

type (
	// BindVolume sets spec.claimRef of a PersistentVolume to a claim, and marks it as bound by a controller (upstream:
	// volume.GetBindVolumeToClaim).
	BindVolume struct {
		Target
		Claim Target
	}

	// SelectNode annotates a PersistentVolumeClaim with the node for which its volume is to be made.
	SelectNode struct {
		Target
		Node string
	}

	// AllocateClaim gives a ResourceClaim its allocation, the finalizer and a consumer. A nil Allocation only adds the
	// consumer: the claim is allocated already.
	AllocateClaim struct {
		Target
		Allocation  *resourceapi.AllocationResult
		ReservedFor resourceapi.ResourceClaimConsumerReference
	}

	// CreateClaim makes the ResourceClaim that backs a pod's extended resources, allocated and reserved for the pod, and
	// names it in the pod's status.
	CreateClaim struct {
		Claim    *resourceapi.ResourceClaim // with its allocation in the status
		Pod      record.PodRef
		Mappings []ExtendedMapping
	}

	// ReleaseClaim takes a consumer out of a ResourceClaim; Deallocate also takes its allocation and finalizer.
	ReleaseClaim struct {
		Target
		Consumer   UID
		Deallocate bool
	}

	// DeleteClaim deletes a ResourceClaim that CreateClaim made.
	DeleteClaim struct{ Target }
)

// ExtendedMapping tells which request of the claim backs an extended resource of a container.
type ExtendedMapping struct{ Container, Resource, Request string }

func (BindVolume) write()    {}
func (SelectNode) write()    {}
func (AllocateClaim) write() {}
func (CreateClaim) write()   {}
func (ReleaseClaim) write()  {}
func (DeleteClaim) write()   {}
