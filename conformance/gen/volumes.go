// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Names of the storage world. Some classes and drivers are missing in some clusters.
const (
	csiDriver      = "disk.example.com"
	capacityDriver = "local.example.com"
	noProvisioner  = "kubernetes.io/no-provisioner"
	gceDriver      = "pd.csi.storage.gke.io"
	awsDriver      = "ebs.csi.aws.com"
	fileDriver     = "file.csi.azure.com"

	annBound      = "pv.kubernetes.io/bind-completed"
	annController = "pv.kubernetes.io/bound-by-controller"
	annSelected   = "volume.kubernetes.io/selected-node"
	annMigrated   = "storage.alpha.kubernetes.io/migrated-plugins"
)

// hasVolumes reports whether any plugin reads volumes.
func (m *maker) hasVolumes() bool {
	return m.has["VolumeBinding"] || m.has["VolumeRestrictions"] || m.has["NodeVolumeLimits"] || m.has["VolumeZone"]
}

// classNames are the storage classes; the last exists nowhere.
var classNames = []string{"wait", "wait", "wait", "static", "static", "now", "zoned", "sized", "sized", "modeless", "absent"}

// storageObjects makes classes, drivers, volumes and claims in every state.
func (m *maker) storageObjects(s *scenario.Scenario, nodes []*v1.Node) {
	m.claims, m.volumed = map[string][]string{}, 0
	if !m.hasVolumes() || !m.Chance(70) {
		return
	}
	m.volumed = Pick(m.Rand, 10, 40, 80)
	m.classes(s)
	m.drivers(s, nodes)
	for i := range m.Range(4, 14) {
		pv := m.volume(fmt.Sprintf("pv-%d", i), nodes)
		add(s, pv)
	}
	for i := range m.Range(6, 20) {
		ns := Pick(m.Rand, namespaces...)
		c := m.claim(ns, fmt.Sprintf("data-%d", i), nodes)
		m.claims[ns] = append(m.claims[ns], c.Name)
		add(s, c)
		if c.Spec.VolumeName != "" && c.Annotations[annBound] != "" && m.Chance(90) {
			// The volume it is bound to, pointing back.
			pv := m.volume("of-"+ns+"-"+c.Name, nodes)
			c.Spec.VolumeName = pv.Name
			pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: ns, Name: c.Name, UID: c.UID}
			pv.Status.Phase = v1.VolumeBound
			add(s, pv)
		}
	}
}

func (m *maker) classes(s *scenario.Scenario) {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for _, c := range []*storagev1.StorageClass{
		{ObjectMeta: m.meta("", "wait"), Provisioner: csiDriver, VolumeBindingMode: &wait},
		{ObjectMeta: m.meta("", "static"), Provisioner: noProvisioner, VolumeBindingMode: &wait},
		{ObjectMeta: m.meta("", "now"), Provisioner: csiDriver, VolumeBindingMode: &now},
		{ObjectMeta: m.meta("", "zoned"), Provisioner: Pick(m.Rand, csiDriver, "kubernetes.io/gce-pd"), VolumeBindingMode: &wait, AllowedTopologies: m.allowed()},
		{ObjectMeta: m.meta("", "sized"), Provisioner: capacityDriver, VolumeBindingMode: &wait},
		{ObjectMeta: m.meta("", "modeless"), Provisioner: csiDriver},
	} {
		if m.Chance(92) {
			add(s, c)
		}
	}
}

func (m *maker) allowed() []v1.TopologySelectorTerm {
	var out []v1.TopologySelectorTerm
	for range m.Range(1, 2) {
		t := v1.TopologySelectorTerm{}
		t.MatchLabelExpressions = append(t.MatchLabelExpressions, v1.TopologySelectorLabelRequirement{
			Key: Pick(m.Rand, v1.LabelTopologyZone, v1.LabelTopologyZone, "disk", "nobody-has-this"), Values: Some(m.Rand, m.Range(1, 2), "zone-a", "zone-b", "zone-c", "ssd"),
		})
		if m.Rare(8) {
			t.MatchLabelExpressions = nil
		}
		out = append(out, t)
	}
	return out
}

// drivers makes CSIDriver objects, what they say of nodes, and free capacity.
func (m *maker) drivers(s *scenario.Scenario, nodes []*v1.Node) {
	yes, no := true, false
	if m.Chance(80) {
		add(s, &storagev1.CSIDriver{ObjectMeta: m.meta("", csiDriver), Spec: storagev1.CSIDriverSpec{
			StorageCapacity: Pick(m.Rand, nil, &no), PreventPodSchedulingIfMissing: Pick(m.Rand, nil, nil, &no, &yes)}})
	}
	if m.Chance(90) {
		add(s, &storagev1.CSIDriver{ObjectMeta: m.meta("", capacityDriver), Spec: storagev1.CSIDriverSpec{StorageCapacity: Pick(m.Rand, &yes, &yes, &yes, &no, nil)}})
	}
	for _, n := range nodes {
		if m.Chance(75) {
			add(s, m.csiNode(n.Name))
		}
		if m.Chance(8) {
			add(s, m.attachment(n.Name))
		}
	}
	for i := range m.Intn(7) {
		add(s, m.capacity(fmt.Sprintf("cap-%d", i)))
	}
}

