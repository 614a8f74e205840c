// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedresource "k8s.io/client-go/kubernetes/typed/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

func (w *objectWriter) claims(namespace string) typedresource.ResourceClaimInterface {
	return w.client.ResourceV1().ResourceClaims(namespace)
}

func (w *objectWriter) readClaim(t cluster.Target) func(context.Context) (*resourceapi.ResourceClaim, error) {
	return func(ctx context.Context) (*resourceapi.ResourceClaim, error) {
		return w.claims(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	}
}

func reservedBy(claim *resourceapi.ResourceClaim, uid types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.UID == uid
	})
}

// usable tells why a claim cannot be given to a pod, nil when it can.
func usable(t cluster.Target, claim *resourceapi.ResourceClaim) error {
	if string(claim.UID) != string(t.UID) {
		return fmt.Errorf("claim %s is another object by now", targetName(t))
	}
	if claim.DeletionTimestamp != nil {
		return fmt.Errorf("claim %s got deleted in the meantime", targetName(t))
	}
	return nil
}

// allocateClaim begins with have, where that is not nil and no other write has left the claim in another state.
func (w *objectWriter) allocateClaim(a cluster.AllocateClaim, have *resourceapi.ResourceClaim) error {
	turn := w.turns.take(a.UID)
	defer w.turns.give(a.UID, turn)
	if turn.last != nil {
		have, turn.last = turn.last, nil
	}
	if a.Allocation != nil {
		var err error
		if have, err = w.protectClaim(a.Target, have); err != nil {
			return err
		}
	}
	what := "adding reservation to claim " + targetName(a.Target)
	if a.Allocation != nil {
		what = "adding allocation and reservation to claim " + targetName(a.Target)
	}
	return carry(w, change[*resourceapi.ResourceClaim]{
		what:  what,
		read:  atFirst(have, w.readClaim(a.Target)),
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) { return judgeAllocation(a, claim) },
		send: func(ctx context.Context, claim *resourceapi.ResourceClaim) error {
			claim = claim.DeepCopy()
			if a.Allocation != nil {
				claim.Status.Allocation = a.Allocation.DeepCopy()
			}
			if claim.Status.Allocation.AllocationTimestamp == nil {
				now := metav1.Now()
				claim.Status.Allocation.AllocationTimestamp = &now
			}
			if !reservedBy(claim, a.ReservedFor.UID) {
				claim.Status.ReservedFor = append(claim.Status.ReservedFor, a.ReservedFor)
			}
			after, err := w.claims(a.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
			if err == nil {
				turn.last = after
			}
			return err
		},
	})
}

func judgeAllocation(a cluster.AllocateClaim, claim *resourceapi.ResourceClaim) (done bool, never error) {
	if err := usable(a.Target, claim); err != nil {
		return false, err
	}
	allocated := claim.Status.Allocation != nil
	switch {
	case allocated && reservedBy(claim, a.ReservedFor.UID):
		return true, nil
	case allocated && a.Allocation != nil:
		return false, fmt.Errorf("claim %s got allocated elsewhere in the meantime", targetName(a.Target))
	case !allocated && a.Allocation == nil:
		return false, fmt.Errorf("claim %s got deallocated elsewhere in the meantime", targetName(a.Target))
	}
	return false, nil
}

// protectClaim puts the finalizer on a claim that keeps it while it is allocated, by an update as upstream does, and
// returns the claim as it is then. It begins with have, where that is not nil.
func (w *objectWriter) protectClaim(t cluster.Target,
	have *resourceapi.ResourceClaim) (after *resourceapi.ResourceClaim, err error) {
	err = carry(w, change[*resourceapi.ResourceClaim]{
		what: "adding the finalizer to claim " + targetName(t),
		read: atFirst(have, w.readClaim(t)),
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) {
			after = claim
			return slices.Contains(claim.Finalizers, resourceapi.Finalizer), usable(t, claim)
		},
		send: func(ctx context.Context, claim *resourceapi.ResourceClaim) (err error) {
			claim = claim.DeepCopy()
			claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
			after, err = w.claims(t.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
			return err
		},
	})
	return after, err
}

