// SPDX-License-Identifier: Apache-2.0

package gen

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// corner gives the pod one shape that chance alone seldom makes, and nothing beside
// it, so that each verdict on that shape is seen often enough.
func (m *maker) corner(p *v1.Pod, nodes []*v1.Node) {
	shapes := []func(){
		func() { m.cornerTerm(p, nodes) },
		func() { m.cornerTerm(p, nodes) },
		func() { m.cornerTerm(p, nodes) },
		func() { m.cornerTerm(p, nodes) },
		func() { m.cornerResource(p) },
		func() { m.cornerResource(p) },
		func() { m.cornerResource(p) },
		func() { m.cornerResource(p) },
	}
	if m.has["InterPodAffinity"] {
		pods := func() { m.cornerPodTerm(p) }
		shapes = append(shapes, pods, pods, pods, pods)
	}
	if m.has["PodTopologySpread"] {
		spread := func() { m.cornerSpread(p) }
		shapes = append(shapes, spread, spread, spread)
	}
	if m.volumed > 0 {
		volume := func() { m.cornerVolume(p, nodes) }
		match := func() { m.cornerMatch(p) }
		shapes = append(shapes, volume, volume, volume, volume, match, match)
	}
	if m.devices > 0 {
		shapes = append(shapes, func() { m.cornerDevice(p) }, func() { m.cornerDevice(p) }, func() { m.cornerDevice(p) }, func() { m.cornerDevice(p) })
	}
	shapes[m.Intn(len(shapes))]()
}

func (m *maker) cornerTerm(p *v1.Pod, nodes []*v1.Node) {
	wide := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpExists}}}
	number := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{
		Key: "generation", Operator: Pick(m.Rand, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt), Values: []string{Pick(m.Rand, "1", "3", "7")}}}}
	without := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{
		Key: Pick(m.Rand, "dedicated", "disk", "generation"), Operator: v1.NodeSelectorOpDoesNotExist}}}
	broken := m.term(nodes, true)
	broken.MatchExpressions = []v1.NodeSelectorRequirement{{Key: "disk", Operator: "Near"}}
	a := &v1.NodeAffinity{}
	switch m.Intn(6) {
	case 0: // a term that cannot be read beside one that can
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{}, wide}}
	case 1, 2:
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{number}}
	case 3: // an empty preferred term counts for nothing
		a.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{{Weight: 5}, {Weight: int32(m.Range(1, 50)), Preference: Pick(m.Rand, number, wide)}}
	case 4:
		a.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{{Weight: 5, Preference: broken}}
	case 5:
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{without}}
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution != nil && m.Chance(50) {
		weight := int32(m.Range(1, 50))
		zone := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"zone-a", "zone-c"}}}}
		a.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{{Weight: weight, Preference: Pick(m.Rand, wide, zone, zone)}}
	}
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: a}
}

func (m *maker) cornerResource(p *v1.Pod) {
	name := v1.ResourceName("other.io/nic")
	if len(m.extended) > 0 {
		name = Pick(m.Rand, m.extended...)
	}
	p.Spec.Containers[0].Resources.Requests = Pick(m.Rand,
		v1.ResourceList{name: resource.MustParse("1")},
		v1.ResourceList{name: resource.MustParse("1")},
		v1.ResourceList{name: resource.MustParse("1")},
		v1.ResourceList{name: resource.MustParse("1")},
		v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")},
		v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi"), v1.ResourceMemory: resource.MustParse("4Mi")},
	)
	if m.Chance(30) {
		p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}
	}
	if m.Chance(30) {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("20m")}}
	}
	if m.Rare(3) {
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}, {Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}
	} else if m.Rare(3) {
		p.Spec.Tolerations = []v1.Toleration{{Key: "gpu", Operator: Pick(m.Rand, v1.TolerationOperator("Near"), v1.TolerationOperator("Gt")), Value: "1"}}
	}
}

