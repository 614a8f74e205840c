// SPDX-License-Identifier: Apache-2.0

package cluster

// renewed records that a row has another version of a pod which holds the same amounts, but started at another time.
func (s *Store) renewed(e *entry, was *Pod) {
	if was.Start != e.pod.Start {
		s.renewal.add(e.row)
	}
}

// Renewals returns the rows, with repetitions, on which since sequence number seq a pod's start time or its native
// group became known without any other change: Changes does not include them, because no verdict depends on it. ok is
// as for Changes.
func (v Snapshot) Renewals(seq uint64) (rows []NodeIdx, next uint64, ok bool) {
	rows, ok = v.s.renewal.since(seq)
	return rows, v.s.renewal.next(), ok
}

// ViewInto returns a View in the memory of an earlier one, for callers that view one node after the other.
func (v Snapshot) ViewInto(n NodeIdx, view *NodeView) {
	r := &v.s.rows[n]
	view.Row, view.Node, view.names = n, r.node, v.s.names
	view.NonZero = [2]int64{v.s.nonZero[0].v[n], v.s.nonZero[1].v[n]}
	view.Ports = append(view.Ports[:0], r.ports...)
	view.Pods = view.Pods[:0]
	for _, e := range r.pods {
		view.Pods = append(view.Pods, e.pod)
	}
	for id := range view.fixed {
		view.fixed[id] = v.s.requested[id].v[n]
	}
	view.scalars = view.scalars[:0]
	for _, id := range r.scalars {
		if held := v.s.requested[id].get(n); held != 0 {
			view.scalars = append(view.scalars, scalar{id, held})
		}
	}
}
