// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// volumeInputs are read by the plugins of volumes.
var volumeInputs = func() []input {
	claimed := func(match func(v view, c *v1.PersistentVolumeClaim) bool) func(view) bool {
		return func(v view) bool {
			return slices.ContainsFunc(claimsOf(v), func(c *v1.PersistentVolumeClaim) bool { return match(v, c) })
		}
	}
	unbound := func(c *v1.PersistentVolumeClaim) bool {
		return c.Spec.VolumeName == "" && c.Status.Phase != v1.ClaimLost && c.DeletionTimestamp == nil
	}
	ofClass := func(names ...string) func(view) bool {
		return claimed(func(_ view, c *v1.PersistentVolumeClaim) bool {
			return unbound(c) && c.Spec.StorageClassName != nil && slices.Contains(names, *c.Spec.StorageClassName)
		})
	}
	onVolume := func(match func(pv *v1.PersistentVolume) bool) func(view) bool {
		return claimed(func(v view, c *v1.PersistentVolumeClaim) bool {
			pv := get[*v1.PersistentVolume](v, "PersistentVolume", "", c.Spec.VolumeName)
			return pv != nil && match(pv)
		})
	}
	lost := func(v view) bool {
		return slices.ContainsFunc(v.pod.Spec.Volumes, func(vol v1.Volume) bool {
			name := claimName(v.pod, &vol)
			return name != "" && get[*v1.PersistentVolumeClaim](v, "PersistentVolumeClaim", v.pod.Namespace, name) == nil
		})
	}
	ephemeral := func(v view) bool {
		return slices.ContainsFunc(v.pod.Spec.Volumes, func(vol v1.Volume) bool { return vol.Ephemeral != nil })
	}
	bound := claimed(func(_ view, c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
	disk := func(match func(vol *v1.Volume) bool) func(view) bool {
		return func(v view) bool {
			return slices.ContainsFunc(v.pod.Spec.Volumes, func(vol v1.Volume) bool { return match(&vol) })
		}
	}
	migratable := disk(func(vol *v1.Volume) bool {
		return vol.GCEPersistentDisk != nil || vol.AWSElasticBlockStore != nil || vol.Cinder != nil
	})
	return []input{
		{"VolumeRestrictions", "claim missing", lost},
		{"VolumeRestrictions", "ReadWriteOncePod", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool {
			return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
		})},
		{"VolumeRestrictions", "GCE disk", disk(func(vol *v1.Volume) bool { return vol.GCEPersistentDisk != nil && !vol.GCEPersistentDisk.ReadOnly })},
		{"VolumeRestrictions", "GCE disk, read only", disk(func(vol *v1.Volume) bool { return vol.GCEPersistentDisk != nil && vol.GCEPersistentDisk.ReadOnly })},
		{"VolumeRestrictions", "AWS disk", disk(func(vol *v1.Volume) bool { return vol.AWSElasticBlockStore != nil })},
		{"VolumeRestrictions", "ISCSI", disk(func(vol *v1.Volume) bool { return vol.ISCSI != nil })},
		{"VolumeRestrictions", "RBD", disk(func(vol *v1.Volume) bool { return vol.RBD != nil })},
		{"NodeVolumeLimits", "bound claim", bound},
		{"NodeVolumeLimits", "claim of a class", ofClass("wait", "sized", "zoned")},
		{"NodeVolumeLimits", "ephemeral volume", ephemeral},
		{"NodeVolumeLimits", "migrated inline disk", migratable},
		{"VolumeBinding", "claim missing", lost},
		{"VolumeBinding", "claim lost", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimLost })},
		{"VolumeBinding", "claim going away", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })},
		{"VolumeBinding", "claim bound", bound},
		{"VolumeBinding", "volume with affinity", onVolume(func(pv *v1.PersistentVolume) bool { return pv.Spec.NodeAffinity != nil })},
		{"VolumeBinding", "volume with illegal affinity", onVolume(func(pv *v1.PersistentVolume) bool {
			return pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil &&
				(len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) == 0 || slices.ContainsFunc(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, malformed))
		})},
		{"VolumeBinding", "in-tree volume", onVolume(func(pv *v1.PersistentVolume) bool {
			return pv.Spec.GCEPersistentDisk != nil || pv.Spec.AWSElasticBlockStore != nil
		})},
		{"VolumeBinding", "volume promised", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool {
			return c.Spec.VolumeName != "" && c.Annotations["pv.kubernetes.io/bind-completed"] == ""
		})},
		{"VolumeBinding", "selected node", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool {
			return c.Annotations["volume.kubernetes.io/selected-node"] != ""
		})},
		{"VolumeBinding", "class that waits", ofClass("wait")},
		{"VolumeBinding", "class without provisioner", ofClass("static")},
		{"VolumeBinding", "class that binds at once", ofClass("now", "modeless")},
		{"VolumeBinding", "class with topologies", ofClass("zoned")},
		{"VolumeBinding", "class with capacities", ofClass("sized")},
		{"VolumeBinding", "class missing", ofClass("absent")},
		{"VolumeBinding", "selector", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool { return unbound(c) && c.Spec.Selector != nil })},
		{"VolumeBinding", "volume mode", claimed(func(_ view, c *v1.PersistentVolumeClaim) bool { return unbound(c) && c.Spec.VolumeMode != nil })},
		{"VolumeBinding", "ephemeral volume", ephemeral},
		{"VolumeZone", "claim missing", lost},
		{"VolumeZone", "zone label", onVolume(func(pv *v1.PersistentVolume) bool { return labelled(pv, v1.LabelTopologyZone) })},
		{"VolumeZone", "beta zone label", onVolume(func(pv *v1.PersistentVolume) bool { return labelled(pv, v1.LabelFailureDomainBetaZone) })},
		{"VolumeZone", "region label", onVolume(func(pv *v1.PersistentVolume) bool {
			return labelled(pv, v1.LabelTopologyRegion) || labelled(pv, v1.LabelFailureDomainBetaRegion)
		})},
		{"VolumeZone", "several zones", onVolume(func(pv *v1.PersistentVolume) bool {
			return strings.Contains(pv.Labels[v1.LabelTopologyZone]+pv.Labels[v1.LabelFailureDomainBetaZone], "__")
		})},
		{"VolumeZone", "class that waits", ofClass("wait", "static", "sized", "zoned")},
	}
}()

