// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// A Recent holds at most so many bytes and so many changes; when it is full, the older half is dropped.
const (
	recentBytes   = 16 << 20
	recentAtLeast = 1 << 12
	recentAtMost  = 1 << 16

	// placeBytes is the size of a change apart from scalars: its row, and an amount in each column that all rows
	// have.
	placeBytes = 4 + 8*(2*int(resource.Fixed)+2)
)

// Recent is a log of the amounts of rows in the order in which the rows changed, as they were at the time of Follow.
// A reader that catches up on thousands of changes reads its columns sequentially instead of as many scattered rows,
// and many readers that catch up at about the same time find the same range in the CPU cache.
//
// A row that changes again gets another position, and its position before that becomes invalid. The cost of a change
// depends on the amounts of the row, not on the number of resources in the cluster.
type Recent struct {
	columns Store         // of amounts alone, by position
	scalars []resource.ID // those whose columns have an amount
	bytes   int           // of the columns of scalars
	rows    []NodeIdx
	base    uint64   // sequence number of position 0
	newest  []uint64 // row -> sequence number of its last position, plus 1; 0 for none
	asides  []aside  // each computed up to some position
	seq     uint64   // the journal of the store has been followed up to here
	keep    int      // maximum number of changes; 0 for the constants
	begun   bool
}

// aside is a column of figures that depend only on the amounts of a row.
type aside struct {
	of any
	v  []int64
}

// Aside returns the column of figures of a kind, which fill computes from the amounts of rows: once, when the first
// reader requests it, not once for each reader. There are few kinds, and they are comparable; fill must compute equal
// figures of equal amounts.
func (r *Recent) Aside(of any, fill func(s Snapshot, lo, hi NodeIdx, out []int64)) []int64 {
	at := slices.IndexFunc(r.asides, func(a aside) bool { return a.of == of })
	if at < 0 {
		at = len(r.asides)
		r.asides = append(r.asides, aside{of: of})
	}
	a := &r.asides[at]
	if made := len(a.v); made < len(r.rows) {
		a.v = slices.Grow(a.v, len(r.rows)-made)[:len(r.rows)]
		fill(r.Columns(), NodeIdx(made), NodeIdx(len(r.rows)), a.v)
	}
	return a.v
}

// Follow adds what changed since the last call.
func (r *Recent) Follow(s Snapshot) {
	changes, next, ok := s.Changes(r.seq)
	r.seq = next
	if !ok || !r.begun {
		r.restart(s)
		return
	}
	r.grow(s)
	for i, n := range changes {
		if i+1 == len(changes) || changes[i+1] != n {
			r.add(s.s, n)
		}
	}
}

// restart drops all positions: every reader then has to start over.
func (r *Recent) restart(s Snapshot) {
	r.base, r.begun = r.Next()+1, true
	r.columns.names = s.s.names
	clear(r.newest)
	r.grow(s)
	r.cut(len(r.rows))
	r.rows = r.rows[:0]
}

// grow extends the columns to new rows and resources.
func (r *Recent) grow(s Snapshot) {
	for len(r.newest) < len(s.s.rows) {
		r.newest = append(r.newest, 0)
	}
	for _, cols := range []*[]column{&r.columns.allocatable, &r.columns.requested} {
		for len(*cols) < len(s.s.requested) {
			*cols = append(*cols, column{})
		}
	}
}

func (r *Recent) add(s *Store, n NodeIdx) {
	if r.full() {
		r.drop((len(r.rows) + 1) / 2)
	}
	if at := r.newest[n]; at > r.base {
		r.rows[at-1-r.base] = NoNode
	}
	at := NodeIdx(len(r.rows))
	r.rows = append(r.rows, n)
	r.newest[n] = r.Next()
	for id := range resource.Fixed {
		r.columns.allocatable[id].v = append(r.columns.allocatable[id].v, s.allocatable[id].v[n])
		r.columns.requested[id].v = append(r.columns.requested[id].v, s.requested[id].v[n])
	}
	for i := range s.nonZero {
		r.columns.nonZero[i].v = append(r.columns.nonZero[i].v, s.nonZero[i].v[n])
	}
	for _, id := range s.rows[n].scalars {
		offered, requested := &r.columns.allocatable[id], &r.columns.requested[id]
		before := offered.size() + requested.size()
		offered.put(at, s.allocatable[id].get(n))
		requested.put(at, s.requested[id].get(n))
		after := offered.size() + requested.size()
		if before == 0 && after > 0 {
			r.scalars = append(r.scalars, id)
		}
		r.bytes += after - before
	}
}

// full reports whether there is no capacity for another change.
func (r *Recent) full() bool {
	places := len(r.rows)
	if r.keep > 0 {
		return places >= r.keep
	}
	return places >= recentAtMost || places >= recentAtLeast && places*placeBytes+r.bytes >= recentBytes
}

// drop removes the oldest positions.
func (r *Recent) drop(places int) {
	r.base += uint64(places)
	r.cut(places)
	r.rows = r.rows[:copy(r.rows, r.rows[places:])]
}

// cut removes the first positions of the columns.
func (r *Recent) cut(places int) {
	for id := range resource.Fixed {
		r.columns.allocatable[id].drop(NodeIdx(places))
		r.columns.requested[id].drop(NodeIdx(places))
	}
	for i := range r.columns.nonZero {
		r.columns.nonZero[i].drop(NodeIdx(places))
	}
	r.bytes = 0
	r.scalars = slices.DeleteFunc(r.scalars, func(id resource.ID) bool {
		offered, requested := &r.columns.allocatable[id], &r.columns.requested[id]
		offered.drop(NodeIdx(places))
		requested.drop(NodeIdx(places))
		size := offered.size() + requested.size()
		r.bytes += size
		return size == 0
	})
	for i := range r.asides {
		a := &r.asides[i]
		// computed up to some position, perhaps not as far as the columns
		a.v = a.v[:copy(a.v, a.v[min(places, len(a.v)):])]
	}
}

// Next returns the sequence number for the next call of Since.
func (r *Recent) Next() uint64 { return r.base + uint64(len(r.rows)) }

// Since returns the rows that changed since a sequence number, by position from lo on: NoNode if a row occurs again
// later. ok is false if the log no longer has all of them.
func (r *Recent) Since(seq uint64) (rows []NodeIdx, lo NodeIdx, ok bool) {
	if seq < r.base {
		return nil, 0, false
	}
	return r.rows[seq-r.base:], NodeIdx(seq - r.base), true
}

// Columns returns the amounts by position: Allocatable, Requested, NonZero and Names, and nothing else.
func (r *Recent) Columns() Snapshot { return Snapshot{&r.columns} }
