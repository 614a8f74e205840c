// SPDX-License-Identifier: Apache-2.0

package cluster

// journalKeep bounds the journal: a cache that is further behind is rebuilt.
const journalKeep = 1 << 16

// journal lists the rows that changed, oldest first, so that a cache updates exactly those.
type journal struct {
	base uint64 // sequence number of rows[0]
	rows []NodeIdx
}

func (j *journal) add(n NodeIdx) {
	if len(j.rows) >= 2*journalKeep {
		drop := len(j.rows) - journalKeep
		j.base += uint64(drop)
		j.rows = append(j.rows[:0], j.rows[drop:]...)
	}
	j.rows = append(j.rows, n)
}

// since returns the rows that changed from sequence number seq on; ok is false if the journal no longer has all of
// them.
func (j *journal) since(seq uint64) (rows []NodeIdx, ok bool) {
	if seq < j.base {
		return nil, false
	}
	return j.rows[seq-j.base:], true
}

func (j *journal) next() uint64 { return j.base + uint64(len(j.rows)) }
