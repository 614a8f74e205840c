// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// shelves are the pods of each row in the order of their importance.
type shelves struct {
	rows []shelf // row -> its pods
	// The store's journals are applied up to here.
	changes, renewals uint64
	known             bool
	// floor is a priority that no pod is below. It does not rise again when pods go.
	floor int32
}

// shelf is the pods of one row, the most important first: those of higher priority, of these those that started earlier,
// of these as the ledger has them (upstream: util.MoreImportantPod).
type shelf struct {
	cells []cell
	// huge is set when a pod holds more than sums are safe with.
	huge bool
}

// cell is one pod with what sums need of it.
type cell struct {
	pod                    *cluster.Pod
	start                  record.Time
	cpu, memory, ephemeral int64
	priority               int32
	shielded               bool // of a victim: a disruption budget protects it
}

// safeAmount is up to which single amounts are added up here. Amounts saturate, and the difference of saturated sums is
// not the sum of differences.
const safeAmount = 1 << 50

// follow brings the shelves in line with the store.
func (sh *shelves) follow(s cluster.Snapshot) {
	changed, changes, ok := s.Changes(sh.changes)
	renewed, renewals, ok2 := s.Renewals(sh.renewals)
	sh.changes, sh.renewals = changes, renewals
	before := len(sh.rows)
	for len(sh.rows) < s.Rows() {
		sh.rows = append(sh.rows, shelf{})
	}
	if !sh.known || !ok || !ok2 || len(changed)+len(renewed) > s.Rows() {
		sh.known, sh.floor = true, math.MaxInt32
		for n := range sh.rows {
			sh.fill(s, cluster.NodeIdx(n))
		}
		return
	}
	for n := before; n < len(sh.rows); n++ {
		sh.fill(s, cluster.NodeIdx(n))
	}
	for _, rows := range [][]cluster.NodeIdx{changed, renewed} {
		for i, n := range rows {
			if i == 0 || rows[i-1] != n {
				sh.fill(s, n)
			}
		}
	}
}

func (sh *shelves) fill(s cluster.Snapshot, n cluster.NodeIdx) {
	sf := &sh.rows[n]
	sf.fill(s, n)
	if last := len(sf.cells) - 1; last >= 0 {
		sh.floor = min(sh.floor, sf.cells[last].priority)
	}
}

func (sf *shelf) fill(s cluster.Snapshot, n cluster.NodeIdx) {
	sf.cells, sf.huge = sf.cells[:0], false
	s.EachPod(n, func(p *cluster.Pod, _ bool) {
		held := &p.Spec.Held
		c := cell{pod: p, start: startOf(p), cpu: held.MilliCPU, memory: held.Memory, ephemeral: held.Ephemeral, priority: p.Spec.Priority}
		sf.cells = append(sf.cells, c)
		sf.huge = sf.huge || tooMuch(held)
	})
	slices.SortStableFunc(sf.cells, moreImportant)
}

// moreImportant is negative when a is spared before b.
func moreImportant(a, b cell) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.start, b.start))
}

// below are the pods of less than a priority.
func (sf *shelf) below(priority int32) []cell {
	lo, hi := 0, len(sf.cells)
	for lo < hi {
		if mid := (lo + hi) / 2; sf.cells[mid].priority >= priority {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return sf.cells[lo:]
}
