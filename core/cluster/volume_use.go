// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// volumeUse indexes which pods use which volumes on which nodes, so that no decision scans all pods for it. It
// follows the ledger, the node objects and the volume attachments, undo included, because every change of those calls
// it.
type volumeUse struct {
	// claims counts the volumes that name a claim: claim -> volumes of pods on rows that have a node. Like upstream,
	// it leaves out pods whose node object is gone. Claims of generic ephemeral volumes are not in it.
	claims map[ObjectKey]int
	rows   []rowVolumes // row -> its pods with volumes; as long as the highest row that ever had one
	// attachments lists the objects that attach a volume to a node: node name -> attachments, in no order.
	attachments map[string][]*storagev1.VolumeAttachment

	drivers map[string]*driverRows // CSI driver -> the rows that it limits
	// special is the set of rows with special volumes.
	special Bitmap
}

type rowVolumes struct {
	pods    []*entry // with volumes that filters read; in the order of the ledger after the first query
	volumes int      // of these pods
	// special counts those of them that are neither named claims nor disks that no driver attaches: classifying such
	// a volume takes more than its claim.
	special int
	limits  []driverLimit // of the drivers on the row's node that have one
}

// volumesEnter adds a pod that was placed on row n; volumesLeave removes a pod that is about to leave it.
func (s *Store) volumesEnter(e *entry, n NodeIdx) {
	if len(e.pod.Spec.Volumes) == 0 {
		return
	}
	r := s.volumesRow(n)
	r.pods = append(r.pods, e)
	r.count(e.pod, 1)
	s.volumesRoom(n)
	if s.rows[n].node != nil {
		s.countClaims(e.pod, 1)
	}
}

func (s *Store) volumesLeave(e *entry, n NodeIdx) {
	if len(e.pod.Spec.Volumes) == 0 {
		return
	}
	r := &s.volumes.rows[n]
	i := slices.Index(r.pods, e)
	r.pods = slices.Delete(r.pods, i, i+1)
	r.count(e.pod, -1)
	s.volumesRoom(n)
	if s.rows[n].node != nil {
		s.countClaims(e.pod, -1)
	}
}

func (r *rowVolumes) count(p *Pod, sign int) {
	r.volumes += sign * len(p.Spec.Volumes)
	for i := range p.Spec.Volumes {
		if isSpecial(&p.Spec.Volumes[i]) {
			r.special += sign
		}
	}
}

func isSpecial(v *v1.Volume) bool {
	if v.PersistentVolumeClaim != nil {
		return v.PersistentVolumeClaim.ClaimName == ""
	}
	return v.CSI == nil && v.ISCSI == nil && v.RBD == nil
}

func (s *Store) countClaims(p *Pod, sign int) {
	for i := range p.Spec.Volumes {
		claim := p.Spec.Volumes[i].PersistentVolumeClaim
		if claim == nil {
			continue
		}
		key := ObjectKey{p.Namespace, claim.ClaimName}
		if s.volumes.claims == nil {
			s.volumes.claims = map[ObjectKey]int{}
		}
		if s.volumes.claims[key] += sign; s.volumes.claims[key] == 0 {
			delete(s.volumes.claims, key)
		}
	}
}

// volumesNode updates the index after the node object of row n changed from old to node.
func (s *Store) volumesNode(n NodeIdx, old, node *Node) {
	if (old == nil) == (node == nil) {
		return
	}
	s.volumesLimits(n)
	if int(n) >= len(s.volumes.rows) {
		return
	}
	sign := 1
	if node == nil {
		sign = -1
	}
	for _, e := range s.volumes.rows[n].pods {
		s.countClaims(e.pod, sign)
	}
}

// volumesObject updates the index after a change of a VolumeAttachment or a CSINode.
func (s *Store) volumesObject(old, now Object) {
	for _, obj := range []Object{old, now} {
		if csi, ok := obj.(*storagev1.CSINode); ok {
			if n, known := s.index[csi.Name]; known {
				s.volumesLimits(n)
			}
		}
	}
	if was, ok := old.(*storagev1.VolumeAttachment); ok {
		on := s.volumes.attachments[was.Spec.NodeName]
		i := slices.Index(on, was)
		on[i] = on[len(on)-1]
		on[len(on)-1] = nil
		if on = on[:len(on)-1]; len(on) == 0 {
			delete(s.volumes.attachments, was.Spec.NodeName)
		} else {
			s.volumes.attachments[was.Spec.NodeName] = on
		}
		s.volumesAttached(was.Spec.NodeName)
	}
	if is, ok := now.(*storagev1.VolumeAttachment); ok {
		if s.volumes.attachments == nil {
			s.volumes.attachments = map[string][]*storagev1.VolumeAttachment{}
		}
		s.volumes.attachments[is.Spec.NodeName] = append(s.volumes.attachments[is.Spec.NodeName], is)
		s.volumesAttached(is.Spec.NodeName)
	}
}

// ClaimUsed reports whether a pod on some node, confirmed or assumed, has a volume that names this claim (upstream:
// StorageInfoLister.IsPVCUsedByPods).
func (v Snapshot) ClaimUsed(claim ObjectKey) bool { return v.s.volumes.claims[claim] > 0 }

// VolumesOn returns the number of volumes that filters read of a row's pods, and how many of them are special:
// neither named claims nor disks that no driver attaches.
func (v Snapshot) VolumesOn(n NodeIdx) (volumes, special int) {
	if int(n) >= len(v.s.volumes.rows) {
		return 0, 0
	}
	r := &v.s.volumes.rows[n]
	return r.volumes, r.special
}

// EachPodWithVolumes calls f for the pods of a row that have volumes, in the order of the ledger, until f returns
// false.
func (v Snapshot) EachPodWithVolumes(n NodeIdx, f func(p *Pod) bool) {
	if int(n) >= len(v.s.volumes.rows) {
		return
	}
	pods := v.s.volumes.rows[n].pods
	slices.SortFunc(pods, func(a, b *entry) int { return cmp.Compare(a.pos, b.pos) })
	for _, e := range pods {
		if !f(e.pod) {
			return
		}
	}
}

// AttachmentsOn returns the VolumeAttachments of a node, in no order.
func (v Snapshot) AttachmentsOn(node string) []*storagev1.VolumeAttachment {
	return v.s.volumes.attachments[node]
}
