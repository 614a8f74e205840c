// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Rank returns the total score of each node that fits a pod now, by a search that considers every node, whatever the
// profile's strategy, and calls no foreign code. A pod that holds capacity is ranked as if it did not. It is an error
// if the pod is not known, or if the search failed.
//
// No decision, draw or effect comes of it. The revision of the store increases if the pod holds capacity.
func (i Inspector) Rank(uid cluster.UID) (totals map[string]int64, err error) {
	s := i.view.Snapshot()
	p, _, _, placed := s.PodOn(uid)
	if !placed {
		p = i.view.Pending(uid)
	}
	if p == nil || i.view.Profile(p.Spec.SchedulerName) == nil {
		return nil, fmt.Errorf("pod %s is not known", uid)
	}
	trial, end := i.view.Trial()
	defer end()
	placer := i.view.Placer(p.Spec.SchedulerName)
	defer contain(func(cause any) {
		placer.Drop(p)
		totals, err = nil, fmt.Errorf("ranking the nodes for pod %s panicked: %v", p.Key(), cause)
	})
	if placed {
		trial.Evict(uid)
	}
	s = i.view.Snapshot()
	out := placer.Evaluate(s, p, i.view.Queue(), i.draw(string(uid)))
	if out.Err != nil {
		return nil, fmt.Errorf("ranking the nodes for pod %s: %w", p.Key(), out.Err)
	}
	totals = map[string]int64{}
	if out.Node == cluster.NoNode {
		return totals, nil
	}
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) == nil || out.Verdict(n) != plugin.Fits {
			continue
		}
		total := int64(0)
		for _, sc := range placer.Scores(out, n) {
			total += sc.Weighted
		}
		totals[s.NodeName(n)] = total
	}
	totals[s.NodeName(out.Node)] = out.Total // also if one node alone fits, which is not scored
	return totals, nil
}
