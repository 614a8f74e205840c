// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maker draws objects from few words, so that they meet.
type maker struct{ *rand.Rand }

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

func one[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

const ns = "ns"

var (
	nodeNames  = []string{"n0", "n1", "n2", "n3"}
	claimNames = []string{"c0", "c1", "c2", "c3", "c4"}
	pvNames    = []string{"pv0", "pv1", "pv2", "pv3", "pv4"}
	zoneLabels = []string{v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion, v1.LabelTopologyZone, v1.LabelTopologyRegion}
	drivers    = []string{"disk.example.com", "net.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com", "cinder.csi.openstack.org", "pxd.portworx.com", "file.csi.azure.com", "csi.vsphere.vmware.com"}
	inTrees    = []string{"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk", "kubernetes.io/cinder", "kubernetes.io/portworx-volume", "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume", "kubernetes.io/no-provisioner"}
	features   = []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "ExtendWebSocketsToKubelet", "Unheard"}
)

func (m maker) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}, ResourceVersion: fmt.Sprint(1 + m.IntN(1<<30))}
}

func (m maker) places(labels map[string]string, percent int, values ...string) {
	for _, l := range zoneLabels {
		if m.chance(percent) {
			labels[l] = one(m, values...)
		}
	}
}

func (m maker) node(name string) *v1.Node {
	n := &v1.Node{ObjectMeta: m.meta("", name)}
	m.places(n.Labels, 35, "a", "b", "c", "")
	for _, f := range features {
		if m.chance(50) {
			n.Status.DeclaredFeatures = append(n.Status.DeclaredFeatures, f)
		}
	}
	return n
}

// disk draws a volume in a pod of an in-tree kind.
func (m maker) disk() v1.VolumeSource {
	id, read := one(m, "vol-a", "vol-b", "aws://b/vol-a", "bad"), m.chance(50)
	switch m.IntN(9) {
	case 0:
		return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id, ReadOnly: read}}
	case 1:
		return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: id, ReadOnly: read}}
	case 2:
		return v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: id, DataDiskURI: "/disks/" + id}}
	case 3:
		return v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: id}}
	case 4:
		return v1.VolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: id}}
	case 5:
		return v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{ShareName: id, SecretName: "s"}}
	case 6:
		return v1.VolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: id}}
	case 7:
		return v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{IQN: id, ReadOnly: read}}
	}
	return v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: one(m, []string{"m0", "m1"}, []string{"m1"}, []string{"m2"}, nil), RBDPool: one(m, "p", "q"), RBDImage: id, ReadOnly: read}}
}

func (m maker) pod(namespace, name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: m.meta(namespace, name)}
	for i := range m.IntN(4) {
		v := v1.Volume{Name: fmt.Sprint("v", i)}
		switch k := m.IntN(20); {
		case k < 9:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: one(m, claimNames...)}
		case k == 9 && m.chance(30):
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: one(m, "", "gone")}
		case k < 12:
			v.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}
		case k < 13:
			v.CSI = &v1.CSIVolumeSource{Driver: one(m, drivers...)}
		case k < 14:
			v.EmptyDir = &v1.EmptyDirVolumeSource{}
		default:
			v.VolumeSource = m.disk()
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if m.chance(30) {
		no := false
		p.Spec.HostNetwork, p.Spec.HostUsers = true, &no
	}
	if m.chance(30) {
		always := v1.ContainerRestartPolicyAlways
		p.Spec.Containers = []v1.Container{{Name: "c", RestartPolicy: &always, RestartPolicyRules: []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}}}
	}
	return p
}

func (m maker) claim(name string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: m.meta(ns, name)}
	if m.chance(60) {
		c.Spec.VolumeName = one(m, append(pvNames, "gone")...)
	}
	if m.chance(75) {
		class := one(m, "wait", "now", "unset", "intree", "")
		c.Spec.StorageClassName = &class
	}
	if m.chance(10) {
		c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: one(m, "wait", "gone", "")}
	}
	if m.chance(40) {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{one(m, v1.ReadWriteOnce, v1.ReadWriteOncePod, v1.ReadWriteOncePod)}
	}
	return c
}

// claimsOf are the claims of a pod's generic ephemeral volumes: some missing, some owned by another object.
func (m maker) claimsOf(p *v1.Pod) (claims []*v1.PersistentVolumeClaim) {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Ephemeral == nil || m.chance(15) {
			continue
		}
		c := m.claim(p.Name + "-" + p.Spec.Volumes[i].Name)
		c.Namespace = p.Namespace
		owner := metav1.OwnerReference{UID: p.UID, Controller: new(bool)}
		*owner.Controller = m.chance(95)
		if m.chance(5) {
			owner.UID = "uid-of-another"
		}
		c.OwnerReferences = []metav1.OwnerReference{owner}
		claims = append(claims, c)
	}
	return claims
}

func (m maker) volume(name string) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: m.meta("", name)}
	m.places(pv.Labels, 25, "a", "b", "a__b", "a__", "b__ a ", "")
	switch d := m.disk(); {
	case m.chance(60):
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: one(m, append(drivers, "")...), VolumeHandle: one(m, name, "vol-a", "")}
	case d.AWSElasticBlockStore != nil:
		pv.Spec.AWSElasticBlockStore = d.AWSElasticBlockStore
	case d.GCEPersistentDisk != nil:
		pv.Spec.GCEPersistentDisk = d.GCEPersistentDisk
	case d.AzureDisk != nil:
		pv.Spec.AzureDisk = d.AzureDisk
	case d.PortworxVolume != nil:
		pv.Spec.PortworxVolume = d.PortworxVolume
	case d.Cinder != nil:
		pv.Spec.Cinder = &v1.CinderPersistentVolumeSource{VolumeID: d.Cinder.VolumeID}
	case d.VsphereVolume != nil:
		pv.Spec.VsphereVolume = d.VsphereVolume
	case d.AzureFile != nil:
		pv.Spec.AzureFile = &v1.AzureFilePersistentVolumeSource{ShareName: d.AzureFile.ShareName, SecretName: "s"}
	default:
		pv.Spec.HostPath = &v1.HostPathVolumeSource{Path: "/data"}
	}
	return pv
}

func (m maker) class(name string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: m.meta("", name), Provisioner: one(m, drivers...)}
	if name == "intree" || m.chance(15) {
		c.Provisioner = one(m, inTrees...)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	if name == "now" {
		mode = storagev1.VolumeBindingImmediate
	}
	if name != "unset" {
		c.VolumeBindingMode = &mode
	}
	return c
}

func (m maker) csiNode(name string) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: m.meta("", name)}
	for _, driver := range drivers {
		if m.chance(30) {
			continue
		}
		d := storagev1.CSINodeDriver{Name: driver, NodeID: name}
		if m.chance(85) {
			limit := int32(m.IntN(4))
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
			if m.chance(5) {
				d.Allocatable.Count = nil
			}
		}
		c.Spec.Drivers = append(c.Spec.Drivers, d)
	}
	return c
}

func (m maker) attachment(name string) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{ObjectMeta: m.meta("", name), Spec: storagev1.VolumeAttachmentSpec{NodeName: one(m, nodeNames...), Attacher: one(m, append(drivers, "")...)}}
	if m.chance(90) {
		pv := one(m, append(pvNames, "gone")...)
		va.Spec.Source.PersistentVolumeName = &pv
	}
	return va
}