func (m *maker) csiNode(node string) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: m.meta("", node)}
	for _, name := range []string{csiDriver, capacityDriver, gceDriver, awsDriver, fileDriver} {
		if !m.Chance(60) {
			continue
		}
		d := storagev1.CSINodeDriver{Name: name, NodeID: node, TopologyKeys: []string{v1.LabelTopologyZone}}
		if m.Chance(75) {
			count := int32(Pick(m.Rand, 0, 1, 1, 2, 3, 16))
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
		} else if m.Chance(30) {
			d.Allocatable = &storagev1.VolumeNodeResources{}
		}
		c.Spec.Drivers = append(c.Spec.Drivers, d)
	}
	if m.Chance(50) {
		c.Annotations = map[string]string{annMigrated: Pick(m.Rand, "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs,kubernetes.io/cinder,kubernetes.io/azure-file", "")}
	}
	return c
}

// attachments are of volumes that pods of the node use, too.
func (m *maker) attachments(s *scenario.Scenario) {
	for _, p := range s.Bound {
		for i := range p.Spec.Volumes {
			if c := p.Spec.Volumes[i].PersistentVolumeClaim; c != nil && m.Chance(40) {
				a := m.attachment(p.Spec.NodeName)
				pv := "of-" + p.Namespace + "-" + c.ClaimName
				a.Spec.Source = storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}
				add(s, a)
			}
		}
	}
}

func (m *maker) attachment(node string) *storagev1.VolumeAttachment {
	m.serial++
	a := &storagev1.VolumeAttachment{ObjectMeta: m.meta("", fmt.Sprintf("va-%d", m.serial))}
	pv := fmt.Sprintf("pv-%d", m.Intn(14))
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: Pick(m.Rand, csiDriver, csiDriver, gceDriver), NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}
	if m.Rare(8) {
		a.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &v1.PersistentVolumeSpec{}}
	}
	return a
}

func (m *maker) capacity(name string) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: m.meta("kube-system", name), StorageClassName: "sized"}
	zone := func(op metav1.LabelSelectorOperator, more ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: append(more, metav1.LabelSelectorRequirement{
			Key: v1.LabelTopologyZone, Operator: op, Values: []string{"zone-a"}})}
	}
	ssd := metav1.LabelSelectorRequirement{Key: "disk", Operator: metav1.LabelSelectorOpIn, Values: []string{"ssd"}}
	// No node reaches two storages of a class that publishes capacity: upstream scores by any of them.
	switch name {
	case "cap-0":
		c.NodeTopology = Pick(m.Rand, zone(metav1.LabelSelectorOpIn), zone(metav1.LabelSelectorOpIn, ssd),
			&metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: "zone-a"}})
	case "cap-1":
		c.NodeTopology = Pick(m.Rand, zone(metav1.LabelSelectorOpNotIn), zone(metav1.LabelSelectorOpNotIn, ssd),
			&metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: "zone-b"}})
	case "cap-2":
		c.NodeTopology = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "disk", Operator: metav1.LabelSelectorOpIn}}}
	case "cap-3":
	default:
		c.StorageClassName, c.NodeTopology = "wait", &metav1.LabelSelector{}
	}
	quantity := func() *resource.Quantity {
		q := resource.MustParse(Pick(m.Rand, "0", "1Gi", "5Gi", "10Gi", "100Gi", "1Ti"))
		return &q
	}
	if m.Chance(85) { // with a maximal size alone, upstream's score crashes
		c.Capacity = quantity()
		if m.Chance(40) {
			c.MaximumVolumeSize = quantity()
		}
	}
	return c
}

func (m *maker) size() resource.Quantity {
	return resource.MustParse(Pick(m.Rand, "0", "1Gi", "5Gi", "5Gi", "10Gi", "50Gi", "1500m"))
}

func (m *maker) modes() []v1.PersistentVolumeAccessMode {
	return Pick(m.Rand,
		[]v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		[]v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany}, []v1.PersistentVolumeAccessMode{v1.ReadWriteMany},
		[]v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod})
}