func (w *objectWriter) createClaim(c cluster.CreateClaim) error {
	claim, err := w.makeClaim(c)
	if err != nil {
		return err
	}
	target := cluster.Target{Kind: cluster.KindDeviceClaim, Namespace: claim.Namespace, Name: claim.Name,
		UID: cluster.UID(claim.UID)}
	if len(c.Claim.Status.ReservedFor) == 0 || c.Claim.Status.Allocation == nil {
		panic(fmt.Sprintf("kube: claim %s is to be made without allocation or consumer", targetName(target)))
	}
	err = w.allocateClaim(cluster.AllocateClaim{Target: target, Allocation: c.Claim.Status.Allocation,
		ReservedFor: c.Claim.Status.ReservedFor[0]}, claim)
	if err != nil {
		return err
	}
	return w.nameClaim(c)
}

// makeClaim creates the claim, or finds it made for this pod.
func (w *objectWriter) makeClaim(c cluster.CreateClaim) (made *resourceapi.ResourceClaim, err error) {
	name := c.Claim.Namespace + "/" + c.Claim.Name
	bare := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Claim.Namespace, Name: c.Claim.Name, Labels: c.Claim.Labels,
			Annotations: c.Claim.Annotations, OwnerReferences: c.Claim.OwnerReferences},
		Spec: c.Claim.Spec,
	}
	api := w.claims(c.Claim.Namespace)
	create := func(ctx context.Context) (err error) {
		made, err = api.Create(ctx, bare, metav1.CreateOptions{})
		w.metrics.ClaimCreates.WithLabelValues(createLabel(err), "false", "", "Pod").Inc()
		return err
	}
	// A claim of that name is read like one that our own lost request has made: nil stands for none.
	err = carry(w, change[*resourceapi.ResourceClaim]{
		what:  "creating claim " + name + " for extended resources",
		blind: create,
		read: func(ctx context.Context) (*resourceapi.ResourceClaim, error) {
			claim, err := api.Get(ctx, c.Claim.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return claim, err
		},
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) {
			switch made = claim; {
			case claim == nil:
				return false, nil
			case !madeFor(claim, c.Pod):
				return false, fmt.Errorf("claim %s exists and was not made for pod %s", name, c.Pod.Key())
			case claim.DeletionTimestamp != nil:
				return false, fmt.Errorf("claim %s got deleted in the meantime", name)
			}
			return true, nil
		},
		send: func(ctx context.Context, _ *resourceapi.ResourceClaim) error { return create(ctx) },
	})
	return made, err
}

// madeFor reports whether a claim belongs to a pod.
func madeFor(claim *resourceapi.ResourceClaim, pod record.PodRef) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && string(owner.UID) == pod.UID
}

// nameClaim tells the pod's status of the claim that was made for it.
func (w *objectWriter) nameClaim(c cluster.CreateClaim) error {
	want := &v1.PodExtendedResourceClaimStatus{ResourceClaimName: c.Claim.Name}
	for _, m := range c.Mappings {
		want.RequestMappings = append(want.RequestMappings,
			v1.ContainerExtendedResourceRequest{ContainerName: m.Container, ResourceName: m.Resource,
				RequestName: m.Request})
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": c.Pod.UID},
		"status": map[string]any{"extendedResourceClaimStatus": want}})
	if err != nil {
		return fmt.Errorf("naming the claim of pod %s: %w", c.Pod.Key(), err)
	}
	api := w.client.CoreV1().Pods(c.Pod.Namespace)
	patch := func(ctx context.Context) error {
		_, err := api.Patch(ctx, c.Pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	}
	return carry(w, change[*v1.Pod]{
		what:  fmt.Sprintf("naming claim %s in the status of pod %s", c.Claim.Name, c.Pod.Key()),
		blind: patch,
		read:  func(ctx context.Context) (*v1.Pod, error) { return api.Get(ctx, c.Pod.Name, metav1.GetOptions{}) },
		judge: func(p *v1.Pod) (bool, error) {
			if string(p.UID) != c.Pod.UID {
				return false, fmt.Errorf("pod %s is another pod by now", c.Pod.Key())
			}
			is := p.Status.ExtendedResourceClaimStatus
			return is != nil && is.ResourceClaimName == want.ResourceClaimName &&
				slices.Equal(is.RequestMappings, want.RequestMappings), nil
		},
		send: func(ctx context.Context, _ *v1.Pod) error { return patch(ctx) },
	})
}

