// SPDX-License-Identifier: Apache-2.0

package volumebinding

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maker draws objects from few words, so that they meet.
type maker struct{ *rand.Rand }

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

func one[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

const (
	ns = "ns"

	bindCompleted     = "pv.kubernetes.io/bind-completed"
	boundByController = "pv.kubernetes.io/bound-by-controller"
	selectedNode      = "volume.kubernetes.io/selected-node"

	driver = "disk.example.com"
	ebs    = "kubernetes.io/aws-ebs"
	gce    = "kubernetes.io/gce-pd"
)

var (
	nodeNames  = []string{"n0", "n1", "n2", "n3", "n4"}
	claimNames = []string{"c0", "c1", "c2", "c3"}
	classNames = []string{"local", "made", "zonal"}
	topologies = []string{v1.LabelTopologyZone, "topology.gke.io/zone", "topology.ebs.csi.aws.com/zone", "rack"}
)

func (m maker) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10"}
}

func (m maker) node(name string) *v1.Node {
	n := &v1.Node{ObjectMeta: m.meta("", name)}
	n.Labels = map[string]string{}
	for _, key := range topologies {
		if m.chance(85) {
			n.Labels[key] = one(m, "a", "b", "c")
		}
	}
	return n
}

func (m maker) csiNode(name string) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: m.meta("", name)}
	if m.chance(60) {
		c.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: one(m, ebs, ebs+","+gce, gce+",kubernetes.io/azure-file", "")}
	}
	return c
}

// terms draws where something can be reached from, now and then something that does not parse.
func (m maker) terms() (terms []v1.NodeSelectorTerm) {
	for range m.IntN(3) {
		var t v1.NodeSelectorTerm
		for range m.IntN(3) {
			e := v1.NodeSelectorRequirement{Key: one(m, topologies...), Operator: one(m, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists)}
			if e.Operator != v1.NodeSelectorOpExists {
				e.Values = one(m, []string{"a"}, []string{"b"}, []string{"a", "c"}, []string{"b", "c"})
			}
			if m.chance(3) {
				e.Operator, e.Values = v1.NodeSelectorOpGt, []string{"many"}
			}
			t.MatchExpressions = append(t.MatchExpressions, e)
		}
		if m.chance(5) {
			t.MatchFields = []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{one(m, nodeNames...)}}}
		}
		terms = append(terms, t)
	}
	return terms
}

func (m maker) affinity() *v1.VolumeNodeAffinity {
	switch {
	case m.chance(30):
		return nil
	case m.chance(5):
		return &v1.VolumeNodeAffinity{}
	case m.chance(60):
		return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{one(m, "a", "b"), "c"}}}}}}}
	}
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: m.terms()}}
}

// volume draws the i-th volume; sizes grow with i, so that there is one smallest.
func (m maker) volume(i int) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: m.meta("", fmt.Sprint("pv", i))}
	pv.Spec.StorageClassName, pv.Status.Phase = one(m, classNames...), v1.VolumeAvailable
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: apiresource.MustParse(fmt.Sprintf("%dMi", 600+300*i))}
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, one(m, v1.ReadWriteMany, v1.ReadOnlyMany)}
	pv.Spec.NodeAffinity = m.affinity()
	pv.Labels = map[string]string{"tier": one(m, "fast", "slow")}
	switch m.IntN(12) {
	case 0:
		block := one(m, v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem)
		pv.Spec.VolumeMode = &block
	case 1:
		class := one(m, "gold", "")
		pv.Spec.VolumeAttributesClassName = &class
	case 2:
		pv.Status.Phase = one(m, v1.VolumePending, v1.VolumeReleased, v1.VolumeBound)
	case 3:
		pv.DeletionTimestamp = &metav1.Time{}
	case 4:
		pv.Annotations = map[string]string{v1.BetaStorageClassAnnotation: one(m, classNames...), boundByController: "yes"}
	}
	switch m.IntN(6) {
	case 0:
		pv.Spec.AWSElasticBlockStore = &v1.AWSElasticBlockStoreVolumeSource{VolumeID: one(m, "vol-a", "aws://a/vol-b", "aws://bad/x/vol/c", "vol-d")}
		pv.Labels[v1.LabelTopologyZone] = one(m, "a", "b", "a__b")
	case 1:
		pv.Spec.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}
		pv.Labels[v1.LabelTopologyZone] = one(m, "a", "b", "a__b")
	case 2:
		pv.Spec.AzureFile = &v1.AzureFilePersistentVolumeSource{ShareName: "share"}
	default:
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: pv.Name}
	}
	return pv
}

