// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign code that has a say in what to evict is asked about nodes with their victims. A search in units ends with
// the smallest loss, which is one node; so it is made again without the nodes found so far, and foreign code is asked
// about several at once, as upstream asks. The victims of a node are whole gangs then, with their pods on other nodes.
//
// The answer is completed to whole units, since it may leave out a part of a gang, and is dropped where it breaks a
// rule (R4, R5, A12) or a dry run does not find a placement on the node: an extender knows its own matters, not ours.
//
// For a gang as preemptor foreign code is not asked. The question has one pod and one node, and no answer to it says
// whether a whole gang fits; what an extender filters holds in the dry run, as always.

// The nodes that foreign code is asked about: so many at once first, then twice as many, up to a bound.
const (
	askedFirst = 8
	askedMost  = 120
)

// askAboutNodes lets foreign code reduce and change the candidates of a search by nodes.
func (m *Manager) askAboutNodes(prof *Profile, p *cluster.Pod, a preempt.Answer) preempt.Answer {
	s := m.store.Snapshot()
	var asked []place.ForeignVictims
	for _, c := range a.Candidates {
		asked = append(asked, place.ForeignVictims{Node: s.NodeName(c.Node), Pods: refs(c.Victims),
			PDBViolations: int64(c.Loss.Violations)})
	}
	slices.SortFunc(asked, func(a, b place.ForeignVictims) int { return cmp.Compare(a.Node, b.Node) })
	chosen, err := prof.Foreign.Preempt(p, asked, func(node string) (pods []record.PodRef, ok bool) {
		n, ok := s.Find(node)
		if ok {
			s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p.Ref()) })
		}
		return pods, ok
	})
	if err != nil {
		return preempt.Answer{Verdict: preempt.Failed, Message: "preemption: " + err.Error(), Nodes: a.Nodes,
			Tried: a.Tried}
	}
	var candidates []preempt.Candidate
	for _, of := range chosen {
		if prof.Preemption.Strict && of.PDBViolations > 0 {
			continue
		}
		n, known := s.Find(of.Node)
		var pods []*cluster.Pod
		for _, ref := range of.Pods {
			if v, on, _, there := s.PodOn(cluster.UID(ref.UID)); there && on == n {
				pods = append(pods, v)
			}
		}
		if known && len(pods) > 0 {
			candidates = append(candidates, preempt.NewCandidate(n, pods, int(of.PDBViolations)))
		}
	}
	if len(candidates) == 0 {
		return preempt.Answer{Verdict: preempt.Failed, Message: noCandidateMessage, Nodes: a.Nodes, Tried: a.Tried}
	}
	a.Best = preempt.Choose(candidates)
	return a
}

func refs(pods []*cluster.Pod) (list []record.PodRef) {
	for _, p := range pods {
		list = append(list, p.Ref())
	}
	return list
}

// choice is a node with the units that would go for it.
type choice struct {
	node cluster.NodeIdx
	ans  units.Answer
}

// askAboutUnits lets foreign code choose among nodes with the units that would go there, of which the first is known.
func (m *Manager) askAboutUnits(prof *Profile, p *cluster.Pod, first units.Answer, node cluster.NodeIdx,
	decision uint64) Plan {
	noms, tried := &beside{Nominations: m.queue, s: m.store.Snapshot(), full: map[string]bool{}}, 0
	next, more := choice{node, first}, true
	for batch, asked := askedFirst, 0; more && asked < askedMost; batch *= 2 {
		var list []choice
		for more && len(list) < batch {
			list, tried = append(list, next), tried+next.ans.Tried
			noms.fill(next.node)
			next.ans, next.node = m.searchForPod(prof, p, noms, decision)
			more = next.ans.Verdict == preempt.Evict && next.node != cluster.NoNode &&
				!noms.full[noms.s.NodeName(next.node)]
		}
		chosen, err := prof.Foreign.Preempt(p, noms.question(list), noms.podsOn(list))
		if err != nil {
			return Plan{Verdict: preempt.Failed, Message: "preemption: " + err.Error(), tried: tried}
		}
		if best, ok := m.bestOf(prof, p, chosen, first.Terminating, decision); ok {
			best.ans.Tried, best.ans.Considered, best.ans.Stuck = tried, first.Considered, first.Stuck
			plan := onNode(p, best.node, VictimPods(&best.ans))
			plan.units, plan.tried, plan.loss.Violations = &best.ans, tried, best.ans.Loss.Violations
			return plan
		}
		asked += len(list)
	}
	return Plan{Verdict: preempt.Failed, Message: noCandidateMessage, tried: tried}
}

