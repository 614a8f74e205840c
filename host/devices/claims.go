// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The failures of binding conditions (upstream: ErrDeviceBindingTimeout, ErrDeviceBindingFailed).
var (
	errBindingTimeout = errors.New("device binding timeout")
	errBindingFailed  = errors.New("device binding failed")
)

// asPod returns the fields of a pod that are needed to name its claims and to own them.
func asPod(p *cluster.Pod) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}}
	if p.Claims != nil {
		pod.Status.ResourceClaimStatuses = p.Claims.Statuses
	}
	return pod
}

// claimsOf returns the claims that a pod names, in its order. The error is why the pod must wait. A claim that was
// deliberately not generated for the pod is left out.
func claimsOf(s cluster.Snapshot, p *cluster.Pod) ([]*resourceapi.ResourceClaim, error) {
	var claims []*resourceapi.ResourceClaim
	var pod *v1.Pod // for claims that are generated for it
	for i := range p.Spec.Devices.Claims {
		name, mustOwn := p.Spec.Devices.Claims[i].ResourceClaimName, false
		if name == nil {
			if pod == nil {
				pod = asPod(p)
			}
			var err error
			if name, mustOwn, err = resourceclaim.Name(pod, &p.Spec.Devices.Claims[i]); err != nil {
				return nil, err
			}
		}
		if name == nil {
			continue
		}
		claim, err := claimNow(s, p.Namespace, *name)
		if err != nil {
			return nil, err
		}
		if claim.DeletionTimestamp != nil {
			return nil, fmt.Errorf("resourceclaim %q is being deleted", claim.Name)
		}
		if mustOwn {
			if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
				return nil, err
			}
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// claimNow returns a claim as the API server has it, or as it was decided since. An allocation that was decided for a
// deleted pod will not be written, or was written and undone: it does not count.
func claimNow(s cluster.Snapshot, namespace, name string) (*resourceapi.ResourceClaim, error) {
	claim, ok := cluster.Find[*resourceapi.ResourceClaim](s, namespace, name)
	if !ok {
		return nil, fmt.Errorf("could not find ResourceClaim %q", namespace+"/"+name)
	}
	if claim.Status.Allocation == nil {
		return claim, nil
	}
	api, made := cluster.FindAPI[*resourceapi.ResourceClaim](s, namespace, name)
	if made && api.Status.Allocation == nil && void(s, claim) {
		return api, nil
	}
	return claim, nil
}

// pending reports whether a claim, as claimNow returns it, is allocated by a decision that is not observed yet.
func pending(s cluster.Snapshot, claim *resourceapi.ResourceClaim) bool {
	if claim.Status.Allocation == nil {
		return false
	}
	api, made := cluster.FindAPI[*resourceapi.ResourceClaim](s, claim.Namespace, claim.Name)
	return !made || api.Status.Allocation == nil
}

// leftFor is how long an allocation counts that a failed attempt may have written, while it is not observed. Watches
// lag by milliseconds, so this is long.
const leftFor = record.Time(10 * time.Second)

// void reports whether an assumed allocation does not count: its pod is not in the ledger any more, or it has no
// consumer (see hold.leave), and it should have been observed by now.
func void(s cluster.Snapshot, assumed *resourceapi.ResourceClaim) bool {
	n := len(assumed.Status.ReservedFor)
	if n == 0 {
		return s.Now() >= record.Time(assumed.Status.Allocation.AllocationTimestamp.UnixNano())+leftFor
	}
	_, _, _, there := s.PodOn(cluster.UID(assumed.Status.ReservedFor[n-1].UID))
	return !there
}

// reservedFor reports whether a claim lists a pod among its consumers.
func reservedFor(p *cluster.Pod, claim *resourceapi.ResourceClaim) bool {
	for i := range claim.Status.ReservedFor {
		if claim.Status.ReservedFor[i].UID == types.UID(p.UID) {
			return true
		}
	}
	return false
}

func consumer(p *cluster.Pod) resourceapi.ResourceClaimConsumerReference {
	return resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: types.UID(p.UID)}
}

// keyOf returns namespace/name, as in messages.
func keyOf(claim *resourceapi.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

// bindable reports whether all binding conditions of an allocated claim are met. A failure condition that is met is
// an error.
func bindable(claim *resourceapi.ResourceClaim) (bool, error) {
	if claim.Status.Allocation == nil {
		return false, nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		if len(r.BindingConditions) == 0 {
			continue
		}
		status := statusOf(claim, r)
		if status == nil {
			return false, nil
		}
		for _, name := range r.BindingFailureConditions {
			if c := apimeta.FindStatusCondition(status.Conditions, name); c != nil && c.Status == metav1.ConditionTrue {
				return false, fmt.Errorf("%w: claim=%s, reason=%s, message=%q", errBindingFailed, claim.Name,
					c.Reason, c.Message)
			}
		}
		for _, name := range r.BindingConditions {
			if !apimeta.IsStatusConditionTrue(status.Conditions, name) {
				return false, nil
			}
		}
	}
	return true, nil
}

// statusOf returns the driver's status of an allocated device, nil if there is none.
func statusOf(claim *resourceapi.ResourceClaim,
	r *resourceapi.DeviceRequestAllocationResult) *resourceapi.AllocatedDeviceStatus {
	for i := range claim.Status.Devices {
		d := &claim.Status.Devices[i]
		if d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device {
			return d
		}
	}
	return nil
}

// skipsNodeOperations reports whether some device of an allocation skips operations on its node.
func skipsNodeOperations(a *resourceapi.AllocationResult) bool {
	return slices.ContainsFunc(a.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
		return len(r.SkipNodeOperations) > 0
	})
}

// waits reports whether some device of an allocated claim has binding conditions.
func waits(a *resourceapi.AllocationResult) bool {
	if a == nil {
		return false
	}
	for i := range a.Devices.Results {
		if len(a.Devices.Results[i].BindingConditions) > 0 {
			return true
		}
	}
	return false
}

// overdueAt returns the deadline of the binding conditions of a claim; ok is false if it has none, or no allocation
// time.
func (pl *Plugin) overdueAt(claim *resourceapi.ResourceClaim) (at record.Time, ok bool) {
	a := claim.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil || !waits(a) {
		return 0, false
	}
	return record.Time(a.AllocationTimestamp.Add(pl.args.BindingTimeout).UnixNano()), true
}

func (pl *Plugin) overdue(claim *resourceapi.ResourceClaim, now record.Time) bool {
	at, ok := pl.overdueAt(claim)
	return ok && at < now
}
