// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Each kind of change of a pod has its event; several come in upstream's order; none gives the general update.
func TestPodChanges(t *testing.T) {
	type edit func(before, after *cluster.Pod)
	held := func(before, after resource.Amounts) edit {
		return func(b, a *cluster.Pod) { b.Spec.Held, a.Spec.Held = before, after }
	}
	gpu := func(n int64) resource.Amounts {
		return resource.Amounts{Scalars: []resource.Scalar{{Name: "example.com/gpu", Value: n}}}
	}
	for name, c := range map[string]struct {
		edit edit
		want []string
	}{
		"nothing we read":         {func(_, _ *cluster.Pod) {}, []string{"TargetPodUpdate"}},
		"nothing, bound":          {func(b, a *cluster.Pod) { b.NodeName, a.NodeName = "n", "n" }, []string{"AssignedPodUpdate"}},
		"labels":                  {func(_, a *cluster.Pod) { a.Spec.Labels = map[string]string{"k": "v"} }, []string{"TargetPodUpdatePodLabel"}},
		"no labels, empty labels": {func(_, a *cluster.Pod) { a.Spec.Labels = map[string]string{} }, []string{"TargetPodUpdate"}},
		"less CPU":                {held(resource.Amounts{MilliCPU: 2}, resource.Amounts{MilliCPU: 1}), []string{"TargetPodUpdatePodScaleDown"}},
		"more CPU, less memory":   {held(resource.Amounts{MilliCPU: 1, Memory: 2}, resource.Amounts{MilliCPU: 2, Memory: 1}), []string{"TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"}},
		"less ephemeral storage":  {held(resource.Amounts{Ephemeral: 2}, resource.Amounts{Ephemeral: 1}), []string{"TargetPodUpdatePodScaleDown"}},
		"more CPU":                {held(resource.Amounts{MilliCPU: 1}, resource.Amounts{MilliCPU: 2}), []string{"TargetPodUpdatePodScaleUp"}},
		"fewer devices":           {held(gpu(2), gpu(1)), []string{"TargetPodUpdatePodScaleDown"}},
		"no device":               {held(gpu(0), resource.Amounts{}), []string{"TargetPodUpdatePodScaleDown"}},
		"more devices":            {held(gpu(1), gpu(2)), []string{"TargetPodUpdatePodScaleUp"}},
		"last gate gone":          {func(b, _ *cluster.Pod) { b.Spec.Gates = []string{"g"} }, []string{"TargetPodUpdatePodSchedulingGatesEliminated"}},
		"one gate gone":           {func(b, a *cluster.Pod) { b.Spec.Gates, a.Spec.Gates = []string{"g", "h"}, []string{"h"} }, []string{"TargetPodUpdate"}},
		"toleration":              {func(_, a *cluster.Pod) { a.Spec.Tolerations = make([]v1.Toleration, 1) }, []string{"TargetPodUpdatePodToleration"}},
		"claims":                  {func(_, a *cluster.Pod) { a.ClaimsHash = 1 }, []string{"TargetPodUpdatePodGeneratedResourceClaim"}},
		"bound by the update, all at once": {func(b, a *cluster.Pod) {
			a.NodeName, a.ClaimsHash, b.Spec.Gates = "n", 1, []string{"g"}
			b.Spec.Labels = map[string]string{"k": "v"}
			b.Spec.Held.Memory = 1
			a.Spec.Tolerations = make([]v1.Toleration, 1)
		}, []string{
			"AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown", "AssignedPodUpdatePodSchedulingGatesEliminated",
			"AssignedPodUpdatePodToleration", "AssignedPodUpdatePodGeneratedResourceClaim",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &cluster.Pod{Spec: &cluster.PodSpec{}}, &cluster.Pod{Spec: &cluster.PodSpec{}}
			c.edit(before, after)
			if got := eventLabels(PodChanges(before, after)); !slices.Equal(got, c.want) {
				t.Fatalf("PodChanges = %v, want %v", got, c.want)
			}
		})
	}
}

// Each kind of change of a node has its event; an update that changes nothing we read has none.
func TestNodeChanges(t *testing.T) {
	taint := []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		edit func(before, after *cluster.Node)
		want []string
	}{
		"nothing":     {func(_, _ *cluster.Node) {}, nil},
		"cordoned":    {func(_, a *cluster.Node) { a.Unschedulable = true }, nil},
		"uncordoned":  {func(b, _ *cluster.Node) { b.Unschedulable = true }, []string{"NodeUpdateNodeTaint"}},
		"allocatable": {func(_, a *cluster.Node) { a.Allocatable.Pods = 1 }, []string{"NodeUpdateNodeAllocatable"}},
		"labels":      {func(_, a *cluster.Node) { a.Labels = map[string]string{"k": "v"} }, []string{"NodeUpdateNodeLabel"}},
		"taints":      {func(b, _ *cluster.Node) { b.Taints = taint }, []string{"NodeUpdateNodeTaint"}},
		"same taints": {func(b, a *cluster.Node) { b.Taints, a.Taints = taint, slices.Clone(taint) }, nil},
		"conditions":  {func(_, a *cluster.Node) { a.ConditionsHash = 1 }, []string{"NodeUpdateNodeCondition"}},
		"annotations": {func(_, a *cluster.Node) { a.AnnotationsHash = 1 }, []string{"NodeUpdateNodeAnnotation"}},
		"features":    {func(_, a *cluster.Node) { a.Features = []string{"F"} }, []string{"NodeUpdateNodeDeclaredFeature"}},
		"images":      {func(_, a *cluster.Node) { a.Images = []cluster.Image{{Size: 1}} }, nil},
		"uncordoned, and a taint gone with it": {func(b, _ *cluster.Node) { b.Unschedulable, b.Taints = true, taint },
			[]string{"NodeUpdateNodeTaint", "NodeUpdateNodeTaint"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &cluster.Node{}, &cluster.Node{}
			c.edit(before, after)
			if got := eventLabels(NodeChanges(before, after)); !slices.Equal(got, c.want) {
				t.Fatalf("NodeChanges = %v, want %v", got, c.want)
			}
		})
	}
}

func eventLabels(events []Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.String())
	}
	return out
}
