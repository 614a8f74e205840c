// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// placements proposes and scores the placements of native pod groups.
type placements struct {
	p         *Profile
	generator *hosted // nil for kumiki's own
}

// Placements returns what proposes placements of native pod groups; nil if the profile has no plugin for that. As
// upstream, the first plugin at PlacementGenerate alone is asked.
func (p *Profile) Placements() plugin.Placements {
	out := placements{p: p}
	if first := p.config.Enabled[config.PlacementGenerate]; len(p.generates) > 0 &&
		(len(first) == 0 || first[0] == p.generates[0].name) {
		out.generator = p.generates[0]
	}
	if out.generator == nil && len(p.placementScores) == 0 {
		return nil
	}
	return out
}

// Generate calls GeneratePlacements for a native pod group. Without a generator the candidates are the domains of the
// group's topology, for plugins that score them.
func (g placements) Generate(s cluster.Snapshot, members []*cluster.Pod) plugin.Candidates {
	mark := members[0].Gang
	if mark == nil || mark.Key.Source != cluster.GangOfGroup {
		return plugin.Candidates{}
	}
	gang := s.GangObject(mark.Key)
	if gang == nil || g.generator == nil && len(gang.Topology) == 0 {
		return plugin.Candidates{}
	}
	host := g.p.host
	g.p.candidates = nil // of a search that panicked
	host.infos.follow(s)
	group, err := newPodGroupInfo(gang, members)
	if err != nil {
		return plugin.Candidates{Err: err}
	}
	search := &candidateSearch{p: g.p, key: mark.Key, members: members, group: group, state: &groupCycle{}}
	if g.generator == nil {
		search.inDomains(s, gang)
		return search.answer()
	}
	status := search.generate(g.generator)
	switch {
	case status.IsRejected():
		return plugin.Candidates{By: g.generator.name, Rejected: text(status)}
	case !status.IsSuccess():
		return plugin.Candidates{Err: failure(status)}
	case len(search.placements) == 0: // upstream's words (pkg/scheduler/framework/runtime)
		return plugin.Candidates{By: g.generator.name, Rejected: "no feasible placements found"}
	}
	return search.answer()
}

// candidateSearch is the search for a pod group among placements.
type candidateSearch struct {
	p          *Profile
	key        cluster.GangKey
	members    []*cluster.Pod
	group      *podGroupInfo
	state      *groupCycle
	placements []*fwk.Placement
	list       []plugin.Candidate // by placement
	cycles     []*placementCycle  // by placement; nil until it is entered
	current    *placementCycle
}

// answer returns the candidates.
func (c *candidateSearch) answer() plugin.Candidates {
	if len(c.list) == 0 {
		return plugin.Candidates{}
	}
	c.cycles = make([]*placementCycle, len(c.list))
	return plugin.Candidates{List: c.list, Search: c}
}

// generate calls GeneratePlacements with all nodes.
func (c *candidateSearch) generate(h *hosted) *fwk.Status {
	var result *fwk.GeneratePlacementsResult
	status := h.call(config.PlacementGenerate, loan{rows: true}, func(ctx context.Context) (status *fwk.Status) {
		parent := &fwk.Placement{Nodes: c.p.host.infos.all}
		result, status = h.generate.GeneratePlacements(ctx, c.state, c.group, parent)
		return status
	})
	if !status.IsSuccess() {
		return status
	}
	if result == nil {
		return h.broken(config.PlacementGenerate, BadAnswer, errors.New("it returned no result"))
	}
	c.placements = result.Placements
	for i, placement := range c.placements {
		if placement == nil {
			return h.broken(config.PlacementGenerate, BadAnswer, fmt.Errorf("placement %d is nil", i))
		}
		candidate := plugin.Candidate{Name: placement.Name}
		err := guard(func() { candidate.Rows, candidate.Err = c.p.host.infos.rowsOf(placement.Nodes) })
		if err == nil {
			err = candidate.Err
		}
		if err != nil {
			candidate.Err = fmt.Errorf("failed to assume pod group placement: %w", err)
			h.broken(config.PlacementGenerate, BadAnswer, candidate.Err)
		}
		c.list = append(c.list, candidate)
	}
	return nil
}

