// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Snapshot reads the store. It has no method that changes it. It shows the store as it is when a method is called,
// so it is good for the step in which it was taken. Slices it returns belong to the store: read, do not keep.
type Snapshot struct{ s *Store }

// Snapshot returns a view for readers.
func (s *Store) Snapshot() Snapshot { return Snapshot{s} }

// Rows is the number of rows, with or without a node. Column slices have this length.
func (v Snapshot) Rows() int { return len(v.s.rows) }

// Nodes is the number of nodes.
func (v Snapshot) Nodes() int { return v.s.live }

// Now is the time as of the last tick.
func (v Snapshot) Now() record.Time { return v.s.now }

// Revision counts changes of rows; it never goes back.
func (v Snapshot) Revision() uint64 { return v.s.rev }

// NodeSet counts changes of which nodes exist and which images they hold.
func (v Snapshot) NodeSet() uint64 { return v.s.nodeSet }

// Changes returns the rows that changed since sequence number seq, repeats included, and the number to ask from next
// time. ok is false when the journal no longer reaches back that far.
func (v Snapshot) Changes(seq uint64) (rows []NodeIdx, next uint64, ok bool) {
	rows, ok = v.s.journal.since(seq)
	return rows, v.s.journal.next(), ok
}

// NodeChanges is Changes for rows whose node object changed, came or went. It has sequence numbers of its own.
func (v Snapshot) NodeChanges(seq uint64) (rows []NodeIdx, next uint64, ok bool) {
	rows, ok = v.s.nodeLog.since(seq)
	return rows, v.s.nodeLog.next(), ok
}

// Node is the node of a row, nil when the row has none.
func (v Snapshot) Node(n NodeIdx) *Node { return v.s.rows[n].node }

// NodeName is the name a row stands for, also while the node object is missing.
func (v Snapshot) NodeName(n NodeIdx) string { return v.s.rows[n].name }

// Find returns the row of a node that exists.
func (v Snapshot) Find(name string) (NodeIdx, bool) {
	n, ok := v.s.index[name]
	if !ok || v.s.rows[n].node == nil {
		return NoNode, false
	}
	return n, true
}

// Names is the dictionary of resources. It must not be added to.
func (v Snapshot) Names() *resource.Names { return v.s.names }

// Allocatable is the column of what nodes offer of a resource.
func (v Snapshot) Allocatable(id resource.ID) Column { return Column{&v.s.allocatable[id]} }

// Requested is the column of what pods hold of a resource: confirmed plus assumed.
func (v Snapshot) Requested(id resource.ID) Column { return Column{&v.s.requested[id]} }

// Assumed is the assumed part of Requested.
func (v Snapshot) Assumed(id resource.ID) Column { return Column{&v.s.assumed[id]} }

// Scalars lists every resource beyond resource.Fixed of which a row is offered or holds something, once, in no order of
// meaning.
func (v Snapshot) Scalars(n NodeIdx) []resource.ID { return v.s.rows[n].scalars }

// NonZero is the column of requested CPU (0) or memory (1) with defaults for silent containers.
func (v Snapshot) NonZero(i int) []int64 { return v.s.nonZero[i].v }

// Unschedulable is the column of spec.unschedulable.
func (v Snapshot) Unschedulable() []bool { return v.s.unschedulable }

// TaintSets is the column of taint set ids, and the sets by id.
func (v Snapshot) TaintSets() (column []int32, sets [][]v1.Taint) { return v.s.taintSet, v.s.taintSets }

// Ports lists the node ports that the pods of a row take.
func (v Snapshot) Ports(n NodeIdx) []HostPort { return v.s.rows[n].ports }

// WithLabel is the set of rows whose node has this label value.
func (v Snapshot) WithLabel(key, value string) Bitmap {
	pair := labelPair{key, value}
	b := v.s.labelSets[pair]
	if b == nil {
		b = v.s.buildLabelSet(func(node *Node) bool { got, ok := node.Labels[key]; return ok && got == value })
		v.s.labelSets[pair] = b
	}
	return *b
}

// WithLabelKey is the set of rows whose node has this label, whatever its value.
func (v Snapshot) WithLabelKey(key string) Bitmap {
	b := v.s.labelKeys[key]
	if b == nil {
		b = v.s.buildLabelSet(func(node *Node) bool { _, ok := node.Labels[key]; return ok })
		v.s.labelKeys[key] = b
	}
	return *b
}

// maxLabelSets bounds the label bitmaps; past it they are dropped and built again when asked for.
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

// Image tells the size of an image, on how many nodes it is, and on which.
func (v Snapshot) Image(name string) (size int64, nodes int, on Bitmap, ok bool) {
	st := v.s.images[name]
	if st == nil {
		return 0, 0, nil, false
	}
	return st.size, st.n, st.rows, true
}

// PodOn tells where the ledger has a pod, and whether it is only assumed there.
func (v Snapshot) PodOn(uid UID) (p *Pod, n NodeIdx, assumed, ok bool) {
	e := v.s.pods[uid]
	if e == nil {
		return nil, NoNode, false, false
	}
	return e.pod, e.row, e.assumed, true
}

// PodCount is the number of pods in the ledger.
func (v Snapshot) PodCount() int { return len(v.s.pods) }

// EachPod calls f for each pod of a row, in the order of the ledger.
func (v Snapshot) EachPod(n NodeIdx, f func(p *Pod, assumed bool)) {
	for _, e := range v.s.rows[n].pods {
		f(e.pod, e.assumed)
	}
}

// View copies one node for the plain forms of plugins.
func (v Snapshot) View(n NodeIdx) *NodeView {
	r := &v.s.rows[n]
	view := &NodeView{Pods: make([]*Pod, 0, len(r.pods)), Ports: make([]HostPort, 0, len(r.ports))}
	v.ViewInto(n, view)
	return view
}
