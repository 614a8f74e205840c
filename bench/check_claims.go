// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// byClaim returns the resources of a pod that a claim provides, which the scheduler created for it (KEP-5004). Its
// node does not offer them.
func byClaim(p *corev1.Pod) map[corev1.ResourceName]bool {
	if p.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	out := map[corev1.ResourceName]bool{} // resource -> is a claim's
	for _, m := range p.Status.ExtendedResourceClaimStatus.RequestMappings {
		out[corev1.ResourceName(m.ResourceName)] = true
	}
	return out
}

// soldTwice returns, sorted, invalid allocations: a device that two claims have, and a bound pod for which one of its
// claims is not reserved. Parts of a shared device are not added up.
func soldTwice(claims []resourceapi.ResourceClaim, pods []corev1.Pod) []string {
	owner := map[string]string{}                     // driver/pool/device -> claim that has it alone
	named := map[string]*resourceapi.ResourceClaim{} // namespace/name -> claim
	var found []string
	for i := range claims {
		c := &claims[i]
		name := c.Namespace + "/" + c.Name
		named[name] = c
		if c.Status.Allocation == nil {
			if n := len(c.Status.ReservedFor); n > 0 {
				found = append(found, fmt.Sprintf("claim %s: reserved for %d pods and not allocated", name, n))
			}
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			if d.AdminAccess != nil && *d.AdminAccess || d.ShareID != nil {
				continue
			}
			device := d.Driver + "/" + d.Pool + "/" + d.Device
			if other, taken := owner[device]; taken {
				found = append(found, fmt.Sprintf("device %s: claims %s and %s have it", device, other, name))
			}
			owner[device] = name
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" {
			continue
		}
		for _, name := range claimsOf(p) {
			if c := named[p.Namespace+"/"+name]; (c == nil || !reserved(c, p.UID)) && !servedBefore(claims, c, p.UID) {
				found = append(found, fmt.Sprintf("pod %s/%s: is bound and claim %s is not reserved for it", p.Namespace, p.Name, name))
			}
		}
	}
	slices.Sort(found)
	return found
}

// claimsOf returns the names of the claims that a pod needs, sorted.
func claimsOf(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			out = append(out, *c.ResourceClaimName)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			out = append(out, *c.ResourceClaimName)
		}
	}
	if own := p.Status.ExtendedResourceClaimStatus; own != nil {
		out = append(out, own.ResourceClaimName)
	}
	slices.Sort(out)
	return out
}

// servedBefore reports whether a pod has another claim for the same purpose that is reserved for it. The controller
// that creates claims from templates can create two if its cache is behind, and replace the name of the first, which
// the scheduler has used, by the name of the second.
func servedBefore(claims []resourceapi.ResourceClaim, instead *resourceapi.ResourceClaim, pod types.UID) bool {
	if instead == nil || instead.Annotations[resourceapi.PodResourceClaimAnnotation] == "" {
		return false
	}
	return slices.ContainsFunc(claims, func(c resourceapi.ResourceClaim) bool {
		owner := metav1.GetControllerOfNoCopy(&c)
		return owner != nil && owner.UID == pod && reserved(&c, pod) &&
			c.Annotations[resourceapi.PodResourceClaimAnnotation] == instead.Annotations[resourceapi.PodResourceClaimAnnotation]
	})
}

func reserved(c *resourceapi.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool { return r.UID == pod })
}
