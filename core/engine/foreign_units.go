// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign code that has a say in whom to evict is asked about nodes with their victims. A search in units ends with the
// least loss, which is one node; so it is made again without the nodes found so far, and foreign code is asked about several
// at once, as upstream asks. The victims of a node are whole gangs then, with their pods on other nodes.
//
// What comes back is made whole again, since an answer may leave out a part of a gang, and is dropped where it breaks a rule
// (R4, R5, A12) or a dry run does not find a place on the node: an extender knows its own matters, not ours.
//
// For a gang as preemptor nobody is asked. The question has one pod and one node, and no answer to it says whether a whole gang
// fits; what an extender filters holds in the dry run, as always.

// The nodes that foreign code is asked about: so many at once first, then twice as many, up to a bound.
const (
	askedFirst = 8
	askedMost  = 120
)

// choice is a node with the units that would go for it.
type choice struct {
	node cluster.NodeIdx
	ans  preempt.UnitsAnswer
}

// askAboutUnits lets foreign code choose among nodes with the units that would go there, of which the first is known.
func (e *Engine) askAboutUnits(prof *profile, p *cluster.Pod, first preempt.UnitsAnswer, node cluster.NodeIdx) found {
	noms, tried := &beside{Nominations: e.queue, s: e.store.Snapshot(), full: map[string]bool{}}, 0
	next, more := choice{node, first}, true
	for batch, asked := askedFirst, 0; more && asked < askedMost; batch *= 2 {
		var list []choice
		for more && len(list) < batch {
			list, tried = append(list, next), tried+next.ans.Tried
			noms.fill(next.node)
			next.ans, next.node = e.unitsFor(prof, p, noms)
			more = next.ans.Verdict == preempt.Evict && next.node != cluster.NoNode && !noms.full[noms.s.NodeName(next.node)]
		}
		chosen, err := prof.Foreign.Preempt(p, noms.question(list), noms.podsOn(list))
		e.tellHeard()
		if err != nil {
			return found{Answer: preempt.Answer{Verdict: preempt.Failed, Message: "preemption: " + err.Error(), Tried: tried}}
		}
		if best, ok := e.bestOf(prof, p, chosen, noms.s, first.Going); ok {
			best.ans.Tried, best.ans.Considered, best.ans.Stuck = tried, first.Considered, first.Stuck
			return found{units: &best.ans, Answer: preempt.Answer{Verdict: preempt.Evict, Tried: tried,
				Best: preempt.Candidate{Node: best.node, Victims: victimPods(&best.ans), Loss: preempt.Loss{Violations: best.ans.Loss.Violations}}}}
		}
		asked += len(list)
	}
	return found{Answer: preempt.Answer{Verdict: preempt.Failed, Message: "preemption: no candidate node for preemption", Tried: tried}}
}

// bestOf finds the least loss among what foreign code has chosen, of several the first by name.
func (e *Engine) bestOf(prof *profile, p *cluster.Pod, chosen []place.ForeignVictims, s cluster.Snapshot, going []*cluster.Pod) (best choice, ok bool) {
	for _, of := range chosen {
		n, known := s.Find(of.Node)
		if !known || prof.Preemption.Strict && of.PDBViolations > 0 {
			continue
		}
		ans, lawful := e.wholeAgain(p, of)
		if !lawful || ok && ans.Loss.Compare(best.ans.Loss) >= 0 || !e.fitsOn(prof, p, n, ans, going) {
			continue
		}
		best, ok = choice{n, ans}, true
	}
	return best, ok
}

// wholeAgain makes units of the pods that foreign code has chosen, each with all its pods. It is false if somebody is among them
// who may not go.
func (e *Engine) wholeAgain(p *cluster.Pod, of place.ForeignVictims) (ans preempt.UnitsAnswer, lawful bool) {
	s := e.store.Snapshot()
	ans = preempt.UnitsAnswer{Verdict: preempt.Evict, Loss: preempt.UnitsLoss{Violations: int(of.PDBViolations), Highest: math.MinInt32, Oldest: maxTime}}
	seen := map[cluster.UID]bool{}
	for _, ref := range of.Pods {
		v, _, _, there := s.PodOn(cluster.UID(ref.UID))
		if !there || v.Terminating || seen[v.UID] {
			continue
		}
		unit := e.unitOf(v)
		if unit.Priority >= p.Spec.Priority {
			return ans, false
		}
		for _, pod := range unit.Pods {
			seen[pod.UID] = true
			if pod.Start != 0 {
				ans.Loss.Oldest = min(ans.Loss.Oldest, pod.Start)
			}
		}
		ans.Loss.Units, ans.Loss.Pods, ans.Loss.Highest = ans.Loss.Units+1, ans.Loss.Pods+len(unit.Pods), max(ans.Loss.Highest, unit.Priority)
		ans.Victims = append(ans.Victims, unit)
	}
	slices.SortStableFunc(ans.Victims, func(a, b preempt.VictimUnit) int { return cmp.Compare(b.Priority, a.Priority) })
	return ans, len(ans.Victims) > 0
}

