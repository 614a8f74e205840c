// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// PlacesFirst makes a search look for a placement first, as it does if there are many units, and distinguish members
// as little as it does if they are of many kinds.
func (f *Finder) PlacesFirst() { f.limits.many, f.limits.kinds = 1, 1 }

// Tire limits a search to so many dry runs of one pod.
func (f *Finder) Tire(runs int) { f.limits.many, f.limits.runs = 1, runs }

// AsForGangs makes a search for one pod that for a gang.
func (f *Finder) AsForGangs() { f.limits.general = true }

// Lone reports whether the last search was the single-pod search, and Refuted whether a dry run has ever contradicted
// one.
func (f *Finder) Lone() bool    { return f.wasSinglePod }
func (f *Finder) Refuted() bool { return f.refuted }

// CheckInvariants returns the first invariant of the finder's fields that does not hold, nil if all hold.
func (f *Finder) CheckInvariants() error {
	if err := f.index.checkInvariants(); err != nil {
		return err
	}
	if !f.capacity.known {
		return nil
	}
	return f.capacity.checkInvariants()
}

func (ur *index) checkInvariants() error {
	if !ur.known {
		return nil
	}
	if len(ur.dueRows)+len(ur.dueGangs) > 0 || slices.Contains(ur.rowIsDue, true) || slices.Contains(ur.gangIsDue, true) {
		return fmt.Errorf("rows %v and gangs %v are due", ur.dueRows, ur.dueGangs)
	}
	for key, id := range ur.ids { // order: any violation suffices
		if g := &ur.gangs[id]; !g.known || g.key != key {
			return fmt.Errorf("id %d of gang %v is that of %v", id, key, g.key)
		}
	}
	for _, id := range ur.free {
		if ur.gangs[id].known {
			return fmt.Errorf("unused id %d is that of gang %v", id, ur.gangs[id].key)
		}
	}
	if len(ur.ids)+len(ur.free) != len(ur.gangs) {
		return fmt.Errorf("%d ids are used and %d are not, of %d", len(ur.ids), len(ur.free), len(ur.gangs))
	}
	for n := range ur.rows {
		row := &ur.rows[n]
		byPriority := func(a, b victim.Entry) int { return cmp.Compare(b.Priority, a.Priority) }
		if !slices.IsSortedFunc(row.pods, byPriority) || !slices.IsSortedFunc(row.parts, func(a, b gangPart) int {
			return cmp.Compare(b.priority, a.priority)
		}) {
			return fmt.Errorf("row %d: pods or parts of gangs are not in the order of their priority", n)
		}
		for i := range row.parts {
			if part := &row.parts[i]; len(part.pods) == 0 || !slices.Contains(row.gangs, part.gang) {
				return fmt.Errorf("row %d has a part of gang %d with %d pods", n, part.gang, len(part.pods))
			}
		}
	}
	return nil
}

func (r *capacity) checkInvariants() error {
	ample := 0
	for at := range r.domains {
		d := &r.domains[at]
		slots, sums := make([]int64, len(d.slots)), make([]int64, len(d.sums))
		for n, of := range r.domain {
			if of != int32(at) {
				continue
			}
			for i := range slots {
				slots[i] += int64(r.kinds[i].slots[n])
			}
			for i := range sums {
				sums[i] += r.amounts[i].counted[n]
			}
		}
		if !slices.Equal(slots, d.slots) || !slices.Equal(sums, d.sums) {
			return fmt.Errorf("domain %d has slots %v and sums %v, counted %v and %v", at, slots, sums, d.slots, d.sums)
		}
		if d.ample {
			ample++
		}
	}
	if len(r.domains) == 0 || ample != r.ampleDomains {
		return fmt.Errorf("%d of %d domains have enough capacity, counted %d", ample, len(r.domains), r.ampleDomains)
	}
	for i, gone := range r.isRemoved {
		if gone && !slices.Contains(r.removed, i) {
			return fmt.Errorf("unit %d is removed and not listed", i)
		}
	}
	return nil
}
