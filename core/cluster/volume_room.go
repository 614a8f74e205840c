// SPDX-License-Identifier: Apache-2.0

package cluster

import storagev1 "k8s.io/api/storage/v1"

// SureRoom is for how many volumes more of one driver a row has room that is not among ShortOfVolumes.
const SureRoom = 4

// driverRows are the rows that a driver limits.
type driverRows struct {
	// short are those on which all volumes and attachments, taken for different ones of this driver, leave room for
	// less than SureRoom.
	short Bitmap
}

// driverLimit is how many volumes a driver can attach to a node.
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

// volumesLimits reads anew what drivers say of the node of row n.
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

// volumesRoom finds out whether row n, which has volumes or limits, is short of room.
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
		if most+SureRoom > l.limit {
			l.of.short.Set(n)
		}
	}
}

// volumesAttached follows a node's attachments.
func (s *Store) volumesAttached(node string) {
	if n, known := s.index[node]; known && int(n) < len(s.volumes.rows) {
		s.volumesRoom(n)
	}
}

// ShortOfVolumes are the rows that have a node to which a driver may be unable to attach SureRoom more volumes; none
// for a driver that nobody limits. Rows with special volumes are not told apart from others in it.
func (v Snapshot) ShortOfVolumes(driver string) Bitmap {
	if of := v.s.volumes.drivers[driver]; of != nil {
		return of.short
	}
	return nil
}

// SpecialVolumes are the rows on which pods have special volumes; see VolumesOn.
func (v Snapshot) SpecialVolumes() Bitmap { return v.s.volumes.special }
