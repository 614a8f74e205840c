// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// volumeFilter is VolumeBinding prepared for one pod.
type volumeFilter struct {
	pl     *VolumeBinding
	pod    *cluster.Pod
	claims podClaims
	store  cluster.Snapshot
	at     volumeRevisions
	cols   *volumeColumns // of the column form; nil until it is asked for
	err    error
}

// volumeRevisions report whether what was prepared still holds.
type volumeRevisions [5]uint64

func volumeRevisionsOf(s cluster.Snapshot) (r volumeRevisions) {
	for i, k := range [...]cluster.Kind{cluster.KindClaim, cluster.KindVolume, cluster.KindStorageClass,
		cluster.KindCSIDriver, cluster.KindCapacity} {
		r[i] = s.KindRevision(k)
	}
	return r
}

func (pl *VolumeBinding) prepare(s cluster.Snapshot, p *cluster.Pod, claims podClaims) *volumeFilter {
	return &volumeFilter{pl: pl, pod: p, claims: claims, store: s, at: volumeRevisionsOf(s)}
}

// taking is a free volume found for a claim.
type taking struct {
	pv    *v1.PersistentVolume
	claim *v1.PersistentVolumeClaim
}

// foundOnNode is the result of matching a pod's claims on one node.
type foundOnNode struct {
	code plugin.Code
	take []taking
	make []*v1.PersistentVolumeClaim // claims whose volumes are to be made
}

// Failed is the error that a claim met in the last use.
func (f *volumeFilter) Failed() error { return f.err }

// Plain judges each claim by a scan of all volumes of its class.
func (f *volumeFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	on, err := f.slowly(s, v.Node)
	if f.err = err; err != nil {
		return plugin.Fit
	}
	return on.code
}

// slowly is the meaning of the filter (upstream: binder.go, FindPodVolumes).
func (f *volumeFilter) slowly(s cluster.Snapshot, node *cluster.Node) (on foundOnNode, err error) {
	if on.code, err = f.boundSlowly(s, node); err != nil {
		return foundOnNode{}, err
	}
	var search []*v1.PersistentVolumeClaim
	for _, claim := range f.claims.delayed {
		selected, ok := claim.Annotations[annSelectedNode]
		switch {
		case ok && selected != node.Name:
			on.code, on.make = on.code|volumeNoMatch|plugin.Unresolvable, nil
			return on, nil
		case ok:
			on.make = append(on.make, claim)
		default:
			search = append(search, claim)
		}
	}
	bySize(search)
	var taken []*v1.PersistentVolume
	for _, claim := range search {
		rules, err := rulesOf(claim)
		if err != nil {
			return foundOnNode{}, err
		}
		pv := rules.match(volumesOfClass(s, classOfClaim(claim)), taken, func(pv *v1.PersistentVolume) bool {
			return f.pl.affinity(pv.Spec.NodeAffinity).reachedFrom(node)
		})
		if pv == nil {
			on.make = append(on.make, claim)
			continue
		}
		on.take = append(on.take, taking{pv, claim})
		taken = append(taken, pv)
	}
	for _, claim := range on.make {
		if code := canMake(s, claim, node); code != plugin.Fit {
			on.code |= code
			break
		}
	}
	return on, nil
}

// boundSlowly reports whether a node can reach the volumes that the pod has already. The first that it cannot decides.
func (f *volumeFilter) boundSlowly(s cluster.Snapshot, node *cluster.Node) (plugin.Code, error) {
	for _, claim := range f.claims.bound {
		pv, ok := cluster.Find[*v1.PersistentVolume](s, "", claim.Spec.VolumeName)
		if !ok {
			return volumeGone | plugin.Unresolvable, nil
		}
		affinity, err := f.pl.affinityOn(s, pv, node.Name)
		if err != nil {
			return plugin.Fit, err
		}
		if reach(affinity, node) != nil {
			return volumeElsewhere | plugin.Unresolvable, nil
		}
	}
	return plugin.Fit, nil
}

// volumesOfClass lists the volumes of a class, by name.
func volumesOfClass(s cluster.Snapshot, class string) (volumes []*v1.PersistentVolume) {
	cluster.Each(s, func(pv *v1.PersistentVolume) bool {
		if volumeClass(pv) == class {
			volumes = append(volumes, pv)
		}
		return true
	})
	return volumes
}

// affinityOn is the affinity of a volume as it counts on a node: that of its CSI form where the node has handed its
// kind over to CSI.
func (pl *VolumeBinding) affinityOn(s cluster.Snapshot, pv *v1.PersistentVolume,
	nodeName string) (*v1.VolumeNodeAffinity, error) {
	m, ok := pl.migrated(pv)
	if !ok || !handedOver(s, nodeName, m.Plugin) {
		return pv.Spec.NodeAffinity, nil
	}
	if m.Err != nil {
		return nil, fmt.Errorf("could not translate pv: %w", m.Err)
	}
	return m.PV.Spec.NodeAffinity, nil
}

// migrated is the CSI form of a volume; ok is false for one that has none, and for those of Azure files and vSphere
// disks, whose affinity counts as it is.
func (pl *VolumeBinding) migrated(pv *v1.PersistentVolume) (m plugin.Migrated, ok bool) {
	if pl.migration == nil {
		return m, false
	}
	m, ok = pl.migration.Volume(pv)
	return m, ok && countedPlugins[m.Plugin]
}

// handedOver reports whether a node says that it has handed an in-tree kind over to CSI.
func handedOver(s cluster.Snapshot, nodeName, plugin string) bool {
	csiNode, ok := cluster.Find[*storagev1.CSINode](s, "", nodeName)
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(csiNode.Annotations[v1.MigratedPluginsAnnotationKey], ",") {
		if name == plugin {
			return true
		}
	}
	return false
}
