// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"math"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// PrepareScore is not called: PrepareUncached is.
func (*VolumeBinding) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Normal leaves the scores alone.
func (*VolumeBinding) Normal() plugin.Normal { return plugin.AsIs }

// Skips reports whether the pod has no unbound claims, or the plugin no shape.
func (pl *VolumeBinding) Skips(s cluster.Snapshot, p *cluster.Pod) bool {
	if len(pl.shape) == 0 {
		return true
	}
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if !hasClaim(vol) {
			continue
		}
		name, _ := claimName(p, vol)
		if claim, ok := cluster.Find[*v1.PersistentVolumeClaim](s, p.Namespace, name); ok && !fullyBound(claim) {
			return false
		}
	}
	return true
}

// PrepareUncached ranks nodes by the storage that the volumes of the pod's unbound claims use there, as the shape says
// (KEP-4049). If volumes are taken for claims only these count; otherwise those to be made, where the driver publishes
// capacity. Upstream also scores pods without unbound claims, with 0 on every node, and takes any of several storages
// that a node reaches; here the first by namespace and name counts.
func (pl *VolumeBinding) PrepareUncached(s cluster.Snapshot, p *cluster.Pod,
	_ []cluster.NodeIdx) (plugin.UncachedScore, error) {
	f := pl.last
	if len(pl.shape) == 0 || f == nil || f.pod != p || f.store != s || f.at != volumeRevisionsOf(s) ||
		len(f.claims.delayed) == 0 {
		return nil, nil
	}
	return storageScore{f}, nil
}

// storageScore is VolumeBinding prepared to score one pod.
type storageScore struct{ f *volumeFilter }

func (sc storageScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	on, err := sc.f.slowly(s, v.Node)
	if err != nil || on.code != plugin.Fit {
		return 0
	}
	var use storageUse
	for _, found := range on.take {
		use.take(found)
	}
	if len(on.take) == 0 {
		for _, claim := range on.make {
			if storage, told := storageFor(s, claim, provisioningClass(s, claim), v.Node.Labels); told {
				use.make(claim, storage)
			}
		}
	}
	return use.score(sc.f.pl.shape)
}

func (sc storageScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	c := sc.f.columns(s)
	failed := sc.f.err
	for i, n := range fit {
		node := s.Node(n)
		out[i] = 0
		if sc.f.quickly(s, node) == plugin.Fit && sc.f.err == failed {
			out[i] = c.useOn(node).score(sc.f.pl.shape)
		}
		sc.f.err = failed
	}
}

// useOn is the use of storage by the row in hand, whose node must be given.
func (c *volumeColumns) useOn(node *cluster.Node) *storageUse {
	c.used = c.used[:0]
	for _, found := range c.take {
		c.used.take(found)
	}
	if len(c.take) == 0 {
		for _, m := range c.left {
			if m.told {
				c.used.make(m.claim, m.storage[m.room.first(node, nil)])
			}
		}
	}
	return &c.used
}

func (storageScore) Normalize(cluster.Snapshot, []cluster.NodeIdx, []int64) {}

// storageUse is the use of storage on one node, per storage class.
type storageUse []classUse

// classUse is how much of the storage of a class is requested, in bytes.
type classUse struct {
	class               string
	requested, capacity int64
}

func (u *storageUse) of(class string) *classUse {
	for i := range *u {
		if (*u)[i].class == class {
			return &(*u)[i]
		}
	}
	*u = append(*u, classUse{class: class})
	return &(*u)[len(*u)-1]
}

// take counts an existing volume that a claim gets.
func (u *storageUse) take(t taking) {
	size := t.pv.Spec.Capacity[v1.ResourceStorage]
	in := u.of(t.pv.Spec.StorageClassName)
	in.requested += requestOf(t.claim)
	in.capacity += size.Value()
}

// make counts a volume that is made for a claim. Several volumes share the capacity of the storage.
func (u *storageUse) make(claim *v1.PersistentVolumeClaim, storage *storagev1.CSIStorageCapacity) {
	in := u.of(deref(claim.Spec.StorageClassName))
	in.requested += requestOf(claim)
	in.capacity = 0
	if storage.Capacity != nil {
		in.capacity = storage.Capacity.Value()
	}
}

func requestOf(claim *v1.PersistentVolumeClaim) int64 {
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	return size.Value()
}

// score is the mean over the classes, 0 without any.
func (u *storageUse) score(shape []plugin.ShapePoint) int64 {
	if len(*u) == 0 {
		return 0
	}
	var sum int64
	for _, in := range *u {
		percent := int64(100)
		if in.capacity != 0 && in.requested <= in.capacity {
			percent = in.requested * 100 / in.capacity
		}
		sum += plugin.ScoreAt(shape, percent)
	}
	return int64(math.Round(float64(sum) / float64(len(*u))))
}
