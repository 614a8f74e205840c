// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"reflect"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// checkJudge asks about every pod and every node, in whatever state the engine is. For pods that wait the answers
// hold together, agree with ExplainPod, and change nothing (checkReplay would see it). A pod that holds capacity is
// judged as if it waited and the others were there; that moves the revision, so it is left for the end.
func (w *world) checkJudge(end bool) {
	for _, uid := range sortedKeys(w.pods) {
		p := w.pods[uid]
		if p.Spec.SchedulerName != "default-scheduler" {
			continue // a pod of another scheduler, whose requests no profile knows
		}
		ledger, _, assumed, holds := w.engine.Snapshot().PodOn(cluster.UID(uid))
		if holds {
			if end && !assumed && ledger.NodeName == p.Spec.NodeName && len(w.watch) == 0 {
				w.checkJudgeOf(uid)
			}
			continue
		}
		r, known := inspect(w.engine).ExplainPod(p.Namespace, p.Name)
		if !known || r.Pod.UID != uid || r.Fit == nil {
			continue
		}
		w.checkAnswers(w.engine, uid, r.Fit.Feasible)
	}
}

// checkAnswers: what is said of all nodes holds together.
func (w *world) checkAnswers(e *engine.Engine, uid string, feasible int) map[string]record.Judgement {
	asked, known := inspect(e).CompareBind(cluster.UID(uid), "")
	if !known || asked.Feasible != feasible || asked.Match != record.Unjudged || (asked.Ours == nil) != (feasible == 0) || (asked.Message == "") != (feasible > 0) {
		w.t.Fatalf("%d nodes fit pod %s; judged: %+v, known %v", feasible, uid, asked, known)
	}
	answers, matches := map[string]record.Judgement{}, map[record.Match]int{}
	inspect(e).EachNode(func(node string) {
		j, _ := inspect(e).CompareBind(cluster.UID(uid), node)
		answers[node] = j
		matches[j.Match]++
		if j.Feasible != feasible || j.Theirs == nil || j.Theirs.Node != node || j.Tied != asked.Tied {
			w.t.Fatalf("pod %s on %s: %+v, without the node %+v", uid, node, j, asked)
		}
		switch j.Match {
		case record.SameNode:
			if node != j.Ours.Node || !reflect.DeepEqual(j.Ours, j.Theirs) {
				w.t.Fatalf("pod %s: ours %+v, theirs %+v", uid, j.Ours, j.Theirs)
			}
		case record.Rejected:
			if len(j.Reasons) == 0 || j.Reasons[0] == "" || j.Plugin == "" {
				w.t.Fatalf("pod %s on %s is rejected without a reason: %+v", uid, node, j)
			}
		case record.Worse, record.Nominated:
			w.checkRegret(&j)
		case record.Tied:
			if j.Theirs.Total != j.Ours.Total {
				w.t.Fatalf("tied: %+v and %+v", j.Ours, j.Theirs)
			}
		}
		if j.Ours != nil && len(j.Ours.Scores) > 0 && sum(j.Ours.Scores) != j.Ours.Total {
			w.t.Fatalf("the scores of %+v have another sum", j.Ours)
		}
	})
	fit := matches[record.SameNode] + matches[record.Tied] + matches[record.Worse] + matches[record.Nominated]
	if fit != feasible || feasible > 0 && matches[record.SameNode] != 1 || feasible > 0 && matches[record.SameNode]+matches[record.Tied] != asked.Tied {
		w.t.Fatalf("pod %s: %v for %d nodes that fit, %d tied", uid, matches, feasible, asked.Tied)
	}
	return answers
}

// checkRegret: it is the difference of the totals, and the plugin that is blamed has the largest part in it.
func (w *world) checkRegret(j *record.Judgement) {
	by := map[string]int64{} // plugin -> by how much it likes ours more
	for i, sc := range j.Ours.Scores {
		by[sc.Plugin] = sc.Weighted - j.Theirs.Scores[i].Weighted
	}
	if j.Regret <= 0 || j.Ours.Total-j.Theirs.Total != j.Regret || by[j.Cause] != slices.Max(slices.Collect(maps.Values(by))) {
		w.t.Fatalf("regret %d because of %s: ours %+v, theirs %+v", j.Regret, j.Cause, j.Ours, j.Theirs)
	}
}

func sum(scores []record.PluginScore) (total int64) {
	for _, sc := range scores {
		total += sc.Weighted
	}
	return total
}

// checkJudgeOf compares what is said of a bound pod with what an engine says that has seen it pending only. The draws
// differ, and with them which of the best nodes is called ours.
func (w *world) checkJudgeOf(uid string) {
	for _, p := range w.pods {
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" {
			return // whether a gated pod's nomination counts depends on what else has happened to it
		}
	}
	twin := freshEngine()
	twin.Step(engine.Tick{Now: w.now})
	for _, name := range sortedKeys(w.locks) {
		twin.Step(engine.ObjectSet{Object: w.locks[name].DeepCopy()})
	}
	for _, name := range sortedKeys(w.nodes) {
		twin.Step(engine.NodeSet{Node: w.intake.Node(w.nodes[name])})
	}
	s := w.engine.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if string(p.UID) != uid {
				there := *p
				there.NodeName = s.NodeName(n) // assumed ones too
				twin.Step(engine.PodSet{Pod: &there})
			}
		})
	}
	for _, other := range sortedKeys(w.pods) {
		if _, _, _, holds := s.PodOn(cluster.UID(other)); holds && other != uid {
			continue
		}
		p := w.pods[other].DeepCopy()
		p.Spec.NodeName = ""
		twin.Step(engine.PodSet{Pod: w.intake.Pod(p)})
	}
	asked, _ := inspect(twin).CompareBind(cluster.UID(uid), "")
	want := w.checkAnswers(twin, uid, asked.Feasible)
	for node, j := range w.checkAnswers(w.engine, uid, asked.Feasible) {
		is := want[node]
		if (j.Match == record.Rejected) != (is.Match == record.Rejected) || j.Regret != is.Regret || !reflect.DeepEqual(j.Reasons, is.Reasons) {
			w.t.Fatalf("bound pod %s on %s: judged %+v, pending %+v", uid, node, j, is)
		}
	}
}
