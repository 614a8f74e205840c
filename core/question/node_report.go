// SPDX-License-Identifier: Apache-2.0

package question

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ExplainNode reports what a node offers and which pods hold it; ok is false for a node that is not known.
func (i Inspector) ExplainNode(name string) (r record.NodeReport, ok bool) {
	s := i.view.Snapshot()
	n, ok := s.Find(name)
	if !ok {
		return record.NodeReport{}, false
	}
	node := s.Node(n)
	r = record.NodeReport{At: i.view.Now(), Revision: s.Revision(), Name: name, Unschedulable: node.Unschedulable}
	for k, v := range node.Labels { // order: sorted below
		r.Labels = append(r.Labels, record.Label{Key: k, Value: v})
	}
	slices.SortFunc(r.Labels, func(a, b record.Label) int { return cmp.Compare(a.Key, b.Key) })
	for t := range node.Taints {
		r.Taints = append(r.Taints, node.Taints[t].ToString())
	}
	slices.Sort(r.Taints)
	r.Resources = nodeResources(s, n)
	s.EachPod(n, func(p *cluster.Pod, assumed bool) {
		r.PodCount++
		if assumed {
			r.Assumed++
		}
		r.Pods = append(r.Pods, record.PodOnNode{
			Pod: p.Ref(), Assumed: assumed, Terminating: p.Terminating, Priority: p.Spec.Priority,
			Holds: amounts(&p.Spec.Held),
		})
	})
	slices.SortFunc(r.Pods, func(a, b record.PodOnNode) int {
		return cmp.Or(cmp.Compare(a.Pod.Key(), b.Pod.Key()), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	for _, port := range s.Ports(n) {
		r.Ports = append(r.Ports, fmt.Sprintf("%s/%s:%d", port.Protocol, port.IP, port.Port))
	}
	slices.Sort(r.Ports)
	r.Scores = i.scoreReadings()
	return r, true
}

// nodeResources lists the resources that a node offers or of which its pods hold some.
func nodeResources(s cluster.Snapshot, n cluster.NodeIdx) []record.NodeResource {
	var rows []record.NodeResource
	for col := range s.Names().Len() {
		id := resource.ID(col)
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

// scoreReadings lists, for each resource scorer of the profiles, which of the two sums of a node it reads.
func (i Inspector) scoreReadings() []record.ScoreReadings {
	var list []record.ScoreReadings
	for _, p := range i.view.Config().Profiles {
		for _, sc := range p.Scorers {
			reader, ok := sc.Scorer.(plugin.ResourceScorer)
			if !ok || slices.ContainsFunc(list, func(r record.ScoreReadings) bool { return r.Plugin == sc.Name() }) {
				continue
			}
			r := record.ScoreReadings{Plugin: sc.Name(), Reads: "requested"}
			names, withDefaults := reader.Resources()
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
