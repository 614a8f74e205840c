// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	ebsPlugin, ebsDriver = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
	filePlugin           = "kubernetes.io/azure-file"
	fileDriver           = "file.csi.azure.com"
)

// mounts adds a volume of this source, named v0, v1 and so on.
func mounts(source v1.VolumeSource) plugintest.PodOption {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprintf("v%d", len(p.Spec.Volumes)), VolumeSource: source})
	}
}

func mountsClaims(names ...string) plugintest.PodOption {
	return func(p *v1.Pod) {
		for _, name := range names {
			mounts(v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})(p)
		}
	}
}

func mountsEphemeral(p *v1.Pod) { mounts(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}})(p) }

func mountsEBS(id string, readOnly bool) plugintest.PodOption {
	return mounts(v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id, ReadOnly: readOnly}})
}

// storageClaim is a claim in namespace ns, bound to a volume unless that is empty.
func storageClaim(name, volume string, options ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}}
	for _, o := range options {
		o(c)
	}
	return c
}

func ofClass(name string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func forOnePod(c *v1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
}

func ownedBy(uid string) func(*v1.PersistentVolumeClaim) {
	yes := true
	return func(c *v1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(uid), Controller: &yes}}
	}
}

// volume is a PersistentVolume of a CSI driver; its handle is its name. An empty driver makes it a local disk.
func volume(name, driver string, labels ...string) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if driver != "" {
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	}
	for i := 0; i < len(labels); i += 2 {
		pv.Labels[labels[i]] = labels[i+1]
	}
	return pv
}

// inTree gives a volume the source of an in-tree kind.
func inTree(pv *v1.PersistentVolume, source v1.PersistentVolumeSource) *v1.PersistentVolume {
	pv.Spec.PersistentVolumeSource = source
	return pv
}

func storageClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	if mode != "" {
		c.VolumeBindingMode = &mode
	}
	return c
}

// csiNode tells how many volumes drivers can attach to a node: driver, limit, driver, limit; below 0 is no limit.
func csiNode(name string, limits ...any) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(limits); i += 2 {
		d := storagev1.CSINodeDriver{Name: limits[i].(string)}
		if limit := int32(limits[i+1].(int)); limit >= 0 {
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		c.Spec.Drivers = append(c.Spec.Drivers, d)
	}
	return c
}

func attachment(name, node, driver, pv string) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node, Attacher: driver}}
	if pv != "" {
		va.Spec.Source.PersistentVolumeName = &pv
	}
	return va
}

// fakeMigration knows EBS disks, whose ids must not be "bad", and Azure files.
type fakeMigration struct{}

func (fakeMigration) Provisioner(plugin string) (string, bool) {
	driver, ok := map[string]string{ebsPlugin: ebsDriver, filePlugin: fileDriver}[plugin]
	return driver, ok
}

func (m fakeMigration) Inline(v *v1.Volume, _ string) (plugin.Migrated, bool) {
	switch {
	case v.AWSElasticBlockStore != nil:
		return m.ebs(v.AWSElasticBlockStore.VolumeID), true
	case v.AzureFile != nil:
		return plugin.Migrated{Plugin: filePlugin, Driver: fileDriver, PV: volume("share", fileDriver)}, true
	}
	return plugin.Migrated{}, false
}

func (m fakeMigration) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	switch {
	case pv.Spec.AWSElasticBlockStore != nil:
		return m.ebs(pv.Spec.AWSElasticBlockStore.VolumeID), true
	case pv.Spec.AzureFile != nil:
		return plugin.Migrated{Plugin: filePlugin, Driver: fileDriver, PV: volume("share", fileDriver)}, true
	}
	return plugin.Migrated{}, false
}

func (fakeMigration) ebs(id string) plugin.Migrated {
	m := plugin.Migrated{Plugin: ebsPlugin, Driver: ebsDriver}
	if id == "bad" {
		m.Err = errors.New("no such disk")
	} else {
		m.PV = volume(id, ebsDriver)
	}
	return m
}