func (m *maker) cornerPodTerm(p *v1.Pod) {
	t := v1.PodAffinityTerm{TopologyKey: Pick(m.Rand, v1.LabelTopologyZone, v1.LabelHostname), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
	switch m.Intn(16) {
	case 0, 5, 6:
		t.TopologyKey = ""
	case 1, 7, 8, 11, 12:
		t.LabelSelector = nil
	case 2, 9, 10:
		t.LabelSelector = &metav1.LabelSelector{}
	case 3, 13:
		t.NamespaceSelector = &metav1.LabelSelector{}
	case 14, 15:
		t.NamespaceSelector, t.LabelSelector = &metav1.LabelSelector{}, Pick(m.Rand, nil, &metav1.LabelSelector{})
	case 4:
		t.MismatchLabelKeys = []string{"tier"}
		m.mergeKeys(p, &t)
	}
	soft := []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: t}}
	a := &v1.Affinity{}
	switch m.Intn(7) {
	case 5, 6: // the same everywhere
		t.TopologyKey = Pick(m.Rand, t.TopologyKey, v1.LabelTopologyRegion)
		soft[0].PodAffinityTerm = t
		a.PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
	case 0:
		a.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}
	case 1:
		a.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}
	case 2, 3:
		a.PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
	case 4:
		a.PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
	}
	if m.Rare(6) {
		// Beside one that does not convert.
		a.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t, {TopologyKey: v1.LabelTopologyZone,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bad value!"}}}}}
	}
	p.Spec.Affinity = a
}

func (m *maker) cornerSpread(p *v1.Pod) {
	c := v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: Pick(m.Rand, v1.LabelTopologyZone, v1.LabelHostname), WhenUnsatisfiable: Pick(m.Rand, v1.DoNotSchedule, v1.DoNotSchedule, v1.ScheduleAnyway)}
	if m.Chance(70) {
		c.LabelSelector = &metav1.LabelSelector{}
	}
	if c.WhenUnsatisfiable == v1.DoNotSchedule && m.Chance(20) {
		domains := int32(50)
		c.MinDomains = &domains
	}
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{c}
	if app := p.Labels["app"]; app != "" && m.Chance(50) {
		// A selector that is empty or absent counts no pod: only a second constraint rejects nodes or ranks them.
		other := c
		other.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		if other.TopologyKey = v1.LabelHostname; c.TopologyKey == v1.LabelHostname {
			other.TopologyKey = v1.LabelTopologyZone
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, other)
	}
	if m.Chance(25) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "nobody-has-this", WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: m.selector()})
	}
}

// cornerVolume makes the claim with the pod.
func (m *maker) cornerVolume(p *v1.Pod, nodes []*v1.Node) {
	v := v1.Volume{Name: "corner"}
	if m.Chance(30) {
		v.VolumeSource = Pick(m.Rand,
			v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk-1", ReadOnly: m.Chance(60)}},
			v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
			v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: []string{"mon-a"}, RBDPool: "pool", RBDImage: "disk-1", ReadOnly: m.Chance(30)}},
			v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "portal", IQN: "iqn.disk-1"}})
		p.Spec.Volumes = []v1.Volume{v}
		return
	}
	c := m.claim(p.Namespace, p.Name+"-corner", nodes)
	c.Annotations, c.DeletionTimestamp, c.Spec.VolumeName, c.Status.Phase = map[string]string{}, nil, "", v1.ClaimPending
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	class := Pick(m.Rand, "wait", "static", "zoned", "sized")
	c.Spec.StorageClassName = &class
	switch m.Intn(7) {
	case 0, 4:
		c.Annotations[annSelected] = m.nodeName(nodes)
		c.Spec.StorageClassName = Pick(m.Rand, &class, ptr("wait"))
	case 5: // a volume is made where the class allows it
		class = "zoned"
		c.Spec.Selector, c.Spec.VolumeMode = nil, nil
	case 1, 6:
		if m.Chance(50) {
			class = "static"
		}
		if class == "static" {
			// One that will do, on most nodes.
			pv := m.volume("for-"+p.Name, nil)
			pv.Spec = v1.PersistentVolumeSpec{Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("50Gi")}, AccessModes: c.Spec.AccessModes,
				StorageClassName: class, PersistentVolumeSource: pv.Spec.PersistentVolumeSource}
			pv.Labels, pv.DeletionTimestamp, pv.Status.Phase = nil, nil, v1.VolumeAvailable
			c.Spec.Selector, c.Spec.VolumeMode, c.Spec.VolumeAttributesClassName = nil, nil, nil
			if m.Chance(50) {
				pv.Labels = map[string]string{"made": "for"}
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: pv.Labels}
			}
			m.made = append(m.made, scenario.Object{APIObject: pv})
		}
	default:
		pv := m.volume("of-"+p.Name, nodes)
		pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
		pv.Status.Phase = v1.VolumeBound
		if m.Chance(50) {
			pv.Spec.NodeAffinity = nil
			pv.Labels = map[string]string{Pick(m.Rand, v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone): Pick(m.Rand, "zone-a", "zone-a__zone-b", "zone-b__zone-c")}
			if m.Rare(4) {
				key := Pick(m.Rand, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion)
				pv.Labels = map[string]string{key: Pick(m.Rand, "region-1", "region-2")}
			}
		}
		c.Spec.VolumeName, c.Status.Phase = pv.Name, v1.ClaimBound
		c.Annotations[annBound] = "yes"
		m.made = append(m.made, scenario.Object{APIObject: pv})
	}
	if m.Chance(40) {
		v.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}
		yes := true
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
	} else {
		v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}
	}
	m.made = append(m.made, scenario.Object{APIObject: c})
	p.Spec.Volumes = []v1.Volume{v}
}

