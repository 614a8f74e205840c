// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Supposition is a transaction for what-if questions: End undoes every change of the store inside it, added and
// removed nodes included, and leaves nothing behind that could affect a later decision. Revision, journals and the
// number of rows are as before, so a scheduler that was asked makes the same decisions, record for record, as one
// that was not.
//
// Caches that follow the store must be new ones inside, and must be dropped at the end: a supposition has its own
// journals, and its rows are removed. Results that are keyed by NodeSet or KindRevision may be kept; those two keep
// increasing, so that a hypothetical state is never mistaken for the real one.
//
// Rejected: a copy of the store (tens of milliseconds and as much memory again, for a question that changes a few
// rows), and an ordinary transaction, whose undo shows in the journals and in the revision, and whose rows stay.
type Supposition struct {
	s                         *Store
	rows                      int
	free                      []NodeIdx
	rev                       uint64
	journal, renewal, nodeLog journal
}

// Suppose opens a supposition. No transaction may be open, and none may be opened until End.
func (s *Store) Suppose() *Supposition {
	s.Begin()
	p := &Supposition{
		s: s, rows: len(s.rows), free: append([]NodeIdx(nil), s.free...), rev: s.rev,
		journal: s.journal, renewal: s.renewal, nodeLog: s.nodeLog,
	}
	for _, j := range []*journal{&s.journal, &s.renewal, &s.nodeLog} {
		*j = journal{base: j.next()}
	}
	s.supposed = p
	return p
}

// Trial opens a trial inside the supposition.
func (p *Supposition) Trial() *Trial { return p.open().Trial() }

// SetNode supposes that a node exists in this version.
func (p *Supposition) SetNode(n *Node) { p.open().SetNode(n) }

// DeleteNode supposes that a node is gone.
func (p *Supposition) DeleteNode(name string) { p.open().DeleteNode(name) }

// SetObject supposes that an object exists in this version.
func (p *Supposition) SetObject(o Object) { p.open().SetObject(o) }

// SetPod supposes that a pod is bound in this version.
func (p *Supposition) SetPod(pod *Pod) { p.open().SetPod(pod) }

// open returns the store of a supposition that has not ended.
func (p *Supposition) open() *Store {
	if p.s.supposed != p {
		panic(Broken("use of a supposition that is not open"))
	}
	return p.s
}

// End undoes everything. An open trial ends with it.
func (p *Supposition) End() {
	s := p.s
	if s.supposed != p {
		panic(Broken("end of a supposition that is not open"))
	}
	s.Abort()
	s.supposed = nil
	s.rev = p.rev
	s.journal, s.renewal, s.nodeLog = p.journal, p.renewal, p.nodeLog
	s.shrink(p.rows)
	s.free = p.free
}

// shrink removes the rows from a number on. They must be empty.
func (s *Store) shrink(rows int) {
	for n := rows; n < len(s.rows); n++ {
		if r := &s.rows[n]; r.name != "" || r.node != nil || len(r.pods) > 0 {
			panic(Broken(fmt.Sprintf("giving up row %d of node %q with %d pods", n, r.name, len(r.pods))))
		}
	}
	clear(s.rows[rows:])
	s.rows = s.rows[:rows]
	// The other columns are 0 in these rows, as beyond their ends.
	for _, columns := range [][]column{s.allocatable[:resource.Fixed], s.requested[:resource.Fixed],
		s.assumed[:resource.Fixed], s.nonZero[:]} {
		for i := range columns {
			columns[i].v = columns[i].v[:rows]
		}
	}
	s.taintSet, s.unschedulable = s.taintSet[:rows], s.unschedulable[:rows]
	if len(s.volumes.rows) > rows {
		clear(s.volumes.rows[rows:])
		s.volumes.rows = s.volumes.rows[:rows]
	}
	for _, k := range s.counters.byKey { // order: each counter has its own column
		k.rows = k.rows[:min(rows, len(k.rows))]
	}
	for _, t := range s.counters.topologies { // order: each key has its own column
		t.of = t.of[:min(rows, len(t.of))]
	}
}
