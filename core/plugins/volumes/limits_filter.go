// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// limitFilter is NodeVolumeLimits for one pod.
//
// What is attached to a node is counted from its pods with volumes and their claims, which costs a few look-ups per
// volume. The column form spares that where even all volumes of the node's pods and all its attachments, taken for
// different ones of the driver in question, leave capacity. The store knows where they may not (suspects), so that as a
// rule no row is looked at.
type limitFilter struct {
	pl *NodeVolumeLimits
	// plain is wanted on nodes without a CSINode object, csi on those with one.
	plain, csi demand
	failed     error

	inUse    map[attachable]struct{} // what the pods of the node in hand have attached; kept for its memory
	attached map[attachable]struct{} // what is attached to it besides
	sets     []cluster.Bitmap        // rows to look at, in suspects; kept for its memory
}

const (
	volumesExceeded plugin.Code = 1 << iota
	volumeClaimMissing
	volumesBroken
	volumeDriverMissing // with the number of the driver in the bits from driverBits on
)

// driverBits is where the number of a missing driver begins in a verdict: its index in demand.needed, doubled, and one
// more on nodes with a CSINode object.
const driverBits = 4

// Plain counts from the pods of v.
func (f *limitFilter) Plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	csi, _ := cluster.FindAPI[*storagev1.CSINode](s, "", v.Node.Name)
	code, err := f.judge(s, v.Node.Name, csi, func(count func(p *cluster.Pod) bool) {
		for _, p := range v.Pods {
			if !count(p) {
				return
			}
		}
	})
	f.failed = err
	return code
}

// Column counts on the rows that may be full. Of several rows that fail it keeps the error of the first.
func (f *limitFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	f.failed = nil
	column := f.pl.nodes.of(s)
	f.suspects(s, lo, hi, func(n cluster.NodeIdx) bool {
		if out[n] != plugin.Fits || f.hasCapacity(s, n, column[n]) {
			return true
		}
		code, err := f.judge(s, s.NodeName(n), column[n],
			func(count func(p *cluster.Pod) bool) { s.EachPodWithVolumes(n, count) })
		if err != nil && f.failed == nil {
			f.failed = err
		}
		if code != plugin.Fit {
			out[n] = tag.With(code)
		}
		return true
	})
}

// fewSuspects is how many rows Quiet looks at.
const fewSuspects = 64

// Quiet reports whether all rows have capacity.
func (f *limitFilter) Quiet(s cluster.Snapshot) bool {
	column, looked := f.pl.nodes.of(s), 0
	return f.suspects(s, 0, cluster.NodeIdx(s.Rows()), func(n cluster.NodeIdx) bool {
		looked++
		return looked <= fewSuspects && f.hasCapacity(s, n, column[n])
	})
}

// suspects calls look, in order, for the rows from lo to hi-1 that may be short of capacity or have something broken on
// them, until it returns false. It returns what look returned last, true without a call.
func (f *limitFilter) suspects(s cluster.Snapshot, lo, hi cluster.NodeIdx, look func(n cluster.NodeIdx) bool) bool {
	sure := f.plain.missing == "" && f.plain.err == nil && f.csi.missing == "" && f.csi.err == nil &&
		len(f.plain.needed)+len(f.csi.needed) == 0
	sets := append(f.sets[:0], s.SpecialVolumes())
	for driver, wanted := range f.csi.perDriver { // order: a union of sets
		sure = sure && wanted <= cluster.VolumeHeadroom
		sets = append(sets, s.ShortOfVolumes(driver))
	}
	f.sets = sets
	if !sure {
		for n := lo; n < hi; n++ {
			if !look(n) {
				return false
			}
		}
		return true
	}
	for word := int(lo / 64); word <= int((hi-1)/64); word++ {
		var rows uint64
		for _, set := range sets {
			if word < len(set) {
				rows |= set[word]
			}
		}
		for ; rows != 0; rows &= rows - 1 {
			n := cluster.NodeIdx(word*64 + bits.TrailingZeros64(rows))
			if n >= lo && n < hi && !look(n) {
				return false
			}
		}
	}
	return true
}

// hasCapacity reports whether row n certainly has capacity and nothing broken on it.
func (f *limitFilter) hasCapacity(s cluster.Snapshot, n cluster.NodeIdx, csi *storagev1.CSINode) bool {
	d := f.on(csi)
	if d.missing != "" || d.err != nil || d.absent(csi) >= 0 {
		return false
	}
	if len(d.volumes) == 0 || csi == nil || !hasLimits(csi) {
		return true
	}
	volumes, special := s.VolumesOn(n)
	most := int64(volumes + len(s.AttachmentsOn(s.NodeName(n))))
	for i := range csi.Spec.Drivers {
		wanted := d.perDriver[csi.Spec.Drivers[i].Name]
		if limit, ok := limitOf(&csi.Spec.Drivers[i]); ok && wanted > 0 && most+wanted > limit {
			return false
		}
	}
	return special == 0 || !f.hasBroken(s, n)
}

// hasBroken reports whether a pod of row n has a volume that fails the attempt.
func (f *limitFilter) hasBroken(s cluster.Snapshot, n cluster.NodeIdx) (found bool) {
	s.EachPodWithVolumes(n, func(p *cluster.Pod) bool {
		found = f.pl.isBroken(s, p)
		return !found
	})
	return found
}

