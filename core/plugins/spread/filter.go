// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Matters reports whether a constraint is about other.
func (f *spreadFilter) Matters(other *cluster.Pod) bool {
	return other.Namespace == f.namespace && slices.ContainsFunc(f.plan.hard, func(c spreadConstraint) bool {
		return c.selector.Matches(labels.Set(other.Spec.Labels))
	})
}

// spreadFilter holds the constraints that must hold: on the value of the node, pods that count, plus the pod itself
// if it counts, may be at most maxSkew more than on the value that has the fewest. With fewer values than
// minDomains the fewest is 0.
type spreadFilter struct {
	plan      *spreadPlan
	namespace string
	domains   []domains // by hard constraint
}

const (
	spreadSkewed plugin.Code = 1
	spreadNoKey  plugin.Code = 2
)

func newSpreadFilter(s cluster.Snapshot, plan *spreadPlan, namespace string) *spreadFilter {
	f := &spreadFilter{plan: plan, namespace: namespace, domains: make([]domains, len(plan.hard))}
	nodes := nodesWithKeys(s, plan, plan.hard)
	for i := range plan.hard {
		f.domains[i] = nodes.domains(s, &plan.hard[i])
	}
	return f
}

// most is how many pods a value may have for the pod to fit.
func (f *spreadFilter) most(i int) int64 {
	c, d := &f.plan.hard[i], &f.domains[i]
	fewest := int64(d.min())
	if d.number < int(c.minDomains) {
		fewest = 0
	}
	most := int64(c.maxSkew) + fewest - c.self
	return most
}

func (f *spreadFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	for i := range f.plan.hard {
		value, ok := v.Node.Labels[f.plan.hard[i].key]
		if !ok {
			return f.noKey()
		}
		var pods int64
		if id := f.domains[i].topology.ID(value); id != cluster.NoValue {
			pods = int64(f.domains[i].pods[id])
		}
		if pods > f.most(i) {
			return spreadSkewed
		}
	}
	return plugin.Fit
}

func (f *spreadFilter) noKey() plugin.Code {
	return spreadNoKey | plugin.Unresolvable
}

func (f *spreadFilter) Column(_ cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	noKey, skewed := tag.With(f.noKey()), tag.With(spreadSkewed)
	out = out[lo:hi]
	for i := range f.domains {
		d := &f.domains[i]
		most, column := f.most(i), d.topology.Column()[lo:hi][:len(out)]
		for n, v := range out {
			if v != plugin.Fits {
				continue
			}
			switch id := column[n]; {
			case id == cluster.NoValue:
				out[n] = noKey
			case int64(d.pods[id]) > most:
				out[n] = skewed
			}
		}
	}
}

func (*spreadFilter) Reasons(c plugin.Code) []string {
	if c&spreadNoKey != 0 {
		return []string{"node(s) didn't match pod topology spread constraints (missing required label)"}
	}
	return []string{"node(s) didn't match pod topology spread constraints"}
}

func (f *spreadFilter) AddPod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(other, v.Node, 1)
}

func (f *spreadFilter) RemovePod(_ cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	f.suppose(other, v.Node, -1)
}

// suppose counts a pod more or less. Upstream looks at neither whether it is being deleted nor whether the selector
// matches everything here, and so do we.
func (f *spreadFilter) suppose(other *cluster.Pod, node *cluster.Node, delta int32) {
	if other.Namespace != f.namespace || node == nil {
		return
	}
	for i := range f.plan.hard {
		if _, ok := node.Labels[f.plan.hard[i].key]; !ok {
			return
		}
	}
	for i := range f.plan.hard {
		c, d := &f.plan.hard[i], &f.domains[i]
		if id := d.topology.ID(node.Labels[c.key]); id != cluster.NoValue &&
			c.selector.Matches(labels.Set(other.Spec.Labels)) && f.plan.includes(c, node) {
			d.add(id, delta)
		}
	}
}
