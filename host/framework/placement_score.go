// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// proposed is a member with the node that a placement has for it.
type proposed struct {
	info  *PodInfo
	node  string
	state *CycleState
}

var _ fwk.ProposedAssignment = (*proposed)(nil)

// GetPod returns the member.
func (a *proposed) GetPod() *v1.Pod { return a.info.pod }

// GetPodInfo returns its PodInfo.
func (a *proposed) GetPodInfo() fwk.PodInfo { return a.info }

// GetNodeName returns the node.
func (a *proposed) GetNodeName() string { return a.node }

// GetCycleState returns the state of the decision that chose the node.
func (a *proposed) GetCycleState() fwk.CycleState { return a.state }

// Totals calls ScorePlacement of all plugins for each placement, then NormalizePlacementScore of each plugin, and sums
// the scores with their weights, in upstream's order and with upstream's errors (pkg/scheduler/framework/runtime,
// RunPlacementScorePlugins). NodeResourcesFit and PodGroupPodsCount score natively if the profile enables them.
func (c *candidateSearch) Totals(s cluster.Snapshot, tries []plugin.CandidatePlacement) ([]int64, error) {
	c.p.host.infos.follow(s)
	assignments := make([]*fwk.PodGroupAssignments, len(tries))
	lists := map[*hosted][]fwk.PlacementScore{} // plugin -> what it normalises
	for _, h := range c.p.placementScores {
		lists[h] = make([]fwk.PlacementScore, len(tries))
	}
	for i, try := range tries {
		assignments[i] = c.assigned(s, try)
		for _, h := range c.p.placementScores {
			score, status := c.score(h, c.cycles[try.Candidate], assignments[i])
			if !status.IsSuccess() {
				return nil, fmt.Errorf("running PlacementScore plugins: plugin %q failed with: %w", h.name,
					failure(status))
			}
			lists[h][i] = fwk.PlacementScore{Placement: assignments[i].Placement, Score: score}
		}
	}
	for _, h := range c.p.placementScores {
		if status := c.normalize(h, lists[h]); !status.IsSuccess() {
			return nil, fmt.Errorf("running NormalizePlacementScore on PlacementScore plugins: plugin %q failed "+
				"with: %w", h.name, failure(status))
		}
	}
	totals := c.native(s, assignments)
	for i := range totals {
		for _, h := range c.p.placementScores {
			score := lists[h][i].Score
			if score < fwk.MinScore || score > fwk.MaxScore {
				return nil, c.p.placementOutOfRange(h.name, score)
			}
			totals[i] += score * c.p.placementWeight(h.name)
		}
	}
	return totals, nil
}

// assigned returns a try in the form in which plugins see it.
func (c *candidateSearch) assigned(s cluster.Snapshot, try plugin.CandidatePlacement) *fwk.PodGroupAssignments {
	out := &fwk.PodGroupAssignments{Placement: c.placements[try.Candidate]}
	for i, n := range try.Nodes {
		if n == cluster.NoNode {
			continue
		}
		m, state := c.members[i], (*CycleState)(nil)
		if d := c.cycles[try.Candidate].decisions[m.UID]; d != nil {
			state = d.state
		} else { // no plugin decides about the member
			state = &CycleState{group: c.state, placement: c.cycles[try.Candidate]}
		}
		out.ProposedAssignments = append(out.ProposedAssignments, &proposed{newPodInfo(m, ""), s.NodeName(n), state})
	}
	return out
}

// score calls ScorePlacement.
func (c *candidateSearch) score(h *hosted, state *placementCycle, of *fwk.PodGroupAssignments) (score int64,
	status *fwk.Status) {
	status = h.call(config.PlacementScore, loan{rows: true}, func(ctx context.Context) (status *fwk.Status) {
		score, status = h.placementScore.ScorePlacement(ctx, state, c.group, of)
		return status
	})
	return score, status
}

