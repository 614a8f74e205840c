// SPDX-License-Identifier: Apache-2.0

package queue

// heap is a binary heap of units that know their position, so that any of them can be removed.
type heap struct {
	units []*Unit // Invariant: units[i].pos == i, and no unit is less than its parent.
	less  func(a, b *Unit) bool
}

func (h *heap) len() int { return len(h.units) }

// head returns the first unit, nil if there is none.
func (h *heap) head() *Unit {
	if len(h.units) == 0 {
		return nil
	}
	return h.units[0]
}

func (h *heap) add(u *Unit) {
	u.pos = len(h.units)
	h.units = append(h.units, u)
	h.up(u.pos)
}

// put adds a unit at the end, where it must not be less than its parent.
func (h *heap) put(u *Unit) {
	u.pos = len(h.units)
	h.units = append(h.units, u)
}

func (h *heap) remove(u *Unit) {
	i, last := u.pos, len(h.units)-1
	h.swap(i, last)
	h.units[last] = nil
	h.units = h.units[:last]
	if i < last && !h.down(i) {
		h.up(i)
	}
}

// fix restores the order after a change of what less reads of u.
func (h *heap) fix(u *Unit) {
	if !h.down(u.pos) {
		h.up(u.pos)
	}
}

func (h *heap) swap(i, j int) {
	h.units[i], h.units[j] = h.units[j], h.units[i]
	h.units[i].pos, h.units[j].pos = i, j
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.units[i], h.units[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// down reports whether it moved a unit.
func (h *heap) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(h.units) {
			break
		}
		if right := child + 1; right < len(h.units) && h.less(h.units[right], h.units[child]) {
			child = right
		}
		if !h.less(h.units[child], h.units[i]) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i != start
}
