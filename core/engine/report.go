// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ExplainNode reports on a node's accounts.
func (e *Engine) ExplainNode(name string) (record.NodeReport, bool) {
	s := e.store.Snapshot()
	n, ok := s.Find(name)
	if !ok {
		return record.NodeReport{}, false
	}
	node := s.Node(n)
	r := record.NodeReport{At: e.now, Revision: s.Revision(), Name: name, Unschedulable: node.Unschedulable}
	for k, v := range node.Labels { // order: sorted below
		r.Labels = append(r.Labels, record.Label{Key: k, Value: v})
	}
	slices.SortFunc(r.Labels, func(a, b record.Label) int { return cmp.Compare(a.Key, b.Key) })
	for i := range node.Taints {
		r.Taints = append(r.Taints, node.Taints[i].ToString())
	}
	slices.Sort(r.Taints)
	r.Resources = accounts(s, n)
	s.EachPod(n, func(p *cluster.Pod, assumed bool) {
		r.PodCount++
		if assumed {
			r.Assumed++
		}
		r.Pods = append(r.Pods, record.PodOnNode{
			Pod: p.Ref(), Assumed: assumed, Terminating: p.Terminating, Priority: p.Spec.Priority, Holds: amounts(&p.Spec.Held),
		})
	})
	slices.SortFunc(r.Pods, func(a, b record.PodOnNode) int {
		return cmp.Or(cmp.Compare(a.Pod.Key(), b.Pod.Key()), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	for _, port := range s.Ports(n) {
		r.Ports = append(r.Ports, fmt.Sprintf("%s/%s:%d", port.Protocol, port.IP, port.Port))
	}
	slices.Sort(r.Ports)
	r.Scores = e.readings()
	return r, true
}

// accounts lists the columns of a row in which anything is offered or taken.
func accounts(s cluster.Snapshot, n cluster.NodeIdx) []record.NodeResource {
	var rows []record.NodeResource
	for i := range s.Names().Len() {
		id := resource.ID(i)
		row := record.NodeResource{
			Resource:    string(s.Names().Name(id)),
			Allocatable: s.Allocatable(id).At(n),
			Requested:   s.Requested(id).At(n),
			Assumed:     s.Assumed(id).At(n),
		}
		if row.Allocatable == 0 && row.Requested == 0 && id > resource.Pods {
			continue
		}
		row.Confirmed = resource.Sub(row.Requested, row.Assumed)
		row.Free = resource.Sub(row.Allocatable, row.Requested)
		switch id {
		case resource.CPU:
			row.Scored, row.HasScored = s.NonZero(0)[n], true
		case resource.Memory:
			row.Scored, row.HasScored = s.NonZero(1)[n], true
		}
		rows = append(rows, row)
	}
	return rows
}

// Takes tells whether pods of this scheduler name are ours to place. It never changes; any goroutine may ask.
func (e *Engine) Takes(schedulerName string) bool { return e.profiles[schedulerName] != nil }

// EachNode visits the nodes that are known, in index order.
func (e *Engine) EachNode(visit func(name string)) {
	s := e.store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) != nil {
			visit(s.NodeName(n))
		}
	}
}

// EachPod visits the pods that are known: those that hold room, by node, and then those that hold none, by UID. Assumed
// pods are decided and not yet seen bound.
func (e *Engine) EachPod(visit func(pod record.PodRef, node string, assumed bool)) {
	s := e.store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { visit(p.Ref(), s.NodeName(n), assumed) })
	}
	for _, uid := range slices.Sorted(maps.Keys(e.pending)) {
		if _, _, _, holds := s.PodOn(uid); !holds {
			visit(e.pending[uid].Ref(), "", false)
		}
	}
}

// Oversold visits, in index order, the nodes on which pods hold more of something than there is: through other schedulers,
// or because a node became smaller.
func (e *Engine) Oversold(visit func(node string)) {
	s := e.store.Snapshot()
	over := func(n cluster.NodeIdx, id resource.ID) bool { return s.Requested(id).At(n) > s.Allocatable(id).At(n) }
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) == nil {
			continue
		}
		// What the row has, not all there is: where every node has resources of its own, there are as many as nodes.
		has := slices.ContainsFunc(s.Scalars(n), func(id resource.ID) bool { return over(n, id) })
		for id := resource.ID(0); id < resource.Fixed && !has; id++ {
			has = over(n, id)
		}
		if has {
			visit(s.NodeName(n))
		}
	}
}

// readings tells which of the two sums each resource scorer of the profiles reads.
func (e *Engine) readings() []record.ScoreReadings {
	var list []record.ScoreReadings
	for _, p := range e.cfg.Profiles {
		for _, sc := range p.Scorers {
			reader, ok := sc.Scorer.(plugin.ResourceScorer)
			if !ok || slices.ContainsFunc(list, func(r record.ScoreReadings) bool { return r.Plugin == sc.Name() }) {
				continue
			}
			r := record.ScoreReadings{Plugin: sc.Name(), Reads: "requested"}
			names, withDefaults := reader.Reads()
			if withDefaults {
				r.Reads = "scored"
			}
			for _, name := range names {
				r.Resources = append(r.Resources, string(name))
			}
			list = append(list, r)
		}
	}
	return list
}

// QueueReport reports on every waiting pod.
func (e *Engine) QueueReport() record.QueueReport {
	counts := e.queue.Counts()
	r := record.QueueReport{At: e.now, InFlightEvents: e.queue.InFlightEvents(), Counts: record.QueueCounts{
		Active: counts[record.Active], InFlight: counts[record.InFlight], Backoff: counts[record.Backoff],
		Unschedulable: counts[record.Unschedulable], Gated: counts[record.Gated],
	}}
	for _, sub := range []record.SubQueue{record.Active, record.InFlight, record.Backoff, record.Unschedulable, record.Gated} {
		e.queue.Each(sub, func(u *queue.Unit) {
			p := u.Pod()
			entry := record.QueueEntry{
				Pod: p.Ref(), Where: sub, Profile: p.Spec.SchedulerName, Priority: p.Spec.Priority, Attempts: u.Attempts,
				Since: u.Since, Created: p.Created, Plugins: u.Plugins,
			}
			if u.Gang != (cluster.GangKey{}) {
				entry.Gang, entry.Priority = u.Key, u.Priority()
				for _, m := range u.Members {
					entry.Members = append(entry.Members, string(m.UID))
				}
			}
			switch {
			case sub == record.Backoff:
				entry.Until = u.BackoffUntil
			case sub == record.Unschedulable && u.Aside == "" && e.cfg.UnschedulableTimeout > 0:
				entry.Until = u.Since + e.cfg.UnschedulableTimeout
			}
			r.Entries = append(r.Entries, entry)
		})
	}
	return r
}

// QueueCounts counts waiting pods per sub-queue.
func (e *Engine) QueueCounts() map[record.SubQueue]int { return e.queue.Counts() }

// InFlightEvents is how many events are kept for units in flight; 0 at rest.
func (e *Engine) InFlightEvents() int { return e.queue.InFlightEvents() }
