// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// nodeInfos are the NodeInfos of all rows. The loop's goroutine is the only writer.
type nodeInfos struct {
	state   cluster.Snapshot
	check   bool   // NodeInfos that are lent are compared
	seq     uint64 // the journal has been followed up to here
	nodeSet uint64
	begun   bool
	rows    []*NodeInfo    // row -> its NodeInfo; nil if the row has no node
	all     []fwk.NodeInfo // of the rows with a node, in their order
	at      []int          // row -> position in all
	parts   []*nodePart    // row -> the part of the node object; nil until a NodeInfo of the row is computed
	fit     fitList
}

// see notes the state before the first decision, so that it can be read.
func (m *nodeInfos) see(s cluster.Snapshot) {
	if !m.begun {
		m.state = s
	}
}

// follow brings the NodeInfos up to date with the store. It costs as much as rows have changed.
func (m *nodeInfos) follow(s cluster.Snapshot) {
	changed, next, ok := s.Changes(m.seq)
	if m.seq = next; !ok || !m.begun || m.nodeSet != s.NodeSet() || m.state != s {
		m.restart(s)
		return
	}
	for i, n := range changed {
		again := i+1 < len(changed) && changed[i+1] == n
		if again || int(n) >= len(m.rows) || m.rows[n] == nil { // pods may be on a row without a node
			continue
		}
		m.renew(s, n)
		m.all[m.at[n]] = m.rows[n]
		m.fit.changed(n)
	}
}

// restart makes the NodeInfos of all rows anew. PodInfos are kept where a row still has the pod.
func (m *nodeInfos) restart(s cluster.Snapshot) {
	m.state, m.nodeSet, m.begun, m.fit = s, s.NodeSet(), true, fitList{}
	for len(m.rows) < s.Rows() {
		m.rows, m.at, m.parts = append(m.rows, nil), append(m.at, 0), append(m.parts, nil)
	}
	m.all = make([]fwk.NodeInfo, 0, s.Nodes())
	for n := range m.rows {
		row := cluster.NodeIdx(n)
		if s.Node(row) == nil {
			m.rows[n] = nil
			continue
		}
		m.renew(s, row)
		m.at[n] = len(m.all)
		m.all = append(m.all, m.rows[n])
	}
}

// renew makes the NodeInfo of a row anew. Its content is computed when a plugin reads it.
func (m *nodeInfos) renew(s cluster.Snapshot, n cluster.NodeIdx) {
	last := m.rows[n]
	before := last
	if before != nil && before.of != nil {
		before = before.before // no plugin has read the one between
	}
	m.rows[n] = &NodeInfo{node: objectOf(s.Node(n)), record: s.Node(n), generation: lastGeneration.Add(1),
		before: before, of: m, row: n}
	if m.check {
		m.rows[n].keepOriginal(last)
	}
}

// objectOf returns the object of a record.
func objectOf(n *cluster.Node) *v1.Node {
	if n.Full != nil {
		return n.Full
	}
	// The record comes from a recording, or from before KeepFull.
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec: v1.NodeSpec{Taints: n.Taints, Unschedulable: n.Unschedulable}}
}

// fill computes the content of the NodeInfo of a row.
func (m *nodeInfos) fill(info *NodeInfo, n cluster.NodeIdx) {
	var known podInfos
	if info.before != nil {
		known = info.before.pods
	}
	generation := info.generation
	info.begin(m.part(n, info.record))
	i := 0
	m.state.EachPod(n, func(p *cluster.Pod, _ bool) {
		info.insert(known.find(p, i, info.record.Name))
		i++
	})
	info.generation = generation
}

// begin empties a NodeInfo of its pods.
func (n *NodeInfo) begin(part *nodePart) {
	n.fromNode, n.requested, n.nonZero = part, &Resource{}, &Resource{}
	n.ports, n.claims = fwk.HostPortInfo{}, map[string]int{}
}

// podInfos are the PodInfos that a NodeInfo of the same row had.
type podInfos []fwk.PodInfo

// find returns the PodInfo of a version of a pod, which is probably at a position.
func (known podInfos) find(p *cluster.Pod, at int, node string) *PodInfo {
	if at < len(known) {
		if info, ours := known[at].(*PodInfo); ours && info.record == p {
			return info
		}
	}
	for _, other := range known {
		if info, ours := other.(*PodInfo); ours && info.record == p {
			return info
		}
	}
	return newPodInfo(p, node)
}

// part returns what follows from the node object of a row.
func (m *nodeInfos) part(n cluster.NodeIdx, record *cluster.Node) *nodePart {
	if part := m.parts[n]; part != nil && part.record == record && part.nodes == m.nodeSet {
		return part
	}
	part := &nodePart{record: record, nodes: m.nodeSet, allocatable: resourceOf(&record.Allocatable),
		images:   make(map[string]*fwk.ImageStateSummary, len(record.Images)),
		features: ndf.DefaultFramework.TryMap(record.Features)}
	for _, image := range record.Images {
		for _, name := range image.Names {
			if size, nodes, _, ok := m.state.Image(name); ok {
				part.images[name] = &fwk.ImageStateSummary{Size: size, NumNodes: nodes}
			}
		}
	}
	m.parts[n] = part
	return part
}

// of returns the NodeInfo of a view: that of the row if the view has the pods of the row, else one with the pods of the
// view.
func (m *nodeInfos) of(s cluster.Snapshot, v *cluster.NodeView) *NodeInfo {
	if int(v.Row) >= len(m.rows) || m.rows[v.Row] == nil || m.rows[v.Row].record != v.Node {
		return m.supposed(v, nil)
	}
	same, i := true, 0
	s.EachPod(v.Row, func(p *cluster.Pod, _ bool) {
		same = same && i < len(v.Pods) && v.Pods[i] == p
		i++
	})
	if same && i == len(v.Pods) {
		return m.rows[v.Row]
	}
	return m.supposed(v, m.rows[v.Row].complete().pods)
}

// supposed returns a NodeInfo with the pods of a view. A pod that the row does not have is nominated: its object names
// no node.
func (m *nodeInfos) supposed(v *cluster.NodeView, known podInfos) *NodeInfo {
	info := &NodeInfo{node: objectOf(v.Node), record: v.Node, generation: lastGeneration.Add(1)}
	part := &nodePart{allocatable: resourceOf(&v.Node.Allocatable), images: map[string]*fwk.ImageStateSummary{}}
	if int(v.Row) < len(m.parts) {
		part = m.part(v.Row, v.Node)
	}
	info.begin(part)
	for i, p := range v.Pods {
		info.insert(known.find(p, i, p.NodeName))
	}
	if m.check {
		info.keepOriginal(nil)
	}
	return info
}

// named returns the NodeInfo of a node.
func (m *nodeInfos) named(name string) (fwk.NodeInfo, error) {
	if m.begun {
		if n, ok := m.state.Find(name); ok && int(n) < len(m.rows) && m.rows[n] != nil {
			return m.rows[n], nil
		}
	}
	return nil, fmt.Errorf("nodeinfo not found for node name %q", name)
}
