// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// claimRules is what a claim asks of a volume besides its class.
type claimRules struct {
	claim    *v1.PersistentVolumeClaim
	size     apiresource.Quantity
	selector labels.Selector // nil for none
}

// rulesOf reads a claim. Its selector may be one that does not convert.
func rulesOf(claim *v1.PersistentVolumeClaim) (r claimRules, err error) {
	r = claimRules{claim: claim, size: claim.Spec.Resources.Requests[v1.ResourceStorage]}
	if claim.Spec.Selector != nil {
		if r.selector, err = metav1.LabelSelectorAsSelector(claim.Spec.Selector); err != nil {
			return r, fmt.Errorf("error creating internal label selector for claim: %s/%s: %w", claim.Namespace,
				claim.Name, err)
		}
	}
	return r, nil
}

// couldHold reports whether a volume may be the claim's as far as both pre-bound and free ones are concerned: it is not
// another claim's, large enough, of the same modes, and not on its way out.
func (r *claimRules) couldHold(pv *v1.PersistentVolume) bool {
	if pv.Spec.ClaimRef != nil && !boundTo(pv, r.claim) {
		return false
	}
	size := pv.Spec.Capacity[v1.ResourceStorage]
	switch c := size.Cmp(r.size); {
	case c < 0:
		return false
	}
	return volumeMode(pv.Spec.VolumeMode) == volumeMode(r.claim.Spec.VolumeMode) &&
		deref(pv.Spec.VolumeAttributesClassName) == deref(r.claim.Spec.VolumeAttributesClassName) &&
		pv.DeletionTimestamp == nil
}

// couldTake reports whether a volume without a claim, and that couldHold, can be the claim's.
func (r *claimRules) couldTake(pv *v1.PersistentVolume) bool {
	if pv.Status.Phase != v1.VolumeAvailable {
		return false // its binding would most likely meet a conflict
	}
	if r.selector != nil && !r.selector.Matches(labels.Set(pv.Labels)) {
		return false
	}
	for _, mode := range r.claim.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, mode) {
			return false
		}
	}
	return true
}

// match finds the volume for a claim on a node: the one that was bound to the claim beforehand, or else the
// smallest. volumes are of the claim's class, sorted by name; taken are not to be used; reaches reports whether the
// node can reach a volume. Nil means that there is none: a volume bound beforehand that the node cannot reach rules
// out all others (upstream: component-helpers, volume.FindMatchingVolume).
func (r *claimRules) match(volumes, taken []*v1.PersistentVolume,
	reaches func(*v1.PersistentVolume) bool) *v1.PersistentVolume {
	var best *v1.PersistentVolume
	var bestSize apiresource.Quantity
	for _, pv := range volumes {
		switch {
		case slices.Contains(taken, pv), !r.couldHold(pv):
			continue
		case pv.Spec.ClaimRef != nil:
			switch {
			case reaches(pv):
				return pv
			}
			return nil
		case !r.couldTake(pv), !reaches(pv):
			continue
		}
		if size := pv.Spec.Capacity[v1.ResourceStorage]; best == nil || smaller(size, bestSize) {
			best, bestSize = pv, size
		}
	}
	return best
}

func smaller(a, b apiresource.Quantity) bool {
	return a.Cmp(b) < 0
}

// boundTo reports whether a volume names a claim, with its UID or without one.
func boundTo(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && ref.Namespace == claim.Namespace &&
		(ref.UID == "" || ref.UID == claim.UID)
}

func volumeMode(m *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if m == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *m
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// reach returns why a node cannot reach a volume with this affinity. Only labels count: terms
// match whatever their match fields say, if these parse (upstream: volume.CheckNodeAffinity, which shows the selector a
// node without a name).
func reach(affinity *v1.VolumeNodeAffinity, node *cluster.Node) error {
	if affinity == nil || affinity.Required == nil {
		return nil
	}
	return lets(nodeaffinity.NewLazyErrorNodeSelector(affinity.Required), node)
}

var errNoTerm = errors.New("no matching NodeSelectorTerms")

// lets is reach for an affinity that is parsed.
func lets(affinity *nodeaffinity.LazyErrorNodeSelector, node *cluster.Node) error {
	seen := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}}
	ok, err := affinity.Match(seen)
	if err == nil && !ok {
		err = errNoTerm
	}
	return err
}

// bySize sorts claims by what they ask for, smallest first, so that large claims do not go without for small ones.
// Claims of one size stay in order.
func bySize(claims []*v1.PersistentVolumeClaim) {
	slices.SortStableFunc(claims, func(a, b *v1.PersistentVolumeClaim) int {
		x, y := a.Spec.Resources.Requests[v1.ResourceStorage], b.Spec.Resources.Requests[v1.ResourceStorage]
		return x.Cmp(y)
	})
}
