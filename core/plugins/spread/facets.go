// SPDX-License-Identifier: Apache-2.0

package spread

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Facets are, for each constraint, the value of its key, or the pods on the node where each node has a value of its
// own. Then the node must have a part in the constraint, or its pods would not count.
func (f *spreadFilter) Facets(s cluster.Snapshot, into []plugin.Facet) ([]plugin.Facet, bool) {
	for i := range f.plan.hard {
		c, by := &f.plan.hard[i], f.domains[i].topology
		facet, ok := plugin.TopologyFacet(by)
		switch {
		case ok:
		case !c.counted:
			facet = plugin.PresenceFacet(by)
		case plugin.OneNodePerValue(by) && f.domains[i].whole:
			facet = plugin.NodePodsFacet(by, s.Counter(c.counts))
		default:
			return into, false
		}
		into = append(into, facet)
	}
	return into, true
}

// ScoreFacets are the values of the keys, and the pods on the node for hosts.
func (pl *PodTopologySpread) ScoreFacets(s cluster.Snapshot, p *cluster.Pod, into []plugin.Facet) ([]plugin.Facet,
	bool) {
	plan := pl.plan(s, p)
	if plan.softErr != nil {
		return into, false
	}
	for i := range plan.soft {
		c := &plan.soft[i]
		by := s.Topology(c.key)
		facet, ok := plugin.TopologyFacet(by)
		switch isHost := c.key == v1.LabelHostname; {
		case isHost && c.counted:
			facet = plugin.NodePodsFacet(by, s.Counter(c.counts))
		case isHost:
			facet = plugin.PresenceFacet(by)
		case !ok:
			return into, false
		}
		into = append(into, facet)
	}
	return into, true
}

// PrepareGroups is PrepareUncached for groups.
func (pl *PodTopologySpread) PrepareGroups(s cluster.Snapshot, p *cluster.Pod, rows []cluster.NodeIdx,
	sizes []int) (plugin.UncachedScore, error) {
	return pl.prepareUncached(s, p, rows, sizes)
}
