// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// nodeIndex is the victim index: the pods of each node by importance.
type nodeIndex struct {
	nodes []nodeVictims // row -> its pods
	// The store's journals are applied up to these positions.
	changes, renewals uint64
	known             bool
	// Invariant: no pod has a priority below floor. It does not rise when pods leave.
	floor int32
}

// nodeVictims is the pods of one node.
type nodeVictims struct {
	// Invariant: the most important pod is first: by priority, then those that started earlier, then in the store's
	// order (upstream: util.MoreImportantPod).
	pods []victim.Entry
	// tooLarge is set if a pod holds an amount that sums are not safe with (see victim.TooLarge).
	tooLarge bool
}

// follow applies the changes of the store since the last call.
func (sh *nodeIndex) follow(s cluster.Snapshot) {
	changed, changes, ok := s.Changes(sh.changes)
	renewed, renewals, ok2 := s.Renewals(sh.renewals)
	sh.changes, sh.renewals = changes, renewals
	before := len(sh.nodes)
	for len(sh.nodes) < s.Rows() {
		sh.nodes = append(sh.nodes, nodeVictims{})
	}
	if !sh.known || !ok || !ok2 || len(changed)+len(renewed) > s.Rows() {
		sh.known, sh.floor = true, math.MaxInt32
		for n := range sh.nodes {
			sh.fill(s, cluster.NodeIdx(n))
		}
		return
	}
	for n := before; n < len(sh.nodes); n++ {
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

func (sh *nodeIndex) fill(s cluster.Snapshot, n cluster.NodeIdx) {
	sf := &sh.nodes[n]
	sf.fill(s, n)
	if last := len(sf.pods) - 1; last >= 0 {
		sh.floor = min(sh.floor, sf.pods[last].Priority)
	}
}

func (sf *nodeVictims) fill(s cluster.Snapshot, n cluster.NodeIdx) {
	sf.pods, sf.tooLarge = sf.pods[:0], false
	s.EachPod(n, func(p *cluster.Pod, _ bool) {
		sf.pods = append(sf.pods, victim.NewEntry(p))
		sf.tooLarge = sf.tooLarge || victim.TooLarge(&p.Spec.Held)
	})
	slices.SortStableFunc(sf.pods, victim.CompareImportance)
}

// below returns the pods of a priority below the given one.
func (sf *nodeVictims) below(priority int32) []victim.Entry {
	lo, hi := 0, len(sf.pods)
	for lo < hi {
		if mid := (lo + hi) / 2; sf.pods[mid].Priority >= priority {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return sf.pods[lo:]
}
