// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// TestInTreeVolumesHaveBecomeCSIVolumes: after trimming a volume must still tell all that the translation reads.
func TestInTreeVolumesHaveBecomeCSIVolumes(t *testing.T) {
	m := NewMigration(klog.Background())
	for name, driver := range map[string]string{"kubernetes.io/aws-ebs": "ebs.csi.aws.com", "kubernetes.io/cinder": "cinder.csi.openstack.org"} {
		if got, ok := m.Provisioner(name); !ok || got != driver {
			t.Errorf("%s became %q", name, got)
		}
	}
	if _, ok := m.Provisioner("example.com/other"); ok {
		t.Error("a foreign provisioner has migrated")
	}
	volume := func(source v1.PersistentVolumeSource) *v1.PersistentVolume {
		return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{v1.LabelTopologyZone: "z"}},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}}
	}
	for _, c := range []struct {
		source v1.PersistentVolumeSource
		handle string
		placed bool // the zone became a node affinity
	}{
		{v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}, "vol-1", true},
		{v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "c", SecretRef: &v1.SecretReference{Name: "s"}}}, "c", true},
		{v1.PersistentVolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "p"}}, "p", false},
		{v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "v"}}, "v", true},
	} {
		pv := Trim(volume(c.source)).(*v1.PersistentVolume)
		is, ok := m.Volume(pv)
		if !ok || is.Err != nil || is.PV.Spec.CSI.VolumeHandle != c.handle || is.PV.Spec.CSI.Driver != is.Driver || (is.PV.Spec.NodeAffinity != nil) != c.placed {
			t.Errorf("%+v became %+v, %v", c.source, is, ok)
			continue
		}
		if again, _ := m.Volume(pv); again.PV != is.PV {
			t.Error("a translation was made twice")
		}
	}
	if _, ok := m.Volume(volume(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "d"}})); ok {
		t.Error("a CSI volume has migrated")
	}
	is, ok := m.Inline(&v1.Volume{VolumeSource: v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://x/y/bad id"}}}, "ns")
	if !ok || is.Err == nil || is.PV != nil || is.Plugin != "kubernetes.io/aws-ebs" {
		t.Errorf("a volume that cannot be translated became %+v, %v", is, ok)
	}
	if _, ok := m.Inline(&v1.Volume{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}, "ns"); ok {
		t.Error("an empty directory has migrated")
	}
}

// TestTranslationsAreForgottenInTheEnd bounds what is remembered.
func TestTranslationsAreForgottenInTheEnd(t *testing.T) {
	m := NewMigration(klog.Background())
	for range 2*migratedKept + 1 {
		m.Volume(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}}})
	}
	if len(m.volumes) > migratedKept {
		t.Errorf("%d volumes are remembered", len(m.volumes))
	}
}
