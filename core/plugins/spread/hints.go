// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Wakes on pods that count, and on nodes that have the keys.
func (pl *PodTopologySpread) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add | plugin.UpdatePodLabel | plugin.Delete},
			Hint: pl.podHint, Alike: true},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodLabel | plugin.UpdatePodToleration},
			Hint: pl.targetHint, Alike: true},
		{Event: plugin.Event{Resource: plugin.NodeObject,
			Action: plugin.Add | plugin.Delete | plugin.UpdateNodeLabel | plugin.UpdateNodeTaint},
			Hint: pl.nodeHint, Alike: true},
	}
}

// concerns reports whether a version of another pod could count for p: it has a node in p's namespace.
func concerns(p, other *cluster.Pod) bool {
	return other == nil || (other.NodeName != "" || other.Nominated != "") && other.Namespace == p.Namespace
}

// podHint wakes p when a pod comes or goes that a constraint matches, or when its labels change which constraints match
// it.
func (pl *PodTopologySpread) podHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	was, is := ch.OldPod, ch.NewPod
	if !concerns(p, was) || !concerns(p, is) {
		return plugin.SkipHint
	}
	plan := pl.plan(ch.State, p)
	if plan.hardErr != nil {
		return plugin.QueueHint // upstream wakes a pod when a hint fails
	}
	wake := false
	switch {
	case was != nil && is != nil:
		wake = relabelled(plan.hard, was, is)
	case is != nil:
		wake = slices.ContainsFunc(plan.hard, func(c spreadConstraint) bool { return matches(&c, is) })
	default:
		wake = slices.ContainsFunc(plan.hard, func(c spreadConstraint) bool { return matches(&c, was) })
	}
	if wake {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

// targetHint wakes p when its labels change which constraints match it, and when it tolerates more while a constraint
// looks at taints.
func (pl *PodTopologySpread) targetHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	plan := pl.plan(ch.State, p)
	if plan.hardErr != nil {
		return plugin.QueueHint // upstream wakes a pod when a hint fails
	}
	was, is := ch.OldPod, ch.NewPod
	tolerates := !equality.Semantic.DeepEqual(was.Spec.Tolerations, is.Spec.Tolerations) &&
		slices.ContainsFunc(plan.hard, func(c spreadConstraint) bool { return c.honorsTaints })
	if tolerates || relabelled(plan.hard, was, is) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

func matches(c *spreadConstraint, p *cluster.Pod) bool {
	return c.selector.Matches(labels.Set(p.Spec.Labels))
}

// relabelled reports whether the labels of a pod changed so that another constraint matches it, or one no longer does.
func relabelled(constraints []spreadConstraint, was, is *cluster.Pod) bool {
	return !maps.Equal(was.Spec.Labels, is.Spec.Labels) &&
		slices.ContainsFunc(constraints, func(c spreadConstraint) bool { return matches(&c, was) != matches(&c, is) })
}

// nodeHint wakes p when a node comes, goes, gains or loses a part in the constraints, or has one and changes its
// values or taints.
func (pl *PodTopologySpread) nodeHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	plan := pl.plan(ch.State, p)
	if plan.hardErr != nil {
		return plugin.QueueHint
	}
	keyed := func(n *cluster.Node) bool {
		return n != nil && !slices.ContainsFunc(plan.hard,
			func(c spreadConstraint) bool { _, ok := n.Labels[c.key]; return !ok })
	}
	was, is := keyed(ch.OldNode), keyed(ch.NewNode)
	if was != is {
		return plugin.QueueHint
	}
	if !is || ch.OldNode == nil || ch.NewNode == nil {
		return plugin.SkipHint
	}
	moved := slices.ContainsFunc(plan.hard,
		func(c spreadConstraint) bool { return ch.OldNode.Labels[c.key] != ch.NewNode.Labels[c.key] })
	if moved || !slices.EqualFunc(ch.OldNode.Taints, ch.NewNode.Taints, plugin.SameTaint) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

// Advise names the label that is missing, or the keys over which the pod's own constraints spread it.
func (pl *PodTopologySpread) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	constraints := p.Spec.Spread
	if len(constraints) == 0 {
		constraints = pl.defaults
	}
	var keys []string
	for i := range constraints {
		c := &constraints[i]
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		if _, ok := v.Node.Labels[c.TopologyKey]; !ok {
			r.Do = fmt.Sprintf("label %s with %s, over which the pod is to be spread", r.Node, c.TopologyKey)
			return
		}
		keys = append(keys, c.TopologyKey)
	}
	r.Do = fmt.Sprintf("raise maxSkew, or make room on nodes where %s has fewer of the pods than on %s",
		strings.Join(keys, " or "), r.Node)
}