func labelled(pv *v1.PersistentVolume, key string) bool { return pv.Labels[key] != "" }

// get is an object of the cluster, nil when it is not there.
func get[T scenario.APIObject](v view, kind, namespace, name string) (obj T) {
	obj, _ = v.objects[scenario.ObjectRef{Kind: kind, Namespace: namespace, Name: name}].(T)
	return obj
}

func claimName(p *v1.Pod, vol *v1.Volume) string {
	switch {
	case vol.PersistentVolumeClaim != nil:
		return vol.PersistentVolumeClaim.ClaimName
	case vol.Ephemeral != nil:
		return p.Name + "-" + vol.Name
	}
	return ""
}

func claimsOf(v view) []*v1.PersistentVolumeClaim {
	var out []*v1.PersistentVolumeClaim
	for i := range v.pod.Spec.Volumes {
		if name := claimName(v.pod, &v.pod.Spec.Volumes[i]); name != "" {
			if c := get[*v1.PersistentVolumeClaim](v, "PersistentVolumeClaim", v.pod.Namespace, name); c != nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// amongInputs are read by the plugins that count other pods.
var amongInputs = func() []input {
	spread := func(match func(c *v1.TopologySpreadConstraint) bool) func(view) bool {
		return func(v view) bool {
			for i := range v.pod.Spec.TopologySpreadConstraints {
				if match(&v.pod.Spec.TopologySpreadConstraints[i]) {
					return true
				}
			}
			return false
		}
	}
	hard := func(c *v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == v1.DoNotSchedule }
	noConstraint := func(v view) bool { return len(v.pod.Spec.TopologySpreadConstraints) == 0 }
	term := func(match func(t *v1.PodAffinityTerm) bool) func(view) bool {
		return func(v view) bool { return anyPodTerm(v.pod, func(t *v1.PodAffinityTerm) bool { return match(t) }) }
	}
	onNodes := func(match func(a *v1.Affinity) bool) func(view) bool {
		return func(v view) bool {
			return slices.ContainsFunc(v.s.Bound, func(p *v1.Pod) bool { return p.Spec.Affinity != nil && match(p.Spec.Affinity) })
		}
	}
	honor, ignore := v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore
	is := func(p *v1.NodeInclusionPolicy, want v1.NodeInclusionPolicy) bool { return p != nil && *p == want }
	return []input{
		{"PodTopologySpread", "DoNotSchedule", spread(hard)},
		{"PodTopologySpread", "ScheduleAnyway", spread(func(c *v1.TopologySpreadConstraint) bool { return !hard(c) })},
		{"PodTopologySpread", "both", func(v view) bool {
			return spread(hard)(v) && spread(func(c *v1.TopologySpreadConstraint) bool { return !hard(c) })(v)
		}},
		{"PodTopologySpread", "hostname", spread(func(c *v1.TopologySpreadConstraint) bool { return c.TopologyKey == v1.LabelHostname })},
		{"PodTopologySpread", "key that nobody has", spread(func(c *v1.TopologySpreadConstraint) bool { return c.TopologyKey == "nobody-has-this" })},
		{"PodTopologySpread", "minDomains", spread(func(c *v1.TopologySpreadConstraint) bool { return c.MinDomains != nil })},
		{"PodTopologySpread", "nodeAffinityPolicy Honor", spread(func(c *v1.TopologySpreadConstraint) bool { return is(c.NodeAffinityPolicy, honor) })},
		{"PodTopologySpread", "nodeAffinityPolicy Ignore", spread(func(c *v1.TopologySpreadConstraint) bool { return is(c.NodeAffinityPolicy, ignore) })},
		{"PodTopologySpread", "nodeTaintsPolicy Honor", spread(func(c *v1.TopologySpreadConstraint) bool { return is(c.NodeTaintsPolicy, honor) })},
		{"PodTopologySpread", "nodeTaintsPolicy Ignore", spread(func(c *v1.TopologySpreadConstraint) bool { return is(c.NodeTaintsPolicy, ignore) })},
		{"PodTopologySpread", "matchLabelKeys", spread(func(c *v1.TopologySpreadConstraint) bool { return len(c.MatchLabelKeys) > 0 })},
		{"PodTopologySpread", "no selector", spread(func(c *v1.TopologySpreadConstraint) bool { return c.LabelSelector == nil })},
		{"PodTopologySpread", "empty selector", spread(func(c *v1.TopologySpreadConstraint) bool { return emptySelector(c.LabelSelector) })},
		{"PodTopologySpread", "selector that does not convert", spread(func(c *v1.TopologySpreadConstraint) bool { return broken(c.LabelSelector) })},
		{"PodTopologySpread", "100 constraints", func(v view) bool { return len(v.pod.Spec.TopologySpreadConstraints) == 100 }},
		{"PodTopologySpread", "system defaults", func(v view) bool {
			return noConstraint(v) && (v.s.Profile.Spread == nil || v.s.Profile.Spread.DefaultingType == configv1.SystemDefaulting) && grouped(v)
		}},
		{"PodTopologySpread", "list of defaults", func(v view) bool {
			return noConstraint(v) && v.s.Profile.Spread != nil && len(v.s.Profile.Spread.DefaultConstraints) > 0 && grouped(v)
		}},
		{"InterPodAffinity", "required affinity", func(v view) bool {
			return podAffinity(v.pod) != nil && len(podAffinity(v.pod).RequiredDuringSchedulingIgnoredDuringExecution) > 0
		}},
		{"InterPodAffinity", "required anti-affinity", func(v view) bool {
			return podAntiAffinity(v.pod) != nil && len(podAntiAffinity(v.pod).RequiredDuringSchedulingIgnoredDuringExecution) > 0
		}},
		{"InterPodAffinity", "preferred affinity", func(v view) bool {
			return podAffinity(v.pod) != nil && len(podAffinity(v.pod).PreferredDuringSchedulingIgnoredDuringExecution) > 0
		}},
		{"InterPodAffinity", "preferred anti-affinity", func(v view) bool {
			return podAntiAffinity(v.pod) != nil && len(podAntiAffinity(v.pod).PreferredDuringSchedulingIgnoredDuringExecution) > 0
		}},
		{"InterPodAffinity", "namespaces", term(func(t *v1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 })},
		{"InterPodAffinity", "namespaceSelector", term(func(t *v1.PodAffinityTerm) bool {
			return t.NamespaceSelector != nil && !emptySelector(t.NamespaceSelector)
		})},
		{"InterPodAffinity", "all namespaces", term(func(t *v1.PodAffinityTerm) bool { return emptySelector(t.NamespaceSelector) })},
		{"InterPodAffinity", "matchLabelKeys", term(func(t *v1.PodAffinityTerm) bool { return len(t.MatchLabelKeys) > 0 })},
		{"InterPodAffinity", "mismatchLabelKeys", term(func(t *v1.PodAffinityTerm) bool { return len(t.MismatchLabelKeys) > 0 })},
		{"InterPodAffinity", "no selector", term(func(t *v1.PodAffinityTerm) bool { return t.LabelSelector == nil })},
		{"InterPodAffinity", "empty selector", term(func(t *v1.PodAffinityTerm) bool { return emptySelector(t.LabelSelector) })},
		{"InterPodAffinity", "selector that does not convert", term(func(t *v1.PodAffinityTerm) bool { return broken(t.LabelSelector) || broken(t.NamespaceSelector) })},
		{"InterPodAffinity", "no topology key", term(func(t *v1.PodAffinityTerm) bool { return t.TopologyKey == "" })},
		{"InterPodAffinity", "pods with required affinity", onNodes(func(a *v1.Affinity) bool {
			return a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		})},
		{"InterPodAffinity", "pods with required anti-affinity", onNodes(func(a *v1.Affinity) bool {
			return a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		})},
		{"InterPodAffinity", "pods with preferred terms", onNodes(func(a *v1.Affinity) bool {
			return a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
		})},
		{"InterPodAffinity", "terminating pods", func(v view) bool {
			return slices.ContainsFunc(v.s.Bound, func(p *v1.Pod) bool { return p.DeletionTimestamp != nil && p.Spec.Affinity != nil })
		}},
		{"InterPodAffinity", "args hardPodAffinityWeight", func(v view) bool {
			return v.s.Profile.PodAffinity != nil && v.s.Profile.PodAffinity.HardPodAffinityWeight != nil
		}},
		{"InterPodAffinity", "args ignorePreferredTermsOfExistingPods", func(v view) bool {
			return v.s.Profile.PodAffinity != nil && v.s.Profile.PodAffinity.IgnorePreferredTermsOfExistingPods
		}},
	}
}()

// grouped reports whether the pod may belong to a controller or a service.
func grouped(v view) bool { return len(v.pod.OwnerReferences) > 0 || v.pod.Labels["app"] != "" }

func emptySelector(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

func broken(s *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(s)
	return err != nil
}

func podAffinity(p *v1.Pod) *v1.PodAffinity {
	if p.Spec.Affinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity
}

func podAntiAffinity(p *v1.Pod) *v1.PodAntiAffinity {
	if p.Spec.Affinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity
}

func anyPodTerm(p *v1.Pod, match func(*v1.PodAffinityTerm) bool) bool {
	var terms []v1.PodAffinityTerm
	var weighted []v1.WeightedPodAffinityTerm
	if a := podAffinity(p); a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := podAntiAffinity(p); a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool { return match(&t) }) ||
		slices.ContainsFunc(weighted, func(t v1.WeightedPodAffinityTerm) bool { return match(&t.PodAffinityTerm) })
}

// deviceInputs are read by DynamicResources.
var deviceInputs = func() []input {
	claim := func(match func(c *resourceapi.ResourceClaim) bool) func(view) bool {
		return func(v view) bool { return slices.ContainsFunc(deviceClaimsOf(v), match) }
	}
	request := func(match func(r *resourceapi.DeviceRequest) bool) func(view) bool {
		return claim(func(c *resourceapi.ResourceClaim) bool {
			return c.Status.Allocation == nil && slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return match(&r) })
		})
	}
	exactly := func(match func(r *resourceapi.ExactDeviceRequest) bool) func(view) bool {
		return request(func(r *resourceapi.DeviceRequest) bool { return r.Exactly != nil && match(r.Exactly) })
	}
	return []input{
		{"DynamicResources", "claim missing", func(v view) bool {
			return slices.ContainsFunc(v.pod.Spec.ResourceClaims, func(r v1.PodResourceClaim) bool {
				return r.ResourceClaimName != nil && get[*resourceapi.ResourceClaim](v, "ResourceClaim", v.pod.Namespace, *r.ResourceClaimName) == nil
			})
		}},
		{"DynamicResources", "claim of a template", func(v view) bool {
			return slices.ContainsFunc(v.pod.Spec.ResourceClaims, func(r v1.PodResourceClaim) bool { return r.ResourceClaimTemplateName != nil })
		}},
		{"DynamicResources", "claim going away", claim(func(c *resourceapi.ResourceClaim) bool { return c.DeletionTimestamp != nil })},
		{"DynamicResources", "claim allocated", claim(func(c *resourceapi.ResourceClaim) bool { return c.Status.Allocation != nil })},
		{"DynamicResources", "claim in full use", claim(func(c *resourceapi.ResourceClaim) bool {
			return len(c.Status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize
		})},
		{"DynamicResources", "several requests", claim(func(c *resourceapi.ResourceClaim) bool { return len(c.Spec.Devices.Requests) > 1 })},
		{"DynamicResources", "one device", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.Count == 1 })},
		{"DynamicResources", "several devices", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.Count > 1 })},
		{"DynamicResources", "all devices", exactly(func(r *resourceapi.ExactDeviceRequest) bool {
			return r.AllocationMode == resourceapi.DeviceAllocationModeAll
		})},
		{"DynamicResources", "unknown mode", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.AllocationMode == "Most" })},
		{"DynamicResources", "selectors", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return len(r.Selectors) > 0 })},
		{"DynamicResources", "admin access", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.AdminAccess != nil })},
		{"DynamicResources", "tolerations", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return len(r.Tolerations) > 0 })},
		{"DynamicResources", "capacity", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.Capacity != nil })},
		{"DynamicResources", "class with a broken selector", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.DeviceClassName == "wrong" })},
		{"DynamicResources", "class missing", exactly(func(r *resourceapi.ExactDeviceRequest) bool { return r.DeviceClassName == "absent" })},
		{"DynamicResources", "prioritized list", request(func(r *resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })},
		{"DynamicResources", "constraint", claim(func(c *resourceapi.ResourceClaim) bool {
			return c.Status.Allocation == nil && len(c.Spec.Devices.Constraints) > 0
		})},
		{"DynamicResources", "extended resource", asksForClass},
	}
}()