// rowsOf returns the rows of nodes, in index order, nil for all nodes. The NodeInfos must be those that were lent, as
// upstream requires (pkg/scheduler/backend/cache, AssumePlacement).
func (m *nodeInfos) rowsOf(nodes []fwk.NodeInfo) ([]cluster.NodeIdx, error) {
	if len(nodes) == len(m.all) {
		return nil, nil
	}
	rows := make([]cluster.NodeIdx, 0, len(nodes))
	for _, node := range nodes {
		name := node.Node().Name
		n, is := m.state.Find(name)
		if !is || int(n) >= len(m.rows) || m.rows[n] == nil {
			return nil, fmt.Errorf("node %s in placement is not present in snapshot", name)
		}
		if fwk.NodeInfo(m.rows[n]) != node {
			return nil, fmt.Errorf("node %s in placement is not the same instance as in the snapshot", name)
		}
		rows = append(rows, n)
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// inDomains makes a candidate of each domain of the group's topology, by name: of those that have members already, if
// there are any.
func (c *candidateSearch) inDomains(s cluster.Snapshot, gang *cluster.Gang) {
	labels := s.Topology(gang.Topology[0].Key)
	column, bound := labels.Column(), map[int32]bool{} // value -> it has members
	for _, m := range s.GangMembers(gang.Key) {
		bound[column[m.Row]] = true
	}
	at := map[int32]int{} // value -> index in list
	for n := range c.p.host.infos.rows {
		row := cluster.NodeIdx(n)
		if s.Node(row) == nil {
			continue
		}
		id := column[row]
		if id == cluster.NoValue || len(bound) > 0 && !bound[id] {
			continue
		}
		i, known := at[id]
		if !known {
			i = len(c.list)
			at[id] = i
			c.list = append(c.list, plugin.Candidate{Name: labels.Value(id)})
		}
		c.list[i].Rows = append(c.list[i].Rows, row)
	}
	slices.SortFunc(c.list, func(a, b plugin.Candidate) int { return strings.Compare(a.Name, b.Name) })
	for _, candidate := range c.list {
		placement := &fwk.Placement{Name: candidate.Name}
		for _, row := range candidate.Rows {
			placement.Nodes = append(placement.Nodes, c.p.host.infos.rows[row])
		}
		c.placements = append(c.placements, placement)
	}
}

// Enter starts the evaluation of a candidate with an empty state.
func (c *candidateSearch) Enter(candidate int) {
	c.current = &placementCycle{group: c.state, rows: c.list[candidate].Rows,
		decisions: map[cluster.UID]*decision{}} // member -> the last decision about it
	c.cycles[candidate] = c.current
	c.p.candidates = c
}

// began makes a decision about a member one in the current placement.
func (c *candidateSearch) began(d *decision) {
	if d.record.Gang == nil || d.record.Gang.Key != c.key {
		return
	}
	d.first.group, d.first.placement = c.state, c.current
	c.current.decisions[d.record.UID] = d
}

// Leave makes the decisions that placed members in the candidate that is kept those that Reserve and Permit see.
func (c *candidateSearch) Leave(kept int) {
	c.p.candidates, c.p.current = nil, nil
	if kept < 0 {
		return
	}
	for uid, d := range c.cycles[kept].decisions { // order: each sets its own entry
		c.p.kept[uid] = d
	}
}

// groupCycle is the state of a pod group in one cycle.
type groupCycle struct{ CycleState }

var _ fwk.PodGroupCycleState = (*groupCycle)(nil)

// GetParentPlacementCycleState is nil: there are no composite pod groups.
func (*groupCycle) GetParentPlacementCycleState() fwk.PlacementCycleState { return nil }

// placementCycle is the state of one placement of a pod group in one cycle.
type placementCycle struct {
	CycleState
	group     *groupCycle
	rows      []cluster.NodeIdx         // nil for all nodes
	decisions map[cluster.UID]*decision // member -> the last decision about it
}

var _ fwk.PlacementCycleState = (*placementCycle)(nil)

// GetPodGroupSchedulingCycle returns the state of the pod group.
func (c *placementCycle) GetPodGroupSchedulingCycle() fwk.PodGroupCycleState { return c.group }

// nodes returns the nodes that PreFilter sees in a decision: those of the placement, if there is one.
func (p *Profile) nodes(d *decision) []fwk.NodeInfo {
	infos := &p.host.infos
	if d.state.placement == nil || d.state.placement.rows == nil {
		return infos.all
	}
	out := make([]fwk.NodeInfo, len(d.state.placement.rows))
	for i, n := range d.state.placement.rows {
		out[i] = infos.rows[n]
	}
	return out
}

// podGroupInfo is a native pod group with the pods that are to be placed.
type podGroupInfo struct {
	object *schedulingv1beta1.PodGroup
	pods   []*v1.Pod
}

var _ fwk.PodGroupInfo = (*podGroupInfo)(nil)

func newPodGroupInfo(gang *cluster.Gang, members []*cluster.Pod) (*podGroupInfo, error) {
	out := &podGroupInfo{object: podGroupOf(gang)}
	for _, m := range members {
		pod, err := objectOfPod(m)
		if err != nil {
			return nil, err
		}
		out.pods = append(out.pods, pod)
	}
	return out, nil
}

// GetUnscheduledPods returns the pods that are to be placed, in the order in which they are tried.
func (g *podGroupInfo) GetUnscheduledPods() []*v1.Pod { return g.pods }

// GetName returns the name of the group.
func (g *podGroupInfo) GetName() string { return g.object.Name }

// GetNamespace returns its namespace.
func (g *podGroupInfo) GetNamespace() string { return g.object.Namespace }

// GetType returns the type of keys of pod groups.
func (*podGroupInfo) GetType() fwk.EntityKeyType { return fwk.PodGroupKeyType }

// GetKey returns the key of the group.
func (g *podGroupInfo) GetKey() string {
	return fwk.PodGroupKey(g.object.Namespace, g.object.Name).String()
}

// GetPodGroup returns the object, with the fields that the scheduler reads.
func (g *podGroupInfo) GetPodGroup() *schedulingv1beta1.PodGroup { return g.object }

// GetCompositePodGroup is nil.
func (*podGroupInfo) GetCompositePodGroup() *schedulingv1alpha3.CompositePodGroup { return nil }

// GetChildren is nil.
func (*podGroupInfo) GetChildren() []fwk.PodGroupInfo { return nil }
