// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Name is the name of the plugin in configuration files.
const Name = "HardwareGeneration"

// Args are the arguments of the plugin in pluginConfig.
type Args struct {
	// NodeLabel is the label with the generation of a node, a whole number. A node without it has generation 0.
	NodeLabel string `json:"nodeLabel"`
	// PodLabel is the label with the least generation that a pod needs.
	PodLabel string `json:"podLabel"`
}

// Register returns how the plugin is made, for command.WithPlugin.
func Register() plugin.Registration {
	defaults := func() Args {
		return Args{NodeLabel: "example.com/hardware-generation", PodLabel: "example.com/least-generation"}
	}
	return plugin.WithArgs(Name, defaults, New)
}

// HardwareGeneration keeps pods off hardware that is too old for them, and prefers the oldest hardware that is new
// enough, so that new hardware stays free for pods that need it.
type HardwareGeneration struct{ args Args }

// New makes the plugin.
func New(a Args) (HardwareGeneration, error) {
	if a.NodeLabel == "" || a.PodLabel == "" {
		return HardwareGeneration{}, errors.New("nodeLabel and podLabel must not be empty")
	}
	return HardwareGeneration{a}, nil
}

// Name returns the name in configuration files.
func (HardwareGeneration) Name() string { return Name }

// PrepareFilter reads the label of the pod once. It returns no filter for a pod without the label.
func (g HardwareGeneration) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	text, labelled := p.Spec.Labels[g.args.PodLabel]
	if !labelled {
		return plugin.FilterPlan{}
	}
	least, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return plugin.FilterPlan{Reject: fmt.Sprintf("label %s is no whole number: %q", g.args.PodLabel, text)}
	}
	return plugin.FilterPlan{Filter: plugin.FilterByNode(leastGeneration{g, least})}
}

// leastGeneration is the filter for one pod.
type leastGeneration struct {
	HardwareGeneration
	least int64
}

// tooOld is the code of a rejection. It is unresolvable: the eviction of pods does not make a node newer.
const tooOld = 1 | plugin.Unresolvable

// Plain rejects a node whose generation is below the least.
func (f leastGeneration) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if f.generation(v.Node) < f.least {
		return tooOld
	}
	return plugin.Fit
}

// Reasons returns the text for the status of a pod.
func (f leastGeneration) Reasons(plugin.Code) []string {
	return []string{fmt.Sprintf("node(s) had hardware older than generation %d", f.least)}
}

// PrepareScore applies to every pod.
func (g HardwareGeneration) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore {
	return plugin.ScoreByNode(oldestFirst{g})
}

// Normal gives the newest of the nodes that fit 0, and generation 0 plugin.MaxScore.
func (HardwareGeneration) Normal() plugin.Normal { return plugin.ReversedMax }

// oldestFirst is the score for one pod.
type oldestFirst struct{ HardwareGeneration }

// Plain returns the generation of a node.
func (f oldestFirst) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	return f.generation(v.Node)
}

// generation returns the generation of a node, 0 if it has none.
func (g HardwareGeneration) generation(n *cluster.Node) int64 {
	generation, err := strconv.ParseInt(n.Labels[g.args.NodeLabel], 10, 64)
	if err != nil || generation < 0 {
		return 0
	}
	return generation
}

// Wakes returns the events that can make a rejected pod fit: a node that is new or has other labels, and a new label
// of the pod.
func (HardwareGeneration) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel}},
		{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.UpdatePodLabel}},
	}
}
