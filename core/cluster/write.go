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
	// BindVolume gives a PersistentVolume to a claim; the volume controller of the cluster does the rest, and the
	// scheduler waits for it (upstream: component-helpers, volume.GetBindVolumeToClaim, and
	// plugins/volumebinding/binder.go, bindAPIUpdate).
	//
	// It is one update or patch of the volume (not of a subresource), with UID and ResourceVersion of Target as
	// preconditions; a conflict fails it, and the pod is tried again. The kept object is trimmed, so it must not be sent
	// back whole: a merge patch names metadata.uid, metadata.resourceVersion and
	//   - spec.claimRef, replaced as a whole: kind PersistentVolumeClaim, apiVersion v1, and namespace, name, uid and
	//     resourceVersion of Claim; fieldPath and whatever else stood in it is removed (null in a merge patch);
	//   - metadata.annotations["pv.kubernetes.io/bound-by-controller"] = "yes", if ByController is set. Without
	//     ByController the annotation is left as it is: the user named the claim, and the binding stays the user's.
	//
	// Writing what stands there already is no error: the API server keeps the ResourceVersion then. Nothing takes a
	// BindVolume back: once carried out it stays, whatever becomes of the pod.
	BindVolume struct {
		Target
		// Claim has UID and ResourceVersion.
		Claim Target
		// ByController is set unless the volume named the claim before.
		ByController bool
	}

	// SelectNode annotates a PersistentVolumeClaim with the node for which its volume is to be made
	// (metadata.annotations["volume.kubernetes.io/selected-node"] = Node); its provisioner acts on that, and takes the
	// annotation off again when it cannot make the volume there.
	//
	// It is one update or patch of the claim (not of a subresource), with UID and ResourceVersion of Target as
	// preconditions, and touches no other field. Writing what stands there already is no error. Nothing takes a
	// SelectNode back.
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