func (f *limitFilter) on(csi *storagev1.CSINode) *demand {
	if csi == nil {
		return &f.plain
	}
	return &f.csi
}

// judge counts exactly. pods calls its argument for each pod of the node until that returns false.
func (f *limitFilter) judge(s cluster.Snapshot, node string, csi *storagev1.CSINode,
	pods func(count func(p *cluster.Pod) bool)) (plugin.Code, error) {
	d := f.on(csi)
	switch {
	case d.missing != "":
		return volumeClaimMissing | plugin.Unresolvable, nil
	case d.err != nil:
		return volumesBroken, d.err
	case d.absent(csi) >= 0:
		number := 2 * d.absent(csi)
		if csi != nil {
			number++
		}
		return volumeDriverMissing | plugin.Code(number)<<driverBits, nil
	case len(d.volumes) == 0 || csi == nil || !hasLimits(csi):
		return plugin.Fit, nil
	}
	if f.inUse == nil {
		f.inUse, f.attached = map[attachable]struct{}{}, map[attachable]struct{}{}
	}
	clear(f.inUse)
	var err error
	pods(func(p *cluster.Pod) bool {
		err = attaching{f.pl, s, true}.eachVolume(p, f.use, ignoreMissing)
		return err == nil
	})
	if err != nil {
		return volumesBroken, err
	}
	f.attach(s, node)
	for i := range csi.Spec.Drivers {
		driver := &csi.Spec.Drivers[i]
		wanted := d.perDriver[driver.Name]
		limit, limited := limitOf(driver)
		if wanted == 0 || !limited {
			continue
		}
		held := count(f.inUse, driver.Name) + count(f.attached, driver.Name)
		for a := range d.volumes { // order: a count is the same in any
			if _, shared := f.inUse[a]; shared && a.driver == driver.Name {
				wanted--
			}
		}
		if wanted > 0 && held+wanted > limit {
			return volumesExceeded, nil
		}
	}
	return plugin.Fit, nil
}

func (f *limitFilter) use(a attachable) { f.inUse[a] = struct{}{} }

func ignoreMissing(string) error { return nil }

// attach notes what VolumeAttachments have attached to a node and no pod there uses.
func (f *limitFilter) attach(s cluster.Snapshot, node string) {
	clear(f.attached)
	for _, va := range s.AttachmentsOn(node) {
		if va.Spec.Attacher == "" || va.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		pv, ok := cluster.FindAPI[*v1.PersistentVolume](s, "", *va.Spec.Source.PersistentVolumeName)
		if !ok || pv.Spec.CSI == nil {
			continue
		}
		a := attachable{va.Spec.Attacher, pv.Spec.CSI.VolumeHandle}
		if _, known := f.inUse[a]; !known {
			f.attached[a] = struct{}{}
		}
	}
}

func count(volumes map[attachable]struct{}, driver string) (n int64) {
	for a := range volumes { // order: a count is the same in any
		if a.driver == driver {
			n++
		}
	}
	return n
}

func limitOf(driver *storagev1.CSINodeDriver) (limit int64, ok bool) {
	if driver.Allocatable == nil || driver.Allocatable.Count == nil {
		return 0, false
	}
	return int64(*driver.Allocatable.Count), true
}

func hasLimits(csi *storagev1.CSINode) bool {
	for i := range csi.Spec.Drivers {
		if _, ok := limitOf(&csi.Spec.Drivers[i]); ok {
			return true
		}
	}
	return false
}

// Reasons of a broken volume are those of the error that Failed returns.
func (f *limitFilter) Reasons(c plugin.Code) []string {
	switch {
	case c&volumeClaimMissing != 0 && f.csi.missing != "":
		return []string{f.csi.missing}
	case c&volumeClaimMissing != 0:
		return []string{f.plain.missing}
	case c&volumesBroken != 0:
		return []string{"a volume cannot be counted"}
	case c&volumeDriverMissing != 0:
		needed, number := f.plain.needed, int(c&plugin.CodeBits>>driverBits)
		if number%2 == 1 {
			needed = f.csi.needed
		}
		return []string{needed[number/2] + " CSI driver is not installed on the node"}
	}
	return []string{"node(s) exceed max volume count"}
}

// Failed is why the last use of the filter could not count.
func (f *limitFilter) Failed() error { return f.failed }

// csiColumn holds the CSINode objects by row.
type csiColumn struct {
	state     cluster.Snapshot // of which store
	rev, set  uint64           // the revision of CSINodes, and of the node set, that rows stands for
	rows      []*storagev1.CSINode
	isCurrent bool
}

// of brings the column up to date.
func (c *csiColumn) of(s cluster.Snapshot) []*storagev1.CSINode {
	rev, set := s.KindRevision(cluster.KindCSINode), s.NodeSet()
	if c.isCurrent && c.state == s && c.rev == rev && c.set == set && len(c.rows) == s.Rows() {
		return c.rows
	}
	*c = csiColumn{state: s, rev: rev, set: set, rows: c.rows[:0], isCurrent: true}
	for n := range cluster.NodeIdx(s.Rows()) {
		csi, _ := cluster.FindAPI[*storagev1.CSINode](s, "", s.NodeName(n))
		c.rows = append(c.rows, csi)
	}
	return c.rows
}
