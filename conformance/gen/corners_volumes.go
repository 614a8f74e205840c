// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"hash/fnv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// cornerMatch makes claims of a class without a provisioner, and the few volumes that they
// compete for: of fitting and other sizes, some bound to one of them, some to one that had its
// name before, some to no claim.
func (m *maker) cornerMatch(p *v1.Pod) {
	gi := func(n int) resource.Quantity { return resource.MustParse(fmt.Sprintf("%dGi", n)) }
	class := "static"
	rwo := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	var claims []*v1.PersistentVolumeClaim
	for i := range m.Range(1, 2) {
		c := &v1.PersistentVolumeClaim{ObjectMeta: m.meta(p.Namespace, fmt.Sprintf("%s-match-%d", p.Name, i))}
		c.Spec = v1.PersistentVolumeClaimSpec{AccessModes: rwo, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: gi(Pick(m.Rand, 5, 10))}}}
		c.Status.Phase = v1.ClaimPending
		if m.Rare(8) {
			gold := "gold"
			c.Spec.VolumeAttributesClassName = &gold
		}
		claims = append(claims, c)
		m.made = append(m.made, scenario.Object{APIObject: c})
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprintf("match-%d", i), VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
	}
	// Sizes differ, so that no two volumes are equally good.
	promised := map[string]bool{} // claim -> some volume names it: of two, upstream takes the first in map order
	for i, size := range Some(m.Rand, m.Range(1, 4), 5, 6, 10, 11, 20) {
		pv := &v1.PersistentVolume{ObjectMeta: m.meta("", fmt.Sprintf("match-%s-%d", p.Name, i))}
		pv.Spec = v1.PersistentVolumeSpec{Capacity: v1.ResourceList{v1.ResourceStorage: gi(size)}, AccessModes: rwo, StorageClassName: class,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: pv.Name}}}
		pv.Status.Phase = v1.VolumeAvailable
		if m.Chance(40) {
			pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{Pick(m.Rand, m.zones...)}}}}}}}
		}
		switch m.Intn(8) {
		case 0, 1:
			c := Pick(m.Rand, claims...)
			if promised[c.Name] {
				break
			}
			promised[c.Name] = true
			pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: Pick(m.Rand, "", c.UID, types.UID("uid-before"))}
		case 2:
			pv.Status.Phase = Pick(m.Rand, v1.VolumeReleased, v1.VolumePending, v1.VolumeFailed)
		case 3:
			gold := "gold"
			pv.Spec.VolumeAttributesClassName = &gold
		case 4:
			pv.Spec.StorageClassName = "other"
			pv.Annotations = map[string]string{v1.BetaStorageClassAnnotation: class}
			resizeByName(pv)
		}
		m.made = append(m.made, scenario.Object{APIObject: pv})
	}
}

// resizeByName makes a volume with a class in its annotation a little larger than others. Upstream takes any of several
// volumes of equal size, in map order, and its score groups them by the class in the field: it would differ from run to
// run.
func resizeByName(pv *v1.PersistentVolume) {
	size, known := pv.Spec.Capacity[v1.ResourceStorage]
	if !known {
		return
	}
	h := fnv.New32a()
	h.Write([]byte(pv.Name))
	size.Add(*resource.NewQuantity(1024*(1+int64(h.Sum32()%1000)), resource.BinarySI))
	pv.Spec.Capacity[v1.ResourceStorage] = size
}