// bestOf finds the least loss among what foreign code has chosen, of several the first by name.
func (m *Manager) bestOf(prof *Profile, p *cluster.Pod, chosen []place.ForeignVictims, going []*cluster.Pod,
	decision uint64) (best choice, ok bool) {
	s := m.store.Snapshot()
	for _, of := range chosen {
		n, known := s.Find(of.Node)
		if !known || prof.Preemption.Strict && of.PDBViolations > 0 {
			continue
		}
		ans, allowed := m.wholeUnits(p, of)
		if !allowed || ok && ans.Loss.Compare(best.ans.Loss) >= 0 || !m.fitsOn(prof, p, n, ans, going, decision) {
			continue
		}
		best, ok = choice{n, ans}, true
	}
	return best, ok
}

// wholeUnits makes units of the pods that foreign code has chosen, each with all its pods. It is false if a pod is
// among them that may not go.
func (m *Manager) wholeUnits(p *cluster.Pod, of place.ForeignVictims) (ans units.Answer, allowed bool) {
	s := m.store.Snapshot()
	ans = units.Answer{Verdict: preempt.Evict,
		Loss: units.Loss{Violations: int(of.PDBViolations), Highest: math.MinInt32, Oldest: maxTime}}
	seen := map[cluster.UID]bool{}
	for _, ref := range of.Pods {
		v, _, _, there := s.PodOn(cluster.UID(ref.UID))
		if !there || v.Terminating || seen[v.UID] {
			continue
		}
		unit := m.victimUnit(v)
		if unit.Priority >= p.Spec.Priority {
			return ans, false
		}
		for _, pod := range unit.Pods {
			seen[pod.UID] = true
			if pod.Start != 0 {
				ans.Loss.Oldest = min(ans.Loss.Oldest, pod.Start)
			}
		}
		ans.Loss.Units++
		ans.Loss.Pods += len(unit.Pods)
		ans.Loss.Highest = max(ans.Loss.Highest, unit.Priority)
		ans.Victims = append(ans.Victims, unit)
	}
	slices.SortStableFunc(ans.Victims, func(a, b units.Victim) int { return cmp.Compare(b.Priority, a.Priority) })
	return ans, len(ans.Victims) > 0
}

// victimUnit is what goes with a pod.
func (m *Manager) victimUnit(p *cluster.Pod) units.Victim {
	s := m.store.Snapshot()
	unit := units.Victim{Pods: []*cluster.Pod{p}, Priority: p.Spec.Priority}
	key, in := s.HeldGang(p.UID)
	if !in {
		return unit
	}
	rule := m.RuleOf(key)
	if rule.Whole {
		unit.Gang, unit.Pods = key, nil
		for _, member := range s.GangMembers(key) {
			if !member.Pod.Terminating {
				unit.Pods = append(unit.Pods, member.Pod)
				unit.Priority = max(unit.Priority, member.Pod.Spec.Priority)
			}
		}
		slices.SortFunc(unit.Pods, cluster.CompareKeys)
	}
	unit.Priority = rule.Protects(unit.Priority)
	return unit
}

// fitsOn makes a dry run with the victims gone, and those that go anyway, in which no other of their nodes has
// capacity.
func (m *Manager) fitsOn(prof *Profile, p *cluster.Pod, n cluster.NodeIdx, ans units.Answer, going []*cluster.Pod,
	decision uint64) bool {
	only := &beside{Nominations: m.queue, s: m.store.Snapshot(), full: map[string]bool{}}
	gone := append(VictimPods(&ans), going...)
	for _, v := range gone {
		if _, on, _, _ := only.s.PodOn(v.UID); on != n {
			only.fill(on)
		}
	}
	trial := m.store.Trial()
	defer trial.Discard()
	rows := m.dryRun(prof, trial, needOf(p), decision, only).Without(gone)
	return rows != nil && rows[0] == n
}

// beside are nominations, and some nodes that are as if nominated for a pod that takes all there is.
type beside struct {
	place.Nominations
	s    cluster.Snapshot
	full map[string]bool // node -> true
}

// everything is a pod before which all others give way, and that leaves no capacity.
var everything = func() *cluster.Pod {
	priority := int32(math.MaxInt32)
	p := &v1.Pod{}
	p.Spec.Priority = &priority
	all := v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(1<<36, apiresource.DecimalSI)}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: all}}}
	return convert.NewIntake().Pod(p)
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
		ans := &list[i].ans
		asked = append(asked, place.ForeignVictims{
			Node: b.s.NodeName(list[i].node), Pods: refs(VictimPods(ans)), PDBViolations: int64(ans.Loss.Violations)})
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
				for _, v := range VictimPods(&list[i].ans) {
					if _, on, _, _ := b.s.PodOn(v.UID); on != n {
						pods = append(pods, v.Ref())
					}
				}
			}
		}
		return pods, ok
	}
}
