// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Adviser is a filter that can say what would make a node it rejects acceptable.
type Adviser interface {
	Filter
	// Advise fills in the remedy for p on the node of v, which the filter rejects. Plugin and Node are set already.
	Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy)
}

// ResourceScorer is a scorer that ranks nodes by what is requested of them.
type ResourceScorer interface {
	Scorer
	// Reads lists the resources it weighs, and tells whether it counts requests with defaults for silent containers
	// rather than real ones.
	Reads() (names []v1.ResourceName, withDefaults bool)
}

// Advise finds the resource of which the node is shortest, relative to what is asked.
func (*NodeResourcesFit) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	worst, request := -1.0, &p.Spec.Request
	weigh := func(name v1.ResourceName, need int64) {
		free := resource.Sub(v.Allocatable(name), v.Requested(name))
		short := resource.Sub(need, free)
		if need == resource.Overflowed {
			short = math.MaxInt64
		}
		if share := float64(short) / float64(max(need, 1)); need > 0 && short > 0 && share > worst {
			worst = share
			r.Resource, r.Need, r.Free, r.Short = string(name), need, free, short
		}
	}
	weigh(v1.ResourcePods, 1)
	weigh(v1.ResourceCPU, request.MilliCPU)
	weigh(v1.ResourceMemory, request.Memory)
	weigh(v1.ResourceEphemeralStorage, request.Ephemeral)
	for _, sc := range request.Scalars {
		weigh(sc.Name, sc.Value)
	}
	if r.Need > v.Allocatable(v1.ResourceName(r.Resource)) {
		r.Do = fmt.Sprintf("ask for less %s, or add a node with more: %s, the nearest, is too small even when empty", r.Resource, r.Node)
		return
	}
	r.Do = fmt.Sprintf("free %s on %s", r.Resource, r.Node)
}

// Advise names the taint.
func (TaintToleration) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for i := range v.Node.Taints {
		t := &v.Node.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule && !tolerated(p.Spec.Tolerations, t) {
			r.Do = fmt.Sprintf("tolerate the taint %s, or remove it from %s", t.ToString(), r.Node)
			return
		}
	}
}

// Advise says to uncordon.
func (NodeUnschedulable) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "uncordon " + r.Node
}

// Advise names the port.
func (NodePorts) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for _, want := range p.Spec.Ports {
		if slices.ContainsFunc(v.Ports, want.Conflicts) {
			r.Do = fmt.Sprintf("free host port %d/%s on %s", want.Port, want.Protocol, r.Node)
			return
		}
	}
}

// Advise says whose selector to satisfy.
func (*NodeAffinity) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "label " + r.Node + " to match the pod's node selector and affinity"
}

// Advise says that the pod insists on one node.
func (NodeName) Advise(_ *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	r.Do = fmt.Sprintf("the pod insists on node %q", p.Spec.NodeName)
}

// Reads lists what the strategy weighs.
func (pl *NodeResourcesFit) Reads() ([]v1.ResourceName, bool) { return pl.scorer.reads() }

// Reads lists what is balanced.
func (pl *NodeResourcesBalancedAllocation) Reads() ([]v1.ResourceName, bool) {
	return pl.scorer.reads()
}

func (sc *allocationScorer) reads() (names []v1.ResourceName, withDefaults bool) {
	for _, r := range sc.resources {
		names = append(names, r.Name)
	}
	return names, !sc.real
}
