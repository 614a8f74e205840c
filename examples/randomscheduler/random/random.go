// SPDX-License-Identifier: Apache-2.0

// Package random owns an example of a plugin for the framework of kube-scheduler, which sends each pod to a node that
// is drawn among those that fit. It imports nothing of kumiki, so one source runs in kube-scheduler and in kumiki.
package random

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the name of the plugin in configuration files.
const Name = "RandomNode"

// Args are the arguments of the plugin in pluginConfig.
type Args struct {
	// Seed makes the draws repeatable.
	Seed uint64 `json:"seed"`
}

// Plugin draws a node in PreScore and prefers it in Score.
type Plugin struct {
	mu       sync.Mutex // guards draw and reserved
	draw     *rand.Rand
	reserved map[string]int // node -> pods with a reservation
}

var (
	_ fwk.PreScorePlugin = (*Plugin)(nil)
	_ fwk.ScorePlugin    = (*Plugin)(nil)
	_ fwk.ReservePlugin  = (*Plugin)(nil)
	_ fwk.PostBindPlugin = (*Plugin)(nil)
)

// New makes the plugin.
func New(_ context.Context, args runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	var a Args
	if raw, is := args.(*runtime.Unknown); is {
		if err := json.Unmarshal(raw.Raw, &a); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", Name, err)
		}
	}
	return &Plugin{draw: rand.New(rand.NewPCG(a.Seed, 0)), reserved: map[string]int{}}, nil
}

// Name returns Name.
func (*Plugin) Name() string { return Name }

// choice is the node that was drawn for a pod.
type choice struct{ node string }

// Clone returns the choice, which does not change.
func (c *choice) Clone() fwk.StateData { return c }

// PreScore sees all nodes that fit, and draws one of them.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	state.Write(Name, &choice{nodes[p.draw.IntN(len(nodes))].Node().Name})
	return nil
}

// Score gives the node that was drawn the highest score, and all others 0.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(Name)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading the draw: %w", err))
	}
	if data.(*choice).node == node.Node().Name {
		return fwk.MaxScore, nil
	}
	return 0, nil
}

// ScoreExtensions is nil: scores are in range.
func (*Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Reserve counts the pod on its node.
func (p *Plugin) Reserve(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) *fwk.Status {
	p.count(node, 1)
	return nil
}

// Unreserve takes the pod off the count.
func (p *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) {
	p.count(node, -1)
}

func (p *Plugin) count(node string, pods int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved[node] += pods
}

// Reserved returns how many pods have had a reservation on a node.
func (p *Plugin) Reserved(node string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserved[node]
}

// PostBind logs where the pod went.
func (p *Plugin) PostBind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, node string) {
	klog.FromContext(ctx).Info("Bound", "plugin", Name, "pod", klog.KObj(pod), "node", node, "pods", p.Reserved(node))
}