func ptr(s string) *string { return &s }

// cornerDevice makes the claim with the pod, with one request.
func (m *maker) cornerDevice(p *v1.Pod) {
	ref := v1.PodResourceClaim{Name: "corner"}
	c := &resourceapi.ResourceClaim{ObjectMeta: m.meta(p.Namespace, p.Name+"-corner")}
	e := &resourceapi.ExactDeviceRequest{DeviceClassName: Pick(m.Rand, "gpu", "any", "net"), AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
	r := resourceapi.DeviceRequest{Name: "req-0", Exactly: e}
	yes := true
	switch m.Intn(16) {
	case 12:
		e.AdminAccess, e.DeviceClassName = &yes, Pick(m.Rand, "wrong", "gpu")
	case 11, 15:
		e.AllocationMode, e.Count, e.DeviceClassName = resourceapi.DeviceAllocationModeAll, 0, "any"
	case 9:
		e.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver.endsWith("example.com")`}}}
	case 10:
		attribute := resourceapi.FullyQualifiedName("gpu.example.com/rank")
		e.DeviceClassName, e.Count = "gpu", int64(m.Range(1, 2))
		c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
	case 0, 1:
		e.AdminAccess = &yes
	case 2:
		e.AllocationMode, e.Count = resourceapi.DeviceAllocationModeAll, 0
	case 3:
		e.DeviceClassName = "wrong"
	case 4:
		e.AllocationMode = "Most"
	case 5, 13:
		e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(Pick(m.Rand, "1Gi", "15Gi"))}}
		if m.Rare(4) {
			e.DeviceClassName = "wrong"
		}
	case 6, 7:
		// Rarely had first, always had last: nodes differ in what they can give.
		first := resourceapi.DeviceSubRequest{Name: "sub-0", DeviceClassName: "gpu", AllocationMode: e.AllocationMode, Count: int64(m.Range(2, 3))}
		last := resourceapi.DeviceSubRequest{Name: "sub-1", DeviceClassName: Pick(m.Rand, "any", "gpu"), AllocationMode: e.AllocationMode, Count: 1}
		r = resourceapi.DeviceRequest{Name: "req-0", FirstAvailable: []resourceapi.DeviceSubRequest{first, last}}
	case 8, 14:
		if m.Rare(4) {
			e.DeviceClassName = "wrong"
		}
		e.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
	}
	c.Spec.Devices.Requests = []resourceapi.DeviceRequest{r}
	if m.Rare(6) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, m.deviceRequest("req-1"))
	}
	if r.Exactly != nil && m.Rare(12) {
		m.allocate(c, nil)
		for len(c.Status.ReservedFor) < resourceapi.ResourceClaimReservedForMaxSize {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: p.UID + "-other"})
		}
	}
	ref.ResourceClaimName = &c.Name
	p.Spec.ResourceClaims = []v1.PodResourceClaim{ref}
	p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: ref.Name}}
	m.made = append(m.made, scenario.Object{APIObject: c})
}
