// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Subject is a scheduler that can be asked about scenarios.
type Subject interface {
	// Load takes the cluster and the profile of a scenario. An error means that
	// the subject refuses the profile or an object.
	Load(s *scenario.Scenario) (Cluster, error)
}

// Cluster answers for one loaded scenario.
type Cluster interface {
	// Decide answers for one pod and leaves the cluster as it was.
	Decide(pod *v1.Pod) *outcome.Outcome
	// SetNode adds or updates a node; DeleteNode removes it; Bind adds a bound pod.
	SetNode(n *v1.Node)
	DeleteNode(name string)
	Bind(p *v1.Pod)
	// SetObject adds or updates another object; DeleteObject removes one.
	SetObject(o scenario.APIObject)
	DeleteObject(ref scenario.ObjectRef)
	// SetNominated replaces the nominated pods.
	SetNominated(pods []*v1.Pod)
	Close()
}

// Compare returns the first difference between upstream's answer and ours, as
// text, or "" when they agree. Fields are compared in the order in which a cycle
// makes them, so the text names the cause and not a consequence.
func Compare(up, our *outcome.Outcome) string {
	if d := verdictPointer("PreEnqueue", up.Gate, our.Gate); d != "" {
		return d
	}
	if d := verdictPointer("PreFilter", up.PreFilter, our.PreFilter); d != "" {
		return fmt.Sprintf("%s (message: upstream %q, kumiki %q)", d, up.Message, our.Message)
	}
	if !slices.Equal(up.Names, our.Names) || len(up.Nodes) != len(our.Nodes) {
		return fmt.Sprintf("upstream looks at %d nodes of %d, kumiki at %d of %d", len(up.Nodes), len(up.Names), len(our.Nodes), len(our.Names))
	}
	for i := range up.Nodes {
		if d := verdict(&up.Nodes[i], &our.Nodes[i]); d != "" {
			return fmt.Sprintf("node %s: %s", up.Names[i], d)
		}
	}
	if !slices.Equal(up.Feasible, our.Feasible) {
		return fmt.Sprintf("feasible nodes: upstream %v, kumiki %v", up.Feasible, our.Feasible)
	}
	if !slices.Equal(up.Rejectors, our.Rejectors) {
		return fmt.Sprintf("rejecting plugins: upstream %v, kumiki %v", up.Rejectors, our.Rejectors)
	}
	if up.Message != our.Message && !slices.Contains(up.Failures, our.Message) {
		return fmt.Sprintf("message: upstream %q, kumiki %q", up.Message, our.Message)
	}
	return scores(up, our)
}

func verdictPointer(what string, up, our *outcome.Verdict) string {
	if up == nil && our == nil {
		return ""
	}
	if up == nil || our == nil {
		return fmt.Sprintf("%s: upstream %s, kumiki %s", what, text(up), text(our))
	}
	if d := verdict(up, our); d != "" {
		return what + ": " + d
	}
	return ""
}

func verdict(up, our *outcome.Verdict) string {
	if up.Code == our.Code && up.Plugin == our.Plugin && slices.Equal(up.Reasons, our.Reasons) {
		return ""
	}
	return fmt.Sprintf("upstream %s, kumiki %s", text(up), text(our))
}

func text(v *outcome.Verdict) string {
	if v == nil {
		return "passes"
	}
	if v.Code == outcome.Feasible {
		return "feasible"
	}
	return fmt.Sprintf("%s by %q %q", v.Code, v.Plugin, v.Reasons)
}

func scores(upAll, ourAll *outcome.Outcome) string {
	up, our := WithoutIdle(upAll), WithoutIdle(ourAll)
	for i := range up.Scores {
		u := &up.Scores[i]
		if i >= len(our.Scores) || our.Scores[i].Plugin != u.Plugin {
			return fmt.Sprintf("scoring plugins: upstream %v, kumiki %v", plugins(up), plugins(our))
		}
		o := &our.Scores[i]
		for n, node := range up.Feasible {
			if u.Raw[n] != o.Raw[n] {
				return fmt.Sprintf("raw score of %s on %s: upstream %d, kumiki %d", u.Plugin, up.Names[node], u.Raw[n], o.Raw[n])
			}
		}
		for n, node := range up.Feasible {
			if u.Weighted[n] != o.Weighted[n] {
				return fmt.Sprintf("weighted score of %s on %s (raw %d): upstream %d, kumiki %d",
					u.Plugin, up.Names[node], u.Raw[n], u.Weighted[n], o.Weighted[n])
			}
		}
	}
	if len(our.Scores) > len(up.Scores) {
		return fmt.Sprintf("scoring plugins: upstream %v, kumiki %v", plugins(up), plugins(our))
	}
	if !slices.Equal(up.Total, our.Total) {
		return fmt.Sprintf("totals: upstream %v, kumiki %v", up.Total, our.Total)
	}
	if !slices.Equal(up.Best, our.Best) {
		return fmt.Sprintf("best nodes: upstream %v, kumiki %v", up.Best, our.Best)
	}
	return ""
}

// WithoutIdle leaves the scores of DynamicResources and VolumeBinding out that say nothing, see Framing.
func WithoutIdle(o *outcome.Outcome) *outcome.Outcome {
	idle := func(s outcome.Scores) bool {
		return (s.Plugin == "DynamicResources" || s.Plugin == "VolumeBinding") &&
			!slices.ContainsFunc(s.Raw, func(n int64) bool { return n != 0 })
	}
	if !slices.ContainsFunc(o.Scores, idle) {
		return o
	}
	out := *o
	out.Scores = slices.DeleteFunc(slices.Clone(o.Scores), idle)
	return &out
}

func plugins(o *outcome.Outcome) []string {
	var out []string
	for _, s := range o.Scores {
		out = append(out, s.Plugin)
	}
	return out
}
