// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Victims are the pods of a node that would have to go for another pod.
type Victims struct {
	Pods []record.PodRef
	// PDBViolations counts those of them whose disruption budgets do not allow it.
	PDBViolations int64
}

// PodsOn lists the pods of a node; ok is false for a node that does not exist.
type PodsOn func(node string) (pods []record.PodRef, ok bool)

// Preempt lets the extenders that have a say in it reduce, and change, the candidates for making room for p: node ->
// victims, at least one. What one of them answers is what the next is asked about. Victims must be pods of the node
// (upstream: preemption.go, callExtenders).
func (x *Extenders) Preempt(p *cluster.Pod, candidates map[string]Victims, on PodsOn) (map[string]Victims, error) {
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
		for _, node := range slices.Sorted(maps.Keys(answer)) {
			switch {
			case len(answer[node].Pods) != 0:
			case c.Ignorable:
				delete(answer, node)
			default:
				return nil, fmt.Errorf("expected at least one victim pod on node %q", node)
			}
		}
		candidates = answer
	}
	return candidates, nil
}

func (x *Extenders) preempt(c *client, p *cluster.Pod, candidates map[string]Victims, on PodsOn) (map[string]Victims, error) {
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
	chosen := map[string]Victims{}
	for _, node := range slices.Sorted(maps.Keys(answer.NodeNameToMetaVictims)) {
		pods, ok := on(node)
		if !ok {
			return nil, fmt.Errorf("nodeinfo not found for node name %q", node)
		}
		chosen[node], err = c.victims(node, answer.NodeNameToMetaVictims[node], pods)
		if err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// victims finds the pods of a node that an extender means.
func (c *client) victims(node string, meant *extenderv1.MetaVictims, pods []record.PodRef) (Victims, error) {
	if meant == nil {
		return Victims{}, nil
	}
	v := Victims{PDBViolations: meant.NumPDBViolations}
	for _, m := range meant.Pods {
		uid := ""
		if m != nil {
			uid = m.UID
		}
		i := slices.IndexFunc(pods, func(ref record.PodRef) bool { return ref.UID == uid })
		if i < 0 {
			return Victims{}, fmt.Errorf("extender: %v claims to preempt pod (UID: %v) on node: %v, but the pod is not found on that node", c.URLPrefix, uid, node)
		}
		v.Pods = append(v.Pods, pods[i])
	}
	return v, nil
}

func metaVictims(candidates map[string]Victims) map[string]*extenderv1.MetaVictims {
	meta := make(map[string]*extenderv1.MetaVictims, len(candidates))
	for node, victims := range candidates { // order: fills a map, key by key
		m := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}, NumPDBViolations: victims.PDBViolations}
		for _, ref := range victims.Pods {
			m.Pods = append(m.Pods, &extenderv1.MetaPod{UID: ref.UID})
		}
		meta[node] = m
	}
	return meta
}

func (x *Extenders) wholeVictims(candidates map[string]Victims) (map[string]*extenderv1.Victims, error) {
	whole := make(map[string]*extenderv1.Victims, len(candidates))
	for _, node := range slices.Sorted(maps.Keys(candidates)) {
		w := &extenderv1.Victims{Pods: []*v1.Pod{}, NumPDBViolations: candidates[node].PDBViolations}
		for _, ref := range candidates[node].Pods {
			pod, err := x.pod(ref)
			if err != nil {
				return nil, err
			}
			w.Pods = append(w.Pods, pod)
		}
		whole[node] = w
	}
	return whole, nil
}
