// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Matters reports whether other has volumes.
func (*restrictionFilter) Matters(other *cluster.Pod) bool { return len(other.Spec.Volumes) > 0 }

// VolumeRestrictions keeps pods apart whose volumes cannot be shared: those that mount one in-tree disk, on a node, and
// those that want one claim for a single pod (ReadWriteOncePod), anywhere (upstream: plugins/volumerestrictions).
type VolumeRestrictions struct{}

// VolumeRestrictionsName is its name in configurations.
const VolumeRestrictionsName = "VolumeRestrictions"

// Name is VolumeRestrictionsName.
func (VolumeRestrictions) Name() string { return VolumeRestrictionsName }

// Reads declares the users of a claim, which may be on any row.
func (VolumeRestrictions) Reads() plugin.Reads {
	return plugin.ReadsPods | plugin.ReadsRows | plugin.ReadsObjects | plugin.ReadsWholePod
}

// PrepareFilter rejects pods whose claims do not exist: their access modes cannot be known. It has nothing to say about
// pods without such disks whose claims are free.
func (VolumeRestrictions) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	f := &restrictionFilter{}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if isExclusiveDisk(v) {
			f.disks = append(f.disks, v)
		}
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, p.Namespace, name)
		if !ok {
			return plugin.FilterPlan{Reject: notFound("persistentvolumeclaim", name)}
		}
		if !slices.Contains(claim.Spec.AccessModes, v1.ReadWriteOncePod) || slices.Contains(f.claims, name) {
			continue
		}
		f.claims = append(f.claims, name)
		if s.ClaimUsed(cluster.ObjectKey{Namespace: p.Namespace, Name: name}) {
			f.used++
		}
	}
	if len(f.disks) == 0 && f.used == 0 {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: f}
}

// isExclusiveDisk reports whether a volume may conflict with one of another pod on the same node.
func isExclusiveDisk(v *v1.Volume) bool {
	return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
}

// restrictionFilter is VolumeRestrictions for one pod.
type restrictionFilter struct {
	disks  []*v1.Volume
	claims []string // claims of the pod that only one pod may use, each once
	// used counts the uses of these claims by other pods. As upstream counts, a claim in use counts once at first, and
	// a pod that comes or goes counts once for each of its volumes that names such a claim, in whatever namespace.
	used int
}

const (
	diskTaken plugin.Code = 1 << iota
	claimTaken
)

func (f *restrictionFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	for _, p := range v.Pods {
		if disksConflict(f.disks, p) {
			return diskTaken
		}
	}
	if f.used > 0 {
		return f.claimCode()
	}
	return plugin.Fit
}

func (*restrictionFilter) claimCode() plugin.Code {
	return claimTaken
}

func (f *restrictionFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if f.used > 0 {
			out[n] = tag.With(f.claimCode())
		}
		if len(f.disks) == 0 {
			continue
		}
		s.EachPodWithVolumes(n, func(p *cluster.Pod) bool {
			if disksConflict(f.disks, p) {
				out[n] = tag.With(diskTaken)
				return false
			}
			return true
		})
	}
}

func (*restrictionFilter) Reasons(c plugin.Code) []string {
	if c&diskTaken != 0 {
		return []string{"node(s) had no available disk"}
	}
	return []string{"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode " +
		"already in-use by another pod"}
}

// AddPod counts the claims of a pod that is supposed to be there.
func (f *restrictionFilter) AddPod(_ cluster.Snapshot, other *cluster.Pod, _ *cluster.NodeView) {
	f.used += f.uses(other)
}

// RemovePod takes out those of a pod that is supposed to be gone.
func (f *restrictionFilter) RemovePod(_ cluster.Snapshot, other *cluster.Pod, _ *cluster.NodeView) {
	f.used -= f.uses(other)
}

func (f *restrictionFilter) uses(p *cluster.Pod) (n int) {
	for i := range p.Spec.Volumes {
		claim := p.Spec.Volumes[i].PersistentVolumeClaim
		if claim != nil && slices.Contains(f.claims, claim.ClaimName) {
			n++
		}
	}
	return n
}

// disksConflict reports whether a pod mounts one of the disks in a way that excludes others.
func disksConflict(disks []*v1.Volume, p *cluster.Pod) bool {
	for _, want := range disks {
		for i := range p.Spec.Volumes {
			if oneDisk(want, &p.Spec.Volumes[i]) {
				return true
			}
		}
	}
	return false
}

// oneDisk reports whether two volumes are one disk that cannot be mounted twice. All but EBS volumes can be, if
// both are read only.
func oneDisk(a, b *v1.Volume) bool {
	if x, y := a.GCEPersistentDisk, b.GCEPersistentDisk; x != nil && y != nil && x.PDName == y.PDName &&
		!(x.ReadOnly && y.ReadOnly) {
		return true
	}
	if x, y := a.AWSElasticBlockStore, b.AWSElasticBlockStore; x != nil && y != nil && x.VolumeID == y.VolumeID {
		return true
	}
	if x, y := a.ISCSI, b.ISCSI; x != nil && y != nil && x.IQN == y.IQN && !(x.ReadOnly && y.ReadOnly) {
		return true
	}
	x, y := a.RBD, b.RBD
	if x == nil || y == nil || x.RBDPool != y.RBDPool || x.RBDImage != y.RBDImage || x.ReadOnly && y.ReadOnly {
		return false
	}
	shared := slices.ContainsFunc(x.CephMonitors, func(m string) bool { return slices.Contains(y.CephMonitors, m) })
	return shared
}

// Wakes on pods that leave a disk or a claim, on new nodes, and on the claims that were missing.
func (VolumeRestrictions) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, Hint: volumesFreed},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}},
		{Event: plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add},
			Hint: func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
				claim, ok := ch.NewObject.(*v1.PersistentVolumeClaim)
				if !ok || namesClaim(p, claim) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
	}
}

// volumesFreed queues when the pod that went had a disk or a claim of p. Disks of pods in other namespaces, which do
// conflict, do not wake p: upstream has it so.
func volumesFreed(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	gone := ch.OldPod
	if gone.Namespace != p.Namespace {
		return plugin.SkipHint
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		for k := range gone.Spec.Volumes {
			was := &gone.Spec.Volumes[k]
			if oneDisk(v, was) {
				return plugin.QueueHint
			}
			if a, b := v.PersistentVolumeClaim, was.PersistentVolumeClaim; a != nil && b != nil &&
				a.ClaimName == b.ClaimName {
				return plugin.QueueHint
			}
		}
	}
	return plugin.SkipHint
}

// Advise names the pod that has the disk.
func (VolumeRestrictions) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for i := range p.Spec.Volumes {
		disk := &p.Spec.Volumes[i]
		if !isExclusiveDisk(disk) {
			continue
		}
		for _, other := range v.Pods {
			if disksConflict([]*v1.Volume{disk}, other) {
				r.Do = fmt.Sprintf("pod %s on %s has the disk of volume %s: mount it read only in both, "+
					"or stop that pod", other.Key(), r.Node, disk.Name)
				return
			}
		}
	}
	r.Do = "stop the pod that uses the claim: its access mode, ReadWriteOncePod, is for one pod at a time"
}
