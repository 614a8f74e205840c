// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise names the port.
func (NodePorts) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for _, want := range p.Spec.Ports {
		if slices.ContainsFunc(v.Ports, want.Conflicts) {
			r.Do = fmt.Sprintf("free host port %d/%s on %s", want.Port, want.Protocol, r.Node)
			return
		}
	}
}

// NodePorts keeps a pod off nodes where one of its host ports is taken (upstream: plugins/nodeports).
type NodePorts struct{}

// NodePortsName is its name in configurations.
const NodePortsName = "NodePorts"

// Name is NodePortsName.
func (NodePorts) Name() string { return NodePortsName }

// Reads declares the ports of the pods of the node.
func (NodePorts) Reads() plugin.Reads { return plugin.ReadsPods }

// PrepareFilter has nothing to say about pods without host ports.
func (NodePorts) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if len(p.Spec.Ports) == 0 {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: portFilter{p.Spec.Ports}}
}

type portFilter struct{ want []cluster.HostPort }

const portTaken plugin.Code = 1

func collide(want, taken []cluster.HostPort) bool {
	for _, t := range taken {
		for _, w := range want {
			if portsConflict(w, t) {
				return true
			}
		}
	}
	return false
}

func portsConflict(a, b cluster.HostPort) bool {
	return a.Conflicts(b)
}

func (f portFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if collide(f.want, v.Ports) {
		return portTaken
	}
	return plugin.Fit
}

func (f portFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if taken := s.Ports(n); len(taken) != 0 && out[n] == plugin.Fits && collide(f.want, taken) {
			out[n] = tag.With(portTaken)
		}
	}
}

func (portFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) didn't have free ports for the requested pod ports"}
}

// Wakes on new nodes and on pods that leave a node and its port.
func (NodePorts) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, Alike: true,
			Hint: func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
				if plugin.FreesNothing(ch.OldPod) || len(ch.OldPod.Spec.Ports) == 0 {
					return plugin.SkipHint
				}
				if collide(p.Spec.Ports, ch.OldPod.Spec.Ports) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}},
	}
}

// Matters reports whether other takes one of the ports.
func (f portFilter) Matters(other *cluster.Pod) bool { return collide(f.want, other.Spec.Ports) }
