// SPDX-License-Identifier: Apache-2.0

package cluster

// A Recent holds so many bytes, and so many changes: half of them are dropped when it is full.
const (
	recentBytes   = 16 << 20
	recentAtLeast = 1 << 12
	recentAtMost  = 1 << 16
)

// Recent holds the amounts of rows in the order in which the rows changed, as they were when Follow came by. Whoever
// catches up on some thousand changes reads its columns from one position to another, in place of as many rows here and
// there: many readers that come by now and then find the same stretch in the cache.
//
// A row that changes again stands once more; its place before that is given up.
type Recent struct {
	columns Store // of amounts alone, by position
	rows    []NodeIdx
	base    uint64   // sequence number of position 0
	newest  []uint64 // row -> sequence number of its last place, plus 1; 0 for none
	seq     uint64   // the journal of the store is followed up to here
	keep    int      // how many changes to hold at most, if not as many as the constants say
	begun   bool
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
	r.rows, r.columns.names = r.rows[:0], s.s.names
	clear(r.newest)
	r.cut(0)
	r.grow(s)
}

// grow makes room for rows and resources that are new; what is not known of a resource is 0, as it was on rows that did
// not change.
func (r *Recent) grow(s Snapshot) {
	for len(r.newest) < len(s.s.rows) {
		r.newest = append(r.newest, 0)
	}
	for _, cols := range []*[]column{&r.columns.allocatable, &r.columns.requested} {
		for len(*cols) < len(s.s.requested) {
			*cols = append(*cols, column{v: make([]int64, len(r.rows))})
		}
	}
}

func (r *Recent) add(s *Store, n NodeIdx) {
	if len(r.rows) >= r.room() {
		r.drop((len(r.rows) + 1) / 2)
	}
	if at := r.newest[n]; at > r.base {
		r.rows[at-1-r.base] = NoNode
	}
	r.rows = append(r.rows, n)
	r.newest[n] = r.Next()
	for id := range s.requested {
		r.columns.allocatable[id].v = append(r.columns.allocatable[id].v, s.allocatable[id].v[n])
		r.columns.requested[id].v = append(r.columns.requested[id].v, s.requested[id].v[n])
	}
	for i := range s.nonZero {
		r.columns.nonZero[i].v = append(r.columns.nonZero[i].v, s.nonZero[i].v[n])
	}
}

// room is how many changes to hold.
func (r *Recent) room() int {
	if r.keep > 0 {
		return r.keep
	}
	cell := 8 * (2*len(r.columns.requested) + len(r.columns.nonZero))
	return max(recentAtLeast, min(recentAtMost, recentBytes/cell))
}

// drop gives up the oldest places.
func (r *Recent) drop(places int) {
	r.base += uint64(places)
	r.rows = r.rows[:copy(r.rows, r.rows[places:])]
	r.cut(places)
}

// cut keeps of each column what stands from one position on, as long as rows.
func (r *Recent) cut(from int) {
	cut := func(c *column) {
		if from <= len(c.v) {
			copy(c.v, c.v[from:])
		}
		c.v = c.v[:len(r.rows)]
	}
	for i := range r.columns.allocatable {
		cut(&r.columns.allocatable[i])
		cut(&r.columns.requested[i])
	}
	for i := range r.columns.nonZero {
		cut(&r.columns.nonZero[i])
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
