// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Write is one change of an object that a decision requires. It is applied to the API server's current object if that
// still has the UID and, if given, the ResourceVersion of Target; otherwise it fails.
type Write interface{ write() }

// Target is the object that is written.
type Target struct {
	Kind            Kind
	Namespace, Name string
	UID             UID
	ResourceVersion string // empty if any version will do
}

type (
	// BindVolume binds a PersistentVolume to a claim; the volume controller of the cluster does the rest, and the
	// scheduler waits for it (upstream: component-helpers, volume.GetBindVolumeToClaim, and
	// plugins/volumebinding/binder.go, bindAPIUpdate).
	//
	// It is one update of the volume (not of a subresource), with UID and ResourceVersion of Target as preconditions;
	// a conflict fails it, and the pod is tried again. The kept object is trimmed, so it must not be sent back: the
	// whole one with other
	//   - spec.claimRef, replaced as a whole: kind PersistentVolumeClaim, apiVersion v1, and namespace, name, uid and
	//     resourceVersion of Claim; fieldPath and whatever else stood in it is removed;
	//   - metadata.annotations["pv.kubernetes.io/bound-by-controller"] = "yes", if ByController is set. Without
	//     ByController the annotation is left as it is: the user named the claim, and the binding stays the user's.
	//
	// Writing an unchanged object is no error: the API server keeps the ResourceVersion then. Nothing undoes a
	// BindVolume: it stays, whatever happens to the pod.
	BindVolume struct {
		Target
		// Claim has UID and ResourceVersion.
		Claim Target
		// ByController is set unless the volume named the claim before.
		ByController bool
	}

	// SelectNode annotates a PersistentVolumeClaim with the node for which its volume is to be provisioned
	// (metadata.annotations["volume.kubernetes.io/selected-node"] = Node); its provisioner acts on that, and removes
	// the annotation if it cannot provision the volume there.
	//
	// It is one update of the claim (not of a subresource), with UID and ResourceVersion of Target as preconditions,
	// and changes no other field. Writing an unchanged object is no error. Nothing undoes a SelectNode.
	SelectNode struct {
		Target
		Node string
	}

	// AllocateClaim gives a ResourceClaim its allocation, the finalizer and a consumer. A nil Allocation only adds the
	// consumer: the claim is allocated already (upstream: plugins/dynamicresources, bindClaim).
	//
	// The UID is the precondition, not the resourceVersion: drivers and controllers write the claim all the time.
	// Read the claim, change it and write it back with its own resourceVersion; on a conflict read it again, a few
	// times. Fail when it is being deleted. With an Allocation:
	//   - fail when status.allocation is set ("claim ns/name got allocated elsewhere in the meantime"), unless
	//     status.reservedFor has the consumer: then this write was done before, and nothing is left to do;
	//   - put resource.kubernetes.io/delete-protection into metadata.finalizers, if it is absent, by an update of the
	//     claim, of the whole object as the watch has it where that is known;
	//   - set status.allocation by a write of the status subresource.
	// Without: fail when status.allocation is not set ("claim ns/name got deallocated elsewhere in the meantime").
	// With both, in the same write of the status: append ReservedFor to status.reservedFor unless an entry has its UID,
	// and set status.allocation.allocationTimestamp to the present time if it is not set. Kept claims are trimmed, so
	// only what was read may be written back.
	//
	// When a later write of the list or the bind fails, the devices count as taken until the watch has caught up, for
	// at most ten seconds.
	AllocateClaim struct {
		Target
		Allocation  *resourceapi.AllocationResult
		ReservedFor resourceapi.ResourceClaimConsumerReference
	}

	// CreateClaim makes the ResourceClaim that backs a pod's extended resources, allocated and reserved for the pod,
	// and names it in the pod's status (upstream: plugins/dynamicresources/extendeddynamicresources.go). Three
	// writes:
	//   - create Claim, without its status and finalizers. Its name is decided already, so that doing this twice makes
	//     one claim: if the name is taken by a claim whose controller has the UID of Pod, go on with that one;
	//   - on it, what AllocateClaim does with status.allocation and status.reservedFor[0] of Claim;
	//   - set status.extendedResourceClaimStatus of the pod (resourceClaimName, requestMappings) by a patch of its
	//     status with metadata.uid.
	CreateClaim struct {
		Claim    *resourceapi.ResourceClaim // with its allocation and its consumer in the status
		Pod      record.PodRef
		Mappings []ExtendedMapping
	}

	// ReleaseClaim takes a consumer out of a ResourceClaim: a strategic merge patch of the status with metadata.uid
	// and status.reservedFor: [{"$patch": "delete", "uid": Consumer}]. That the claim is gone or does not name the
	// consumer is no error.
	//
	// Deallocate instead empties status.reservedFor, status.allocation and status.devices by a write of the status
	// with UID and ResourceVersion as preconditions, so that a claim that somebody has begun to use stays as it is; a
	// conflict fails it. The finalizer stays: the claim controller takes it off.
	ReleaseClaim struct {
		Target
		Consumer   UID
		Deallocate bool
	}

	// DeleteClaim deletes a ResourceClaim that CreateClaim made: it takes resource.kubernetes.io/delete-protection
	// off (read, write back, on a conflict again) and deletes the claim. Its UID may not be known, when the claim has
	// not been seen yet: then the controller of the claim must have the UID of Pod. A claim that is gone, or is not
	// that one, is no error.
	DeleteClaim struct {
		Target
		Pod record.PodRef
	}
)

// ExtendedMapping tells which request of the claim backs an extended resource of a container.
type ExtendedMapping struct{ Container, Resource, Request string }

func (BindVolume) write()    {}
func (SelectNode) write()    {}
func (AllocateClaim) write() {}
func (CreateClaim) write()   {}
func (ReleaseClaim) write()  {}
func (DeleteClaim) write()   {}