// volume makes a PersistentVolume: free, promised, bound, released or going away.
func (m *maker) volume(name string, nodes []*v1.Node) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: m.meta("", name), Spec: v1.PersistentVolumeSpec{
		Capacity: v1.ResourceList{v1.ResourceStorage: m.size()}, AccessModes: m.modes(),
		StorageClassName: Pick(m.Rand, append(classNames, "")...), PersistentVolumeSource: m.source(name),
	}}
	pv.Status.Phase = v1.VolumeAvailable
	if m.Rare(12) {
		pv.Annotations = map[string]string{v1.BetaStorageClassAnnotation: Pick(m.Rand, classNames...)}
		resizeByName(pv)
	}
	if m.Chance(25) {
		mode := Pick(m.Rand, v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem)
		pv.Spec.VolumeMode = &mode
	}
	if m.Chance(50) {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{}
		if !m.Rare(15) {
			pv.Spec.NodeAffinity.Required = m.volumeAffinity(nodes)
		}
	}
	m.zoneLabels(pv)
	switch n := m.Intn(100); {
	case n < 60:
	case n < 78: // promised to a claim, which may not know
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: Pick(m.Rand, namespaces...), Name: fmt.Sprintf("data-%d", m.Intn(20))}
	case n < 84:
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "data-0", UID: "uid-somebody"}
		pv.Status.Phase = v1.VolumeBound
	case n < 90:
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "gone", UID: "uid-gone"}
		pv.Status.Phase = Pick(m.Rand, v1.VolumeReleased, v1.VolumeFailed, v1.VolumePending)
	case n < 94:
		at := Created
		pv.DeletionTimestamp = &at
	case n < 97:
		attributes := "gold"
		pv.Spec.VolumeAttributesClassName = &attributes
	case n < 98:
		pv.Spec.Capacity = nil
	}
	return pv
}

func (m *maker) source(name string) v1.PersistentVolumeSource {
	switch m.Intn(10) {
	case 0:
		return v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name}}
	case 1:
		return v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: Pick(m.Rand, "vol-1", "aws://zone-a/vol-2", "not a volume")}}
	case 2:
		return v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/disk"}}
	}
	return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: Pick(m.Rand, csiDriver, csiDriver, capacityDriver), VolumeHandle: "handle-" + name}}
}

// volumeAffinity is legal but for one in seven, which no API server would take.
func (m *maker) volumeAffinity(nodes []*v1.Node) *v1.NodeSelector {
	if m.Rare(7) {
		return &v1.NodeSelector{NodeSelectorTerms: Pick(m.Rand, nil,
			[]v1.NodeSelectorTerm{{}},
			[]v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: "Near", Values: []string{"ssd"}}}}},
			[]v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "generation", Operator: v1.NodeSelectorOpGt, Values: []string{"abc"}}}}})}
	}
	s := &v1.NodeSelector{}
	for range m.Range(1, 2) {
		if m.Rare(8) {
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{m.field(nodes, false)}})
			continue
		}
		if m.Chance(20) {
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{m.nodeName(nodes)}}}})
			continue
		}
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{m.requirement(false)}})
	}
	return s
}

func (m *maker) zoneLabels(pv *v1.PersistentVolume) {
	if !m.Chance(50) {
		return
	}
	key := Pick(m.Rand, v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion)
	value := Pick(m.Rand, "zone-a", "zone-b", "zone-a__zone-b", "zone-c__zone-d__zone-a", "zone-a__", "", "nowhere")
	if key == v1.LabelTopologyRegion || key == v1.LabelFailureDomainBetaRegion {
		value = Pick(m.Rand, "region-1", "region-2", "region-1__region-2")
	}
	pv.Labels = map[string]string{key: value}
}

// claim makes a PersistentVolumeClaim in one of its states.
func (m *maker) claim(ns, name string, nodes []*v1.Node) *v1.PersistentVolumeClaim {
	class := Pick(m.Rand, classNames...)
	c := &v1.PersistentVolumeClaim{ObjectMeta: m.meta(ns, name), Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: m.modes(), StorageClassName: &class,
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: m.size()}},
	}}
	c.Annotations = map[string]string{}
	c.Status.Phase = v1.ClaimPending
	if m.Rare(15) {
		c.Spec.StorageClassName = Pick(m.Rand, nil, new(string))
	}
	if m.Rare(30) {
		annotated := Pick(m.Rand, classNames...)
		c.Annotations[v1.BetaStorageClassAnnotation] = annotated
		if c.Spec.StorageClassName == nil && (annotated == "sized" || annotated == "wait") {
			// Some storage publishes capacity for these, and upstream's score crashes without the field.
			c.Spec.StorageClassName = new(string)
		}
	}
	if m.Chance(15) {
		mode := Pick(m.Rand, v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem)
		c.Spec.VolumeMode = &mode
	}
	if m.Rare(12) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: "zone-a"}}
	}
	if m.Rare(50) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}
	}
	if m.Rare(40) {
		attributes := Pick(m.Rand, "gold", "")
		c.Spec.VolumeAttributesClassName = &attributes
	}
	switch n := m.Intn(100); {
	case n < 38: // waits
	case n < 78: // bound
		c.Spec.VolumeName = "pv-gone"
		c.Annotations[annBound], c.Annotations[annController] = "yes", "yes"
		c.Status.Phase = v1.ClaimBound
	case n < 84: // promised a volume that it is not bound to
		c.Spec.VolumeName = fmt.Sprintf("pv-%d", m.Intn(15))
	case n < 90: // being made for a node
		c.Annotations[annSelected] = m.nodeName(nodes)
	case n < 94:
		c.Spec.VolumeName, c.Status.Phase = "pv-gone", v1.ClaimLost
		c.Annotations[annBound] = "yes"
	case n < 98:
		at := Created
		c.DeletionTimestamp = &at
	}
	return c
}

