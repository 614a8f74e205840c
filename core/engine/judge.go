// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"hash/fnv"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Judge compares a node that somebody else chose for a pod of our profiles with what we would choose now. A pod that holds
// room already is judged as if it did not. An empty node asks only what fits. ok is false for a pod that is not known.
//
// Asking changes nothing: no decision, no draw, no effect comes of it. The revision of the store goes on when the pod
// holds room.
func (e *Engine) Judge(uid cluster.UID, node string) (j record.Judgement, ok bool) {
	s := e.store.Snapshot()
	p, _, _, placed := s.PodOn(uid)
	if !placed {
		p = e.pending[uid]
	}
	if p == nil {
		return record.Judgement{}, false
	}
	prof := e.profiles[p.Spec.SchedulerName]
	if prof == nil {
		return record.Judgement{}, false
	}
	j = record.Judgement{At: e.now, Revision: s.Revision(), Pod: p.Ref(), Match: record.Unjudged, Nodes: s.Nodes()}
	if node != "" {
		j.Theirs = &record.Candidate{Node: node}
	}
	e.store.Begin()
	defer e.store.Abort()
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if broken, is := r.(cluster.Broken); is {
			panic(broken)
		}
		prof.placer.Drop(p)
		j.Match, j.Message = record.Unjudged, fmt.Sprintf("judging the pod panicked: %v", r)
	}()
	if placed {
		e.store.DeletePod(uid)
	}
	e.judge(&j, prof, p, node)
	return j, true
}

func (e *Engine) judge(j *record.Judgement, prof *profile, p *cluster.Pod, node string) {
	s := e.store.Snapshot()
	// The pod keys the draw, so that the same question has the same answer.
	key := fnv.New64a()
	key.Write([]byte(p.UID))
	out := prof.placer.Judge(s, p, e.queue, place.Draw(e.cfg.Seed, key.Sum64()))
	if out.Err != nil {
		j.Message = out.Err.Error()
		return
	}
	j.Feasible, j.Tied = out.Feasible, out.Tied
	if out.Node == cluster.NoNode {
		j.Message = prof.placer.Why(s, out).Message
	} else {
		j.Ours = &record.Candidate{Node: s.NodeName(out.Node), Total: out.Total, Scores: prof.placer.Scores(out, out.Node)}
	}
	if node == "" {
		return
	}
	n, known := s.Find(node)
	if !known || s.Node(n) == nil {
		j.Match, j.Reasons = record.Rejected, []string{"the node is not known"}
		return
	}
	if j.Plugin, j.Reasons = prof.placer.WhyNot(s, out, n); len(j.Reasons) > 0 {
		j.Match = record.Rejected
		return
	}
	compare(j, out, n, prof.placer.Scores(out, n))
	if j.Match == record.Worse && node == p.Nominated {
		j.Match = record.Nominated
	}
}

// compare says what two nodes that fit have in common.
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
	for i, sc := range j.Ours.Scores {
		if by := sc.Weighted - scores[i].Weighted; by > most {
			j.Cause, most = sc.Plugin, by
		}
	}
}