func deviceClaimsOf(v view) []*resourceapi.ResourceClaim {
	var out []*resourceapi.ResourceClaim
	add := func(name *string) {
		if name == nil {
			return
		}
		if c := get[*resourceapi.ResourceClaim](v, "ResourceClaim", v.pod.Namespace, *name); c != nil {
			out = append(out, c)
		}
	}
	for _, r := range v.pod.Spec.ResourceClaims {
		add(r.ResourceClaimName)
	}
	for _, st := range v.pod.Status.ResourceClaimStatuses {
		add(st.ResourceClaimName)
	}
	return out
}

// asksForClass reports whether the pod requests an extended resource that a device class backs.
func asksForClass(v view) bool {
	if !requests(func(n v1.ResourceName) bool { return strings.Contains(string(n), "/") })(v) {
		return false
	}
	for _, o := range v.objects { // order: any of them will do
		class, ok := o.(*resourceapi.DeviceClass)
		if !ok {
			continue
		}
		for i := range v.pod.Spec.Containers {
			for name, q := range v.pod.Spec.Containers[i].Resources.Requests { // order: any of them will do
				if !q.IsZero() && backs(scenario.Object{APIObject: class}, string(name)) {
					return true
				}
			}
		}
	}
	return false
}

// backs reports whether an object is a device class that backs a resource.
func backs(o scenario.Object, name string) bool {
	class, ok := o.APIObject.(*resourceapi.DeviceClass)
	if !ok {
		return false
	}
	stated := class.Spec.ExtendedResourceName
	return stated != nil && *stated == name || resourceapi.ResourceDeviceClassPrefix+class.Name == name
}