// volumes gives the pod volumes in percent of the draws. Claims that belong to the
// pod alone wait in made.
func (m *maker) volumes(p *v1.Pod, percent int) {
	if m.volumed == 0 || !m.Chance(percent) {
		return
	}
	for i := range m.Range(1, Pick(m.Rand, 1, 1, 2, 3)) {
		v := v1.Volume{Name: fmt.Sprintf("vol-%d", i)}
		names := m.claims[p.Namespace]
		switch n := m.Intn(100); {
		case n < 60 && len(names) > 0:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: Pick(m.Rand, names...), ReadOnly: m.Rare(6)}
		case n < 64:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}
		case n < 74:
			v.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}
			if o := m.ephemeral(p, &v); o != nil {
				m.made = append(m.made, scenario.Object{APIObject: o})
			}
		default:
			v.VolumeSource = m.disk()
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
		if m.Rare(15) {
			v.Name += "-again"
			p.Spec.Volumes = append(p.Spec.Volumes, v)
		}
	}
}

// ephemeral is the claim made for a pod's volume, if it is there yet and really the
// pod's.
func (m *maker) ephemeral(p *v1.Pod, v *v1.Volume) *v1.PersistentVolumeClaim {
	if m.Chance(20) {
		return nil
	}
	c := m.claim(p.Namespace, p.Name+"-"+v.Name, nil)
	yes := true
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
	if m.Rare(12) {
		c.OwnerReferences[0].UID = "uid-another"
	}
	return c
}

// disk is a volume without a claim: those that pods of a node cannot share, and
// some that mean nothing to the scheduler.
func (m *maker) disk() v1.VolumeSource {
	id := Pick(m.Rand, "disk-1", "disk-1", "disk-2", "disk-3")
	readOnly := m.Chance(40)
	switch m.Intn(12) {
	case 11:
		return v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{SecretName: "secret", ShareName: id}}
	case 9:
		return v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: []string{"mon-a"}, RBDPool: "pool", RBDImage: "disk-1", ReadOnly: readOnly}}
	case 10:
		return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk-1", ReadOnly: m.Chance(20)}}
	case 0, 1:
		return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: id, ReadOnly: readOnly}}
	case 2, 3:
		return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: Pick(m.Rand, "vol-1", "vol-1", "vol-2", "not a volume"), ReadOnly: readOnly}}
	case 4:
		return v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "portal", IQN: "iqn." + id, Lun: int32(m.Intn(2)), ReadOnly: readOnly}}
	case 5:
		return v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: Some(m.Rand, m.Range(1, 2), "mon-a", "mon-b", "mon-c"), RBDPool: Pick(m.Rand, "pool", "other"), RBDImage: id, ReadOnly: readOnly}}
	case 6:
		return v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: csiDriver}}
	case 7:
		return v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	}
	return v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: id}}
}

// changedStorage is changed for objects of storage: mostly a claim or volume moves
// on from one state to another.
func (m *maker) changedStorage(o scenario.APIObject) scenario.APIObject {
	version := o.GetResourceVersion()
	var next scenario.APIObject
	switch old := o.(type) {
	case *v1.PersistentVolumeClaim:
		c := m.claim(old.Namespace, old.Name, nil)
		c.OwnerReferences = old.OwnerReferences
		next = c
	case *v1.PersistentVolume:
		next = m.volume(old.Name, nil)
	case *storagev1.CSINode:
		next = m.csiNode(old.Name)
	case *storagev1.CSIStorageCapacity:
		c := m.capacity(old.Name)
		next = c
	case *storagev1.CSIDriver:
		on := m.Chance(50)
		old.Spec.StorageCapacity = &on
		next = old
	case *storagev1.StorageClass:
		if old.AllowedTopologies == nil {
			return nil
		}
		old.AllowedTopologies = m.allowed()
		next = old
	default:
		return m.changedDevices(o)
	}
	next.SetResourceVersion(version)
	return next
}
