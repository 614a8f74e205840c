// SPDX-License-Identifier: Apache-2.0

package question

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Takes reports whether a profile schedules the pods of a scheduler name. The result never changes, and any
// goroutine may ask.
func (i Inspector) Takes(schedulerName string) bool { return i.view.Profile(schedulerName) != nil }

// EachNode visits the known nodes in index order.
func (i Inspector) EachNode(visit func(name string)) {
	s := i.view.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) != nil {
			visit(s.NodeName(n))
		}
	}
}

// EachPod visits the known pods: those that hold capacity, by node, and then those that hold none, by UID. Assumed
// pods are decided and not yet seen bound.
func (i Inspector) EachPod(visit func(pod record.PodRef, node string, assumed bool)) {
	s := i.view.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { visit(p.Ref(), s.NodeName(n), assumed) })
	}
	byUID := func(a, b *cluster.Pod) int { return cmp.Compare(a.UID, b.UID) }
	for _, p := range slices.SortedFunc(i.view.AllPending(), byUID) {
		if _, _, _, holds := s.PodOn(p.UID); !holds {
			visit(p.Ref(), "", false)
		}
	}
}

// Oversold visits, in index order, the nodes whose pods hold more of a resource than is allocatable: other
// schedulers bound pods there, or the node became smaller.
func (i Inspector) Oversold(visit func(node string)) {
	s := i.view.Snapshot()
	over := func(n cluster.NodeIdx, id resource.ID) bool { return s.Requested(id).At(n) > s.Allocatable(id).At(n) }
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) == nil {
			continue
		}
		// Only the resources of this row are read: where each node has resources of its own, there are as many as
		// nodes.
		has := slices.ContainsFunc(s.Scalars(n), func(id resource.ID) bool { return over(n, id) })
		for id := resource.ID(0); id < resource.Fixed && !has; id++ {
			has = over(n, id)
		}
		if has {
			visit(s.NodeName(n))
		}
	}
}
