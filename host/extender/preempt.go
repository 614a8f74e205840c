// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// podsOn returns the pods of a node; ok is false for a node that does not exist.
type podsOn = func(node string) (pods []record.PodRef, ok bool)

// Preempts reports whether an extender takes part in the choice of victims for p.
func (x *Extenders) Preempts(p *cluster.Pod) bool {
	return slices.ContainsFunc(x.clients, func(c *client) bool { return c.PreemptVerb != "" && c.takes(p) })
}

// Preempt lets the extenders that take part in the choice of victims reduce, and change, the candidates for p. The
// response of one of them is the request to the next. Victims must be pods of the node (upstream: preemption.go,
// callExtenders).
func (x *Extenders) Preempt(p *cluster.Pod, candidates []place.ForeignVictims,
	on podsOn) ([]place.ForeignVictims, error) {
	for _, c := range x.clients {
		if len(candidates) == 0 {
			break
		}
		if c.PreemptVerb == "" || !c.takes(p) {
			continue
		}
		answer, err := x.preempt(c, p, candidates, on)
		if err != nil {
			if c.Ignorable {
				x.ignored(Ignored{c.URLPrefix, c.PreemptVerb, p.Ref(), err})
				continue
			}
			return nil, err
		}
		candidates = nil
		for _, of := range answer {
			switch {
			case len(of.Pods) != 0:
				candidates = append(candidates, of)
			case !c.Ignorable:
				return nil, fmt.Errorf("expected at least one victim pod on node %q", of.Node)
			}
		}
	}
	return candidates, nil
}

// preempt calls one extender. Its choice is in the order of the nodes' names.
func (x *Extenders) preempt(c *client, p *cluster.Pod, candidates []place.ForeignVictims,
	on podsOn) ([]place.ForeignVictims, error) {
	pod, err := x.pod(p.Ref())
	if err != nil {
		return nil, err
	}
	question := &extenderv1.ExtenderPreemptionArgs{Pod: pod}
	if c.NodeCacheCapable {
		question.NodeNameToMetaVictims = metaVictims(candidates)
	} else if question.NodeNameToVictims, err = x.wholeVictims(candidates); err != nil {
		return nil, err
	}
	var answer extenderv1.ExtenderPreemptionResult
	if err := c.call(x.ctx, c.PreemptVerb, question, &answer); err != nil {
		return nil, err
	}
	var chosen []place.ForeignVictims
	for _, node := range slices.Sorted(maps.Keys(answer.NodeNameToMetaVictims)) {
		pods, ok := on(node)
		if !ok {
			return nil, fmt.Errorf("nodeinfo not found for node name %q", node)
		}
		of, err := c.victims(node, answer.NodeNameToMetaVictims[node], pods)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, of)
	}
	return chosen, nil
}

// victims returns the pods of a node that an extender identifies.
func (c *client) victims(node string, meant *extenderv1.MetaVictims,
	pods []record.PodRef) (place.ForeignVictims, error) {
	v := place.ForeignVictims{Node: node}
	if meant == nil {
		return v, nil
	}
	v.PDBViolations = meant.NumPDBViolations
	for _, m := range meant.Pods {
		uid := ""
		if m != nil {
			uid = m.UID
		}
		i := slices.IndexFunc(pods, func(ref record.PodRef) bool { return ref.UID == uid })
		if i < 0 {
			return v, fmt.Errorf("extender: %v claims to preempt pod (UID: %v) on node: %v, "+
				"but the pod is not found on that node", c.URLPrefix, uid, node)
		}
		v.Pods = append(v.Pods, pods[i])
	}
	return v, nil
}

func metaVictims(candidates []place.ForeignVictims) map[string]*extenderv1.MetaVictims {
	meta := make(map[string]*extenderv1.MetaVictims, len(candidates)) // node -> victims
	for _, of := range candidates {
		m := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}, NumPDBViolations: of.PDBViolations}
		for _, ref := range of.Pods {
			m.Pods = append(m.Pods, &extenderv1.MetaPod{UID: ref.UID})
		}
		meta[of.Node] = m
	}
	return meta
}

func (x *Extenders) wholeVictims(candidates []place.ForeignVictims) (map[string]*extenderv1.Victims, error) {
	whole := make(map[string]*extenderv1.Victims, len(candidates)) // node -> victims
	for _, of := range candidates {
		w := &extenderv1.Victims{Pods: []*v1.Pod{}, NumPDBViolations: of.PDBViolations}
		for _, ref := range of.Pods {
			pod, err := x.pod(ref)
			if err != nil {
				return nil, err
			}
			w.Pods = append(w.Pods, pod)
		}
		whole[of.Node] = w
	}
	return whole, nil
}