func (m maker) claim(name string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: m.meta(ns, name)}
	class := one(m, "local", "local", "made", "made", "zonal", "zonal", "now", "unset", "", "nowhere")
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{one(m, v1.ReadWriteOnce, v1.ReadWriteOnce, v1.ReadWriteMany)}
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: apiresource.MustParse(one(m, "500Mi", "1Gi", "2Gi"))}
	switch m.IntN(16) {
	case 0:
		c.Spec.Resources.Requests = nil
	case 1:
		block := v1.PersistentVolumeBlock
		c.Spec.VolumeMode = &block
	case 2:
		class := "gold"
		c.Spec.VolumeAttributesClassName = &class
	case 3, 4:
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "fast"}}
	case 5:
		if m.chance(20) {
			c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
		}
	case 6:
		c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: one(m, "local", "made")}
	}
	switch m.IntN(12) {
	case 0, 1, 2:
		bind(c, fmt.Sprint("pv", m.IntN(9)))
	case 3:
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, selectedNode, one(m, nodeNames...))
	case 4:
		if m.chance(30) {
			c.Spec.VolumeName = "pv1"
		}
		if m.chance(30) {
			c.Status.Phase = v1.ClaimLost
		}
		if m.chance(30) {
			c.DeletionTimestamp = &metav1.Time{}
		}
	}
	return c
}

// bind makes a claim fully bound.
func bind(c *v1.PersistentVolumeClaim, volume string) {
	c.Spec.VolumeName, c.Status.Phase = volume, v1.ClaimBound
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, bindCompleted, "yes")
}

func (m maker) class(name string) *storagev1.StorageClass {
	later, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	c := &storagev1.StorageClass{ObjectMeta: m.meta("", name), Provisioner: driver, VolumeBindingMode: &later}
	switch name {
	case "local":
		c.Provisioner = one(m, "kubernetes.io/no-provisioner", "kubernetes.io/no-provisioner", "")
	case "zonal":
		for range 1 + m.IntN(2) {
			var t v1.TopologySelectorTerm
			for range m.IntN(3) {
				t.MatchLabelExpressions = append(t.MatchLabelExpressions, v1.TopologySelectorLabelRequirement{
					Key: one(m, v1.LabelTopologyZone, "rack"), Values: one(m, []string{"a"}, []string{"b", "c"}, []string{"a", "b"}, nil)})
			}
			c.AllowedTopologies = append(c.AllowedTopologies, t)
		}
	case "now":
		c.VolumeBindingMode = &now
	case "unset":
		c.VolumeBindingMode = nil
	}
	return c
}

func (m maker) driver() *storagev1.CSIDriver {
	d := &storagev1.CSIDriver{ObjectMeta: m.meta("", driver)}
	if m.chance(80) {
		tells := m.chance(70)
		d.Spec.StorageCapacity = &tells
	}
	return d
}

func (m maker) room(i int) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: m.meta("storage", fmt.Sprint("room", i)), StorageClassName: one(m, "made", "zonal")}
	if m.chance(90) {
		free := apiresource.MustParse(one(m, "100Mi", "1Gi", "10Gi"))
		c.Capacity = &free
	}
	if m.chance(25) {
		most := apiresource.MustParse(one(m, "500Mi", "2Gi"))
		c.MaximumVolumeSize = &most
	}
	if m.chance(90) {
		c.NodeTopology = &metav1.LabelSelector{}
		for range m.IntN(3) {
			e := metav1.LabelSelectorRequirement{Key: one(m, v1.LabelTopologyZone, "rack"), Operator: one(m, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpIn,
				metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Near")}
			if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
				e.Values = []string{one(m, "a", "b", "c")}
			}
			c.NodeTopology.MatchExpressions = append(c.NodeTopology.MatchExpressions, e)
		}
	}
	return c
}

// pod draws a pod with some claims, each once, and perhaps other volumes.
func (m maker) pod(name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: m.meta(ns, name)}
	names := append([]string(nil), claimNames...)
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range 1 + m.IntN(3) {
		v := v1.Volume{Name: fmt.Sprint("v", i)}
		switch m.IntN(10) {
		case 0:
			v.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}
		case 1:
			v.CSI = &v1.CSIVolumeSource{Driver: driver}
		default:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: names[i]}
			if m.chance(2) {
				v.PersistentVolumeClaim.ClaimName = "gone"
			}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	return p
}

// claimsOf are the claims of a pod's ephemeral volumes: some missing, some owned by another object.
func (m maker) claimsOf(p *v1.Pod) (claims []*v1.PersistentVolumeClaim) {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Ephemeral == nil || m.chance(15) {
			continue
		}
		c, yes := m.claim(p.Name+"-"+p.Spec.Volumes[i].Name), m.chance(95)
		c.OwnerReferences = []metav1.OwnerReference{{UID: p.UID, Controller: &yes}}
		if m.chance(5) {
			c.OwnerReferences[0].UID = "another"
		}
		claims = append(claims, c)
	}
	return claims
}