func (w *objectWriter) releaseClaim(r cluster.ReleaseClaim) error {
	if r.Deallocate {
		return w.deallocateClaim(r)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.UID}, "status": map[string]any{
		"reservedFor": []any{map[string]any{"$patch": "delete", "uid": r.Consumer}}}})
	if err != nil {
		return fmt.Errorf("releasing claim %s: %w", targetName(r.Target), err)
	}
	patch := func(ctx context.Context) error {
		_, err := w.claims(r.Namespace).Patch(ctx, r.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{},
			"status")
		return err
	}
	return ignoreGone(carry(w, change[*resourceapi.ResourceClaim]{
		what:  "releasing claim " + targetName(r.Target),
		blind: patch,
		read:  w.readClaim(r.Target),
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) {
			return string(claim.UID) != string(r.UID) || !reservedBy(claim, types.UID(r.Consumer)), nil
		},
		send: func(ctx context.Context, _ *resourceapi.ResourceClaim) error { return patch(ctx) },
	}))
}

func (w *objectWriter) deallocateClaim(r cluster.ReleaseClaim) error {
	return ignoreGone(carry(w, change[*resourceapi.ResourceClaim]{
		what: "deallocating claim " + targetName(r.Target),
		read: w.readClaim(r.Target),
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) {
			if string(claim.UID) != string(r.UID) || claim.Status.Allocation == nil {
				return true, nil
			}
			return false, sameVersion(r.Target, claim)
		},
		send: func(ctx context.Context, claim *resourceapi.ResourceClaim) error {
			claim = claim.DeepCopy()
			claim.Status.ReservedFor, claim.Status.Allocation, claim.Status.Devices = nil, nil, nil
			_, err := w.claims(r.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
			return err
		},
	}))
}

// ignoreGone treats an object that is gone as one from which everything is removed.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteClaim takes the finalizer off and deletes; each step is repeated until the claim is gone or is not the one
// meant.
func (w *objectWriter) deleteClaim(d cluster.DeleteClaim) error {
	isIt := func(claim *resourceapi.ResourceClaim) bool {
		if d.UID != "" {
			return string(claim.UID) == string(d.UID)
		}
		return madeFor(claim, d.Pod)
	}
	return ignoreGone(carry(w, change[*resourceapi.ResourceClaim]{
		what:  "deleting claim " + targetName(d.Target),
		read:  w.readClaim(d.Target),
		judge: func(claim *resourceapi.ResourceClaim) (bool, error) { return !isIt(claim), nil },
		send: func(ctx context.Context, claim *resourceapi.ResourceClaim) error {
			if i := slices.Index(claim.Finalizers, resourceapi.Finalizer); i >= 0 {
				claim = claim.DeepCopy()
				claim.Finalizers = slices.Delete(claim.Finalizers, i, i+1)
				if _, err := w.claims(d.Namespace).Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
					return err
				}
			}
			uid := claim.UID
			return w.claims(d.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid}})
		},
	}))
}

// createLabel is the status of resourceclaim_creates_total.
func createLabel(err error) string {
	if err != nil {
		return "failure"
	}
	return "success"
}
