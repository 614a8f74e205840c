// SPDX-License-Identifier: Apache-2.0

package cluster

import storagev1 "k8s.io/api/storage/v1"

// VolumeHeadroom is the number of further volumes of one driver that fit every row outside ShortOfVolumes.
const VolumeHeadroom = 4

// driverRows are the rows on which a driver limits the number of volumes.
type driverRows struct {
	// short is the set of rows with capacity for fewer than VolumeHeadroom further volumes, if all volumes and
	// attachments are counted as different volumes of this driver.
	short Bitmap
}

// driverLimit is the maximum number of volumes that a driver can attach to a node.
type driverLimit struct {
	of    *driverRows
	limit int64
}

func (s *Store) volumesRow(n NodeIdx) *rowVolumes {
	for int(n) >= len(s.volumes.rows) {
		s.volumes.rows = append(s.volumes.rows, rowVolumes{})
	}
	return &s.volumes.rows[n]
}

// volumesLimits reads the drivers' limits for the node of row n again.
func (s *Store) volumesLimits(n NodeIdx) {
	row := &s.rows[n]
	csi, _ := s.table(KindCSINode).slots[ObjectKey{Name: row.name}].api.(*storagev1.CSINode)
	if row.node == nil {
		csi = nil
	}
	if csi == nil && int(n) >= len(s.volumes.rows) {
		return
	}
	r := s.volumesRow(n)
	for _, l := range r.limits {
		l.of.short.Clear(n)
	}
	r.limits = r.limits[:0]
	if csi == nil {
		return
	}
	for i := range csi.Spec.Drivers {
		driver := &csi.Spec.Drivers[i]
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			r.limits = append(r.limits, driverLimit{s.driverRows(driver.Name), int64(*driver.Allocatable.Count)})
		}
	}
	s.volumesRoom(n)
}

func (s *Store) driverRows(driver string) *driverRows {
	of := s.volumes.drivers[driver]
	if of == nil {
		of = &driverRows{}
		if s.volumes.drivers == nil {
			s.volumes.drivers = map[string]*driverRows{}
		}
		s.volumes.drivers[driver] = of
	}
	return of
}

// volumesRoom computes whether row n, which has volumes or limits, is short of capacity.
func (s *Store) volumesRoom(n NodeIdx) {
	r := &s.volumes.rows[n]
	if r.special > 0 {
		s.volumes.special.Set(n)
	} else {
		s.volumes.special.Clear(n)
	}
	if len(r.limits) == 0 {
		return
	}
	most := int64(r.volumes + len(s.volumes.attachments[s.rows[n].name]))
	for _, l := range r.limits {
		l.of.short.Clear(n)
	}
	for _, l := range r.limits {
		if most+VolumeHeadroom > l.limit {
			l.of.short.Set(n)
		}
	}
}

// volumesAttached updates the row of a node after a change of its attachments.
func (s *Store) volumesAttached(node string) {
	if n, known := s.index[node]; known && int(n) < len(s.volumes.rows) {
		s.volumesRoom(n)
	}
}

// ShortOfVolumes returns the rows whose node may be unable to attach VolumeHeadroom more volumes of a driver; none for
// a driver without limits. Rows with special volumes are not distinguished in it.
func (v Snapshot) ShortOfVolumes(driver string) Bitmap {
	if of := v.s.volumes.drivers[driver]; of != nil {
		return of.short
	}
	return nil
}

// SpecialVolumes returns the rows on which pods have special volumes; see VolumesOn.
func (v Snapshot) SpecialVolumes() Bitmap { return v.s.volumes.special }
