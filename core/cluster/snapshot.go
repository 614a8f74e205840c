// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/labelindex"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Snapshot is a read-only view of the store. It shows the current state at each call, so it is valid for the step in
// which it was taken. Slices that it returns belong to the store: read them, and do not keep them.
type Snapshot struct{ s *Store }

// Snapshot returns a view for readers.
func (s *Store) Snapshot() Snapshot { return Snapshot{s} }

// Rows returns the number of rows, with or without a node. Column slices have this length.
func (v Snapshot) Rows() int { return len(v.s.rows) }

// Nodes returns the number of nodes.
func (v Snapshot) Nodes() int { return v.s.live }

// Now returns the time of the last tick.
func (v Snapshot) Now() record.Time { return v.s.now }

// Revision counts changes of rows; it never decreases.
func (v Snapshot) Revision() uint64 { return v.s.rev }

// NodeSet counts changes of which nodes exist and which images they hold.
func (v Snapshot) NodeSet() uint64 { return v.s.nodeSet }

// Changes returns the rows that changed since sequence number seq, with repetitions, and the number for the next
// call. ok is false if the journal no longer reaches back that far.
func (v Snapshot) Changes(seq uint64) (rows []NodeIdx, next uint64, ok bool) {
	rows, ok = v.s.journal.since(seq)
	return rows, v.s.journal.next(), ok
}

// NodeChanges returns, like Changes, the rows whose node object changed, was added or removed. It has its own
// sequence numbers.
func (v Snapshot) NodeChanges(seq uint64) (rows []NodeIdx, next uint64, ok bool) {
	rows, ok = v.s.nodeLog.since(seq)
	return rows, v.s.nodeLog.next(), ok
}

// Node returns the node of a row, nil if the row has none.
func (v Snapshot) Node(n NodeIdx) *Node { return v.s.rows[n].node }

// NodeName returns the node name of a row, also while the node object is missing.
func (v Snapshot) NodeName(n NodeIdx) string { return v.s.rows[n].name }

// Find returns the row of a node that exists.
func (v Snapshot) Find(name string) (NodeIdx, bool) {
	n, ok := v.s.index[name]
	if !ok || v.s.rows[n].node == nil {
		return NoNode, false
	}
	return n, true
}

// Names returns the dictionary of resources. It must not be changed.
func (v Snapshot) Names() *resource.Names { return v.s.names }

// Allocatable returns the column of allocatable amounts of a resource.
func (v Snapshot) Allocatable(id resource.ID) Column { return Column{&v.s.allocatable[id]} }

// Requested returns the column of the amounts that pods hold of a resource: confirmed plus assumed.
func (v Snapshot) Requested(id resource.ID) Column { return Column{&v.s.requested[id]} }

// Assumed returns the assumed part of Requested.
func (v Snapshot) Assumed(id resource.ID) Column { return Column{&v.s.assumed[id]} }

// Scalars returns every resource beyond resource.Fixed of which a row is offered or holds an amount, once, in no
// particular order.
func (v Snapshot) Scalars(n NodeIdx) []resource.ID { return v.s.rows[n].scalars }

// NonZero returns the column of requested CPU (0) or memory (1) with defaults for containers without requests.
func (v Snapshot) NonZero(i int) []int64 { return v.s.nonZero[i].v }

// Unschedulable returns the column of spec.unschedulable.
func (v Snapshot) Unschedulable() []bool { return v.s.unschedulable }

// TaintSets returns the column of taint set ids, and the sets by id.
func (v Snapshot) TaintSets() (column []int32, sets [][]v1.Taint) { return v.s.taintSet, v.s.taintSets }

// Ports returns the node ports that the pods of a row use.
func (v Snapshot) Ports(n NodeIdx) []HostPort { return v.s.rows[n].ports }

// WithLabel returns the set of rows whose node has this label value.
func (v Snapshot) WithLabel(key, value string) Bitmap {
	label := labelindex.Label{Key: key, Value: value}
	b := v.s.labelSets[label]
	if b == nil {
		b = v.s.buildLabelSet(func(node *Node) bool { got, ok := node.Labels[key]; return ok && got == value })
		v.s.labelSets[label] = b
	}
	return *b
}

// WithLabelKey returns the set of rows whose node has this label, whatever its value.
func (v Snapshot) WithLabelKey(key string) Bitmap {
	b := v.s.labelKeys[key]
	if b == nil {
		b = v.s.buildLabelSet(func(node *Node) bool { _, ok := node.Labels[key]; return ok })
		v.s.labelKeys[key] = b
	}
	return *b
}

// maxLabelSets bounds the number of label bitmaps; beyond it all are dropped and built again on demand.
const maxLabelSets = 4096

func (s *Store) buildLabelSet(in func(*Node) bool) *Bitmap {
	if len(s.labelSets) >= maxLabelSets {
		clear(s.labelSets)
	}
	if len(s.labelKeys) >= maxLabelSets {
		clear(s.labelKeys)
	}
	b := make(Bitmap, (len(s.rows)+63)/64)
	for n := range s.rows {
		if node := s.rows[n].node; node != nil && in(node) {
			b.Set(NodeIdx(n))
		}
	}
	return &b
}

// Image returns the size of an image, the number of nodes that have it, and their rows.
func (v Snapshot) Image(name string) (size int64, nodes int, on Bitmap, ok bool) {
	st := v.s.images[name]
	if st == nil {
		return 0, 0, nil, false
	}
	return st.size, st.n, st.rows, true
}

// PodOn returns the row on which the ledger has a pod, and whether the pod is only assumed there.
func (v Snapshot) PodOn(uid UID) (p *Pod, n NodeIdx, assumed, ok bool) {
	e := v.s.pods[uid]
	if e == nil {
		return nil, NoNode, false, false
	}
	return e.pod, e.row, e.assumed, true
}

// PodCount returns the number of pods in the ledger.
func (v Snapshot) PodCount() int { return len(v.s.pods) }

// EachPod calls f for each pod of a row, in the order of the ledger.
func (v Snapshot) EachPod(n NodeIdx, f func(p *Pod, assumed bool)) {
	for _, e := range v.s.rows[n].pods {
		f(e.pod, e.assumed)
	}
}

// View returns a copy of one node for the plain forms of plugins.
func (v Snapshot) View(n NodeIdx) *NodeView {
	r := &v.s.rows[n]
	view := &NodeView{Pods: make([]*Pod, 0, len(r.pods)), Ports: make([]HostPort, 0, len(r.ports))}
	v.ViewInto(n, view)
	return view
}