// unitOf is what goes with a pod.
func (e *Engine) unitOf(p *cluster.Pod) preempt.VictimUnit {
	s := e.store.Snapshot()
	unit := preempt.VictimUnit{Pods: []*cluster.Pod{p}, Priority: p.Spec.Priority}
	key, in := s.HeldGang(p.UID)
	if !in {
		return unit
	}
	rule := e.ruleOf(key)
	if rule.Whole {
		unit.Gang, unit.Pods = key, nil
		for _, m := range s.GangMembers(key) {
			if !m.Pod.Terminating {
				unit.Pods = append(unit.Pods, m.Pod)
				unit.Priority = max(unit.Priority, m.Pod.Spec.Priority)
			}
		}
		slices.SortFunc(unit.Pods, byKey)
	}
	unit.Priority = rule.Protects(unit.Priority)
	return unit
}

// fitsOn makes a dry run with the victims gone, and those that go anyway, in which no other of their nodes has room.
func (e *Engine) fitsOn(prof *profile, p *cluster.Pod, n cluster.NodeIdx, ans preempt.UnitsAnswer, going []*cluster.Pod) bool {
	only := &beside{Nominations: e.queue, s: e.store.Snapshot(), full: map[string]bool{}}
	gone := append(victimPods(&ans), going...)
	for _, v := range gone {
		if _, on, _, _ := only.s.PodOn(v.UID); on != n {
			only.fill(on)
		}
	}
	trial := e.store.Trial()
	defer trial.Discard()
	nodes := e.dryRunBeside(prof, trial, gang.Need{Members: []*cluster.Pod{p}, Quorum: 1}, e.decisions, only).without(gone)
	return nodes != nil && nodes[0] == n
}

// beside are nominations, and some nodes that are as if promised to somebody who takes all there is.
type beside struct {
	place.Nominations
	s    cluster.Snapshot
	full map[string]bool // node -> true
}

// everything is a pod before which all others give way, and that leaves no room.
var everything = func() *cluster.Pod {
	priority := int32(math.MaxInt32)
	p := &v1.Pod{}
	p.Spec.Priority = &priority
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(1<<36, apiresource.DecimalSI)}}}}
	return cluster.NewIntake().Pod(p)
}()

func (b *beside) fill(n cluster.NodeIdx) { b.full[b.s.NodeName(n)] = true }

// NominatedNodes are those of both.
func (b *beside) NominatedNodes() []string {
	nodes := slices.Clone(b.Nominations.NominatedNodes())
	for n := range b.full { // order: sorted below
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// NominatedOn are those of both.
func (b *beside) NominatedOn(node string) []*cluster.Pod {
	pods := b.Nominations.NominatedOn(node)
	if b.full[node] {
		pods = append(slices.Clone(pods), everything)
	}
	return pods
}

// question words candidates in the order of their nodes' names.
func (b *beside) question(list []choice) (asked []place.ForeignVictims) {
	for i := range list {
		asked = append(asked, place.ForeignVictims{Node: b.s.NodeName(list[i].node), Pods: refs(victimPods(&list[i].ans)), PDBViolations: int64(list[i].ans.Loss.Violations)})
	}
	slices.SortFunc(asked, func(a, b place.ForeignVictims) int { return cmp.Compare(a.Node, b.Node) })
	return asked
}

// podsOn lists the pods that may stand in an answer for a node: those on it, and those that would go with them.
func (b *beside) podsOn(list []choice) func(string) ([]record.PodRef, bool) {
	return func(node string) (pods []record.PodRef, ok bool) {
		n, ok := b.s.Find(node)
		if ok {
			b.s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p.Ref()) })
		}
		for i := range list {
			if list[i].node == n && ok {
				for _, v := range victimPods(&list[i].ans) {
					if _, on, _, _ := b.s.PodOn(v.UID); on != n {
						pods = append(pods, v.Ref())
					}
				}
			}
		}
		return pods, ok
	}
}
