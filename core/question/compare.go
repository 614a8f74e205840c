// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// CompareBind compares a node that another scheduler chose for a pod of one of the profiles with the node that would be
// chosen now. A pod that holds capacity is judged as if it did not. An empty node asks only which nodes fit. ok is
// false for a pod that is not known.
//
// No decision, draw or effect comes of it. The revision of the store increases if the pod holds capacity.
func (i Inspector) CompareBind(uid cluster.UID, node string) (j record.Judgement, ok bool) {
	s := i.view.Snapshot()
	p, _, _, placed := s.PodOn(uid)
	if !placed {
		p = i.view.Pending(uid)
	}
	if p == nil || i.view.Profile(p.Spec.SchedulerName) == nil {
		return record.Judgement{}, false
	}
	j = record.Judgement{
		At: i.view.Now(), Revision: s.Revision(), Pod: p.Ref(), Match: record.Unjudged, Nodes: s.Nodes(),
	}
	if node != "" {
		j.Theirs = &record.Candidate{Node: node}
	}
	trial, end := i.view.Trial()
	defer end()
	defer contain(func(cause any) {
		i.view.Placer(p.Spec.SchedulerName).Drop(p)
		j.Match, j.Message = record.Unjudged, fmt.Sprintf("judging the pod panicked: %v", cause)
	})
	if placed {
		trial.Evict(uid)
	}
	i.judge(&j, p, node)
	return j, true
}

// contain must be deferred. It calls handle with the cause of a panic, except of a broken invariant, which goes on.
func contain(handle func(cause any)) {
	cause := recover()
	if cause == nil {
		return
	}
	if broken, is := cause.(cluster.Broken); is {
		panic(broken)
	}
	handle(cause)
}

func (i Inspector) judge(j *record.Judgement, p *cluster.Pod, node string) {
	s, placer := i.view.Snapshot(), i.view.Placer(p.Spec.SchedulerName)
	out := placer.Evaluate(s, p, i.view.Queue(), i.draw(string(p.UID)))
	if out.Err != nil {
		j.Message = out.Err.Error()
		return
	}
	j.Feasible, j.Tied = out.Feasible, out.Tied
	if out.Node == cluster.NoNode {
		j.Message = placer.Why(s, out).Message
	} else {
		j.Ours = &record.Candidate{Node: s.NodeName(out.Node), Total: out.Total, Scores: placer.Scores(out, out.Node)}
	}
	if node == "" {
		return
	}
	n, known := s.Find(node)
	if !known || s.Node(n) == nil {
		j.Match, j.Reasons = record.Rejected, []string{"the node is not known"}
		return
	}
	if j.Plugin, j.Reasons = placer.WhyNot(s, out, n); len(j.Reasons) > 0 {
		j.Match = record.Rejected
		return
	}
	compare(j, out, n, placer.Scores(out, n))
	if j.Match == record.Worse && node == p.Nominated {
		j.Match = record.Nominated
	}
}

// compare sets how node n, which fits, compares with the node that the search chose.
func compare(j *record.Judgement, out place.Outcome, n cluster.NodeIdx, scores []record.PluginScore) {
	if n == out.Node {
		j.Match, j.Theirs.Total, j.Theirs.Scores = record.SameNode, out.Total, scores
		return
	}
	j.Theirs.Scores = scores
	for _, sc := range scores {
		j.Theirs.Total += sc.Weighted
	}
	if j.Theirs.Total == out.Total {
		j.Match = record.Tied
		return
	}
	j.Match, j.Regret = record.Worse, out.Total-j.Theirs.Total
	var most int64
	for k, sc := range j.Ours.Scores {
		if by := sc.Weighted - scores[k].Weighted; by > most {
			j.Cause, most = sc.Plugin, by
		}
	}
}
