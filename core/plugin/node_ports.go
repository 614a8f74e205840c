// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// NodePorts keeps a pod off nodes where one of its host ports is taken (upstream: plugins/nodeports).
type NodePorts struct{}

// NodePortsName is its name in configurations.
const NodePortsName = "NodePorts"

// Name is NodePortsName.
func (NodePorts) Name() string { return NodePortsName }

// PrepareFilter has nothing to say about pods without host ports.
func (NodePorts) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) FilterPlan {
	if len(p.Spec.Ports) == 0 {
		return FilterPlan{}
	}
	return FilterPlan{Filter: portFilter{p.Spec.Ports}}
}

type portFilter struct{ want []cluster.HostPort }

const portTaken Code = 1

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

func (f portFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	if collide(f.want, v.Ports) {
		return portTaken
	}
	return Fit
}

func (f portFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	for n := lo; n < hi; n++ {
		if taken := s.Ports(n); len(taken) != 0 && out[n] == Fits && collide(f.want, taken) {
			out[n] = tag.With(portTaken)
		}
	}
}

func (portFilter) Reasons(Code) []string {
	return []string{"node(s) didn't have free ports for the requested pod ports"}
}

// Wakes on new nodes and on pods that leave a node and its port.
func (NodePorts) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: Pod, Action: Delete}, Alike: true, Hint: func(p *cluster.Pod, ch Change) Hint {
			if onNoNode(ch.OldPod) || len(ch.OldPod.Spec.Ports) == 0 {
				return SkipHint
			}
			if collide(p.Spec.Ports, ch.OldPod.Spec.Ports) {
				return QueueHint
			}
			return SkipHint
		}},
		{Event: Event{Resource: NodeObject, Action: Add}},
	}
}

// onNoNode tells whether a deleted pod had neither a node nor the promise of one, so that it frees nothing.
func onNoNode(p *cluster.Pod) bool { return p.NodeName == "" && p.Nominated == "" }
