// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
)

// racks is a plugin for pod groups. It proposes the racks of nodes, by their label, and scores each as the label worth
// of its nodes says. What the first pod of a group has at the label generate, score or normalize is its answer instead.
type racks struct {
	name string
	log  *[]string
}

func (r *racks) Name() string { return r.name }

func (r *racks) note(format string, args ...any) {
	*r.log = append(*r.log, r.name+" "+fmt.Sprintf(format, args...))
}

// answer returns the status that the label of a point asks for.
func answer(point string, group fwk.PodGroupInfo) *fwk.Status {
	switch group.GetUnscheduledPods()[0].Labels[point] {
	case "reject":
		return fwk.NewStatus(fwk.Unschedulable, point+" says no")
	case "error":
		return fwk.AsStatus(errors.New(point + " is down"))
	case "panic":
		panic(point + " is broken")
	}
	return nil
}

// wrote is a value that a plugin writes into a state.
type wrote string

func (w wrote) Clone() fwk.StateData { return w }

func (r *racks) GeneratePlacements(_ context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo,
	parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	r.note("generate %s of %d pods on %d nodes", group.GetName(), len(group.GetUnscheduledPods()), len(parent.Nodes))
	if status := answer("generate", group); !status.IsSuccess() {
		return nil, status
	}
	state.Write("group", wrote(group.GetKey()))
	first := group.GetUnscheduledPods()[0]
	out := &fwk.GeneratePlacementsResult{}
	for _, node := range parent.Nodes {
		rack := node.Node().Labels["rack"]
		i := slices.IndexFunc(out.Placements, func(p *fwk.Placement) bool { return p.Name == rack })
		if i < 0 {
			i = len(out.Placements)
			out.Placements = append(out.Placements, &fwk.Placement{Name: rack})
		}
		out.Placements[i].Nodes = append(out.Placements[i].Nodes, node)
	}
	switch first.Labels["generate"] {
	case "none":
		return &fwk.GeneratePlacementsResult{}, nil
	case "nothing":
		return nil, nil
	case "missing-node":
		out.Placements[1].Nodes[0] = missingNode{out.Placements[1].Nodes[0], "nowhere"}
	case "copy":
		out.Placements[1].Nodes[0] = out.Placements[1].Nodes[0].Snapshot()
	}
	return out, nil
}

// missingNode is a NodeInfo of a node that does not exist.
type missingNode struct {
	fwk.NodeInfo
	name string
}

func (s missingNode) Node() *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}} }

// Filter accepts nodes. It notes what the states of the group and of the placement have.
func (r *racks) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	placement := state.GetPlacementCycleState()
	if placement == nil || !state.IsPodGroupSchedulingCycle() {
		return nil
	}
	key, err := placement.GetPodGroupSchedulingCycle().Read("group")
	if err != nil {
		return nil
	}
	earlier, err := placement.Read("pods")
	if err != nil {
		earlier = wrote("")
	}
	if !strings.HasSuffix(string(earlier.(wrote)), "+"+pod.Name) {
		placement.Write("pods", earlier.(wrote)+wrote("+"+pod.Name))
		r.note("filter %s of %s after %q", pod.Name, key, earlier)
	}
	return nil
}

func (r *racks) ScorePlacement(_ context.Context, state fwk.PlacementCycleState, group fwk.PodGroupInfo,
	of *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	pods, _ := state.Read("pods")
	r.note("score %s with %d of %d pods: %v", of.Name, len(of.ProposedAssignments), len(group.GetUnscheduledPods()), pods)
	if status := answer("score", group); !status.IsSuccess() {
		return 0, status
	}
	var worth int64
	_, err := fmt.Sscan(of.Nodes[0].Node().Labels["worth"], &worth)
	return worth, fwk.AsStatus(err)
}

func (r *racks) PlacementScoreExtensions() fwk.PlacementScoreExtensions {
	return normalizer{r}
}

type normalizer struct{ r *racks }

func (n normalizer) NormalizePlacementScore(_ context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo,
	scores []fwk.PlacementScore) *fwk.Status {
	key, _ := state.Read("group")
	n.r.note("normalize %d scores of %v", len(scores), key)
	for i := range scores {
		if group.GetUnscheduledPods()[0].Labels["normalize"] == "wrong" {
			scores[i].Score += 1000
		}
	}
	return answer("normalize", group)
}

// Reserve notes the placement in which a member got its node.
func (r *racks) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if placement := state.GetPlacementCycleState(); placement != nil {
		pods, _ := placement.Read("pods")
		r.note("reserve %s on %s: %v", pod.Name, node, pods)
	}
	return nil
}

func (r *racks) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

const racksProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: A}]}
    placementScore: {disabled: [{name: NodeResourcesFit}]}
    postFilter: {disabled: [{name: "*"}]}
`

// TestFrameworkPlacements plays testdata/framework-placements.txt: the best of the placements that a plugin proposes and
// scores, statuses, errors, panics and nodes that do not exist.
func TestFrameworkPlacements(t *testing.T) {
	playStories(t, "framework-placements.txt", racksProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, h fwk.Handle) fwk.Plugin { return &racks{name, log} })
	})
}