// normalize calls NormalizePlacementScore, if the plugin has it.
func (c *candidateSearch) normalize(h *hosted, list []fwk.PlacementScore) *fwk.Status {
	return h.call(config.PlacementScore, loan{rows: true}, func(ctx context.Context) *fwk.Status {
		extensions := h.placementScore.PlacementScoreExtensions()
		if extensions == nil {
			return nil
		}
		return extensions.NormalizePlacementScore(ctx, c.state, c.group, list)
	})
}

// placementOutOfRange reports a normalised score of a plugin that is out of range.
func (p *Profile) placementOutOfRange(name string, score int64) error {
	err := fmt.Errorf("plugin %q returns an invalid score %v, it should in the range of [%v, %v] after normalizing",
		name, score, fwk.MinScore, fwk.MaxScore)
	p.host.report(Problem{name, config.PlacementScore, err, BadAnswer})
	return fmt.Errorf("applying score defaultWeights on PlacementScore plugins: %w", err)
}

// placementWeight returns the weight of a plugin at PlacementScore.
func (p *Profile) placementWeight(name string) int64 {
	return max(p.config.PlacementWeights[name], 1)
}

// native returns the weighted scores of native plugins.
func (c *candidateSearch) native(s cluster.Snapshot, assignments []*fwk.PodGroupAssignments) []int64 {
	totals := make([]int64, len(assignments))
	if c.p.config.Runs(config.PlacementScore, config.NodeResourcesFit) {
		weight := c.p.placementWeight(config.NodeResourcesFit)
		for i, of := range assignments {
			totals[i] += c.p.allocatedShare(of) * weight
		}
	}
	if !c.p.config.Runs(config.PlacementScore, config.PodGroupPodsCount) {
		return totals
	}
	scheduled, most := len(s.GangMembers(c.key)), 0
	for _, of := range assignments {
		most = max(most, scheduled+len(of.ProposedAssignments))
	}
	weight := c.p.placementWeight(config.PodGroupPodsCount)
	for i, of := range assignments {
		count := int64(scheduled + len(of.ProposedAssignments))
		totals[i] += count * fwk.MaxScore / int64(max(most, 1)) * weight
	}
	return totals
}

// allocatedShare returns the share of the placement's resources that is allocated with the members in place, from 0 to
// 100: the weighted mean over the resources that NodeResourcesFit scores (upstream: ScorePlacement in
// pkg/scheduler/framework/plugins/noderesources).
func (p *Profile) allocatedShare(of *fwk.PodGroupAssignments) int64 {
	var sum, weights int64
	for _, r := range p.config.Args.NodeResourcesFit.ScoringStrategy.Resources {
		name := v1.ResourceName(r.Name)
		var requested, allocatable int64
		for _, a := range of.ProposedAssignments {
			requested += podRequest(a.GetPodInfo().CalculateResource(), name)
		}
		for _, node := range of.Nodes {
			have := resourceAmount(node.GetAllocatable(), name)
			if have == 0 || requested == 0 && isScalar(name) {
				continue
			}
			allocatable += have
			if name == v1.ResourceCPU || name == v1.ResourceMemory {
				requested += resourceAmount(node.GetNonZeroRequested(), name)
			} else {
				requested += resourceAmount(node.GetRequested(), name)
			}
		}
		if allocatable == 0 {
			continue
		}
		sum += min(requested, allocatable) * fwk.MaxScore / allocatable * r.Weight
		weights += r.Weight
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// podRequest returns what a pod requests of a resource; of CPU and memory, at least upstream's assumption.
func podRequest(of fwk.PodResource, name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return of.Non0CPU
	case v1.ResourceMemory:
		return of.Non0Mem
	}
	return resourceAmount(of.Resource, name)
}

func resourceAmount(of fwk.Resource, name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return of.GetMilliCPU()
	case v1.ResourceMemory:
		return of.GetMemory()
	case v1.ResourceEphemeralStorage:
		return of.GetEphemeralStorage()
	}
	return of.GetScalarResources()[name]
}

// isScalar reports whether a resource is none of those that each node has.
func isScalar(name v1.ResourceName) bool {
	return name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage
}
