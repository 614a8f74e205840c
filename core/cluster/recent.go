// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// A Recent holds so many bytes, and so many changes: half of them are dropped when it is full.
const (
	recentBytes   = 16 << 20
	recentAtLeast = 1 << 12
	recentAtMost  = 1 << 16

	// placeBytes is what a change takes apart from scalars: its row, and an amount in each column that all rows have.
	placeBytes = 4 + 8*(2*int(resource.Fixed)+2)
)

// Recent holds the amounts of rows in the order in which the rows changed, as they were when Follow came by. Whoever
// catches up on some thousand changes reads its columns from one position to another, in place of as many rows here and
// there: many readers that come by now and then find the same stretch in the cache.
//
// A row that changes again stands once more; its place before that is given up. A change costs what the row has,
// however many resources there are in the cluster.
type Recent struct {
	columns Store         // of amounts alone, by position
	scalars []resource.ID // those whose columns have something
	bytes   int           // of the columns of scalars
	rows    []NodeIdx
	base    uint64   // sequence number of position 0
	newest  []uint64 // row -> sequence number of its last place, plus 1; 0 for none
	asides  []aside  // made up to some position each
	seq     uint64   // the journal of the store is followed up to here
	keep    int      // how many changes to hold at most, if not as many as the constants say
	begun   bool
}

// aside is a column of figures that are made of the amounts of a row alone.
type aside struct {
	of any
	v  []int64
}

// Aside is the column of figures of a kind, made by fill from the amounts of rows: each once, when a reader first
// asks for it, and not once for each of many readers. Kinds are few and comparable; what fill makes of equal amounts
// must be equal.
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

// Follow takes in what changed since it was last called.
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

// restart gives up all places: every reader is behind then.
func (r *Recent) restart(s Snapshot) {
	r.base, r.begun = r.Next()+1, true
	r.columns.names = s.s.names
	clear(r.newest)
	r.grow(s)
	r.cut(len(r.rows))
	r.rows = r.rows[:0]
}

// grow makes room for rows and resources that are new.
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

// full reports whether there is no place for one more change.
func (r *Recent) full() bool {
	places := len(r.rows)
	if r.keep > 0 {
		return places >= r.keep
	}
	return places >= recentAtMost || places >= recentAtLeast && places*placeBytes+r.bytes >= recentBytes
}

// drop gives up the oldest places.
func (r *Recent) drop(places int) {
	r.base += uint64(places)
	r.cut(places)
	r.rows = r.rows[:copy(r.rows, r.rows[places:])]
}

// cut gives up the first places of the columns.
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
		// made up to some place, perhaps not as far as the columns
		a.v = a.v[:copy(a.v, a.v[min(places, len(a.v)):])]
	}
}

// Next is the sequence number to ask from next time.
func (r *Recent) Next() uint64 { return r.base + uint64(len(r.rows)) }

// Since returns the rows that changed since a sequence number, by position from lo on: NoNode where a row stands again
// later. ok is false when they are no longer all known.
func (r *Recent) Since(seq uint64) (rows []NodeIdx, lo NodeIdx, ok bool) {
	if seq < r.base {
		return nil, 0, false
	}
	return r.rows[seq-r.base:], NodeIdx(seq - r.base), true
}

// Columns shows the amounts by position: Allocatable, Requested, NonZero and Names, and nothing else.
func (r *Recent) Columns() Snapshot { return Snapshot{&r.columns} }
