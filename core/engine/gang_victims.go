// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// room is what came of looking for victims for a gang.
type room struct {
	verdict preempt.Verdict // Evict, NotEligible: what it has been nominated to stands, NotHelpful: it does not
	message string
	units   *preempt.UnitsAnswer
	victims []*cluster.Pod
	need    gang.Need         // that was asked for; some of the unit's members may not be in it
	nodes   []cluster.NodeIdx // by member of the need
	same    bool              // the rest of the victims of before
	spared  []*cluster.Pod    // victims of before that need not go any more
	paused  record.Time
}

// orWait keeps the room of before, if there is none that evictions could make and some of its victims do not go.
func (r room) orWait(late []*cluster.Pod) room {
	if len(late) > 0 && r.verdict == preempt.NotHelpful {
		r.verdict, r.message = preempt.NotEligible, noOther
	}
	return r
}

// The messages of a gang that evicts no pods.
const (
	neverMessage   = "preemption: not eligible due to preemptionPolicy=Never."
	notGoneMessage = "preemption: pods that make room for the gang are not gone yet."
)

// seekRoom looks for units to evict so that a gang gets its places. The zero room is that of a gang that may not ask.
func (e *Engine) seekRoom(unit *queue.Unit, prof *profile, need gang.Need, held int, ans gang.Answer) (r room) {
	if prof.Preemption == nil || ans.Verdict != gang.NoRoom && ans.Verdict != gang.GaveUp {
		return room{} // a gang that can never fit evicts no pods (rule R17)
	}
	if held >= e.quorumOf(unit.Gang, unit.Members).pods && !e.surplusEvicts(unit.Gang) {
		return room{} // a surplus member evicts no pods, except in a native group (answer A6)
	}
	e.meter.Plugin(plugin.AtPostFilter, plugin.DefaultPreemptionName)
	sets := e.preemptors(unit.Gang, unit, need)
	if len(sets) == 0 && len(need.Members) >= need.Quorum {
		return room{verdict: preempt.NotHelpful, message: neverMessage}
	}
	c := e.clearances[unit.Gang]
	if c != nil && c.failed {
		if r, same := e.sameVictims(unit, prof, need, c); same {
			return r
		}
	}
	if e.leftBehind(prof, c) {
		return e.regain(unit, prof, need, c)
	}
	key, who := thrashKey{gang: unit.Gang}, need.Members[0].Ref()
	if c != nil && c.robbed {
		c.robbed = false
		e.robbedAgain(key, who)
	}
	if until := e.pausedUntil(key, who); until != 0 {
		return room{verdict: preempt.NotHelpful, paused: until, message: pausedMessage}
	}
	defer func() { e.barredBy(unit.Pod().Ref(), r.message) }()
	late := e.stuckLeft(prof, c)
	if len(late) > 0 {
		e.giveUpOn(&c.stuck, late, who, unit.Gang.String())
	}
	for _, by := range sets {
		found := e.searchUnits(unit, prof, by)
		if found.verdict != preempt.NotHelpful {
			return found
		}
		if r.message != preempt.AllProtected {
			r = found // what is said of the last search, unless budgets ended one: they may allow more later
		}
	}
	return r.orWait(late)
}

// surplusEvicts reports whether members of a gang beyond its minimum may have others evicted, as upstream has it for native pod
// groups: all of their pods are wanted, and the minimum is what the group cannot run without. Where other declarations have a
// minimum and a desired size, what is beyond the minimum gets what is left (answer A2).
func (e *Engine) surplusEvicts(key cluster.GangKey) bool {
	return key.Source == cluster.GangOfGroup
}

// preemptor is a set of members for which a gang may have others evicted.
type preemptor struct {
	need gang.Need
	// power is the priority below which units may go.
	power int32
}

// mostPreemptors bounds how many sets of members of one gang a search for victims is made for, about.
const mostPreemptors = 4

// preemptors are the sets of a gang's members for which it may have others evicted, the strongest first: members that never
// preempt are not among them, and where the gang declares no priority a set evicts by the lowest of its members' priorities
// (answers A3, A13). So a member that the gang does not need does not keep it from evicting. There is no set if too few members
// may preempt. The unit may be nil.
func (e *Engine) preemptors(key cluster.GangKey, unit *queue.Unit, need gang.Need) (sets []preemptor) {
	obj := e.gangObject(key)
	if obj != nil && obj.NeverPreempts {
		return nil
	}
	declared := obj != nil && obj.Priority != nil
	may := slices.DeleteFunc(slices.Clone(need.Members), func(p *cluster.Pod) bool { return p.Spec.NeverPreempts })
	bound := int32(math.MaxInt32) // the lowest priority of its pods that have a place
	for _, m := range e.store.Snapshot().GangMembers(key) {
		bound = min(bound, m.Pod.Spec.Priority)
	}
	slices.SortStableFunc(may, func(a, b *cluster.Pod) int { return cmp.Compare(b.Spec.Priority, a.Spec.Priority) })
	for n := need.Quorum; n <= len(may); n++ {
		lowest := may[n-1].Spec.Priority
		last := n == len(may)
		if !last && (declared || may[n].Spec.Priority == lowest || bound <= lowest || len(sets) >= mostPreemptors-1) {
			continue // the set with the next member evicts as much
		}
		by := preemptor{need, min(lowest, bound)}
		if declared {
			by.power = *obj.Priority
		}
		if by.need.Members = need.Members; n < len(need.Members) {
			by.need.Members = among(need.Members, may[:n])
		}
		for _, by.need.Quorum = range e.quorums(key, unit, by.need) {
			sets = append(sets, by)
		}
	}
	return sets
}

// among are those of members that are chosen, in the order of members.
func among(members, chosen []*cluster.Pod) (list []*cluster.Pod) {
	for _, p := range members {
		if slices.Contains(chosen, p) {
			list = append(list, p)
		}
	}
	return list
}

// quorums are the numbers of members that are asked for in turn: of a native group all of them if nothing else waits for capacity,
// then as many as it needs.
func (e *Engine) quorums(key cluster.GangKey, unit *queue.Unit, need gang.Need) []int {
	if !e.surplusEvicts(key) || len(need.Members) <= need.Quorum || unit != nil && (e.queue.Needed(unit) || len(e.blocked()) > 0) {
		return []int{need.Quorum}
	}
	return []int{len(need.Members), need.Quorum}
}

// regain gives a gang whose victims are going its places again, as far as it has lost them: a stronger pod took them and is gone,
// or a member came in the place of another. Otherwise it waits for its victims.
func (e *Engine) regain(unit *queue.Unit, prof *profile, need gang.Need, c *clearance) room {
	r := room{verdict: preempt.NotEligible, message: notGoneMessage}
	nominated := 0
	for _, p := range need.Members {
		if e.queue.NominationOf(p.UID) != "" {
			nominated++
		}
	}
	if nominated >= need.Quorum {
		return r
	}
	trial := e.store.Trial()
	defer trial.Discard()
	var going []*cluster.Pod
	for uid := range c.left { // order: sorted below
		if p, _, _, there := e.store.Snapshot().PodOn(uid); there {
			going = append(going, p)
		}
	}
	slices.SortFunc(going, byKey)
	r.need, r.nodes = need, e.dryRunBeside(prof, trial, need, e.decisions, e.promises(unit)).without(going)
	return r
}

// searchUnits looks for units to evict for a set of members.
func (e *Engine) searchUnits(unit *queue.Unit, prof *profile, by preemptor) room {
	need, noms := by.need, e.promises(unit)
	trial := e.store.Trial()
	defer trial.Discard()
	run := e.dryRunBeside(prof, trial, need, e.decisions, noms)
	ground := preempt.UnitsGround{Placer: prof.placer, Nominations: noms, Bound: need.Bound}
	for _, level := range need.Topology {
		if level.Required {
			ground.Keys = append(ground.Keys, level.Key)
		}
	}
	a := e.victims.FindUnits(preempt.UnitsQuestion{
		Members: need.Members, Quorum: need.Quorum, Own: unit.Gang, Power: by.power, Trial: trial, Fits: run.fits, Where: run.place,
		Rule: e.ruleOf, Never: e.sparingNodes(e.neverForGang, e.sparedNodes(e.clearances[unit.Gang])),
		Stuck: e.stuckOn(prof), Ground: ground,
		Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
	})
	r := room{verdict: a.Verdict, message: a.Message, units: &a, need: need}
	if a.Verdict == preempt.NotHelpful {
		return r
	}
	r.victims = victimPods(&a)
	r.nodes = run.without(append(slices.Clone(r.victims), a.Going...))
	if r.nodes == nil {
		return room{verdict: preempt.NotHelpful, message: notAgain} // foreign code has changed its mind
	}
	return r
}

// sameVictims is the rest of a set of victims of which some could not be evicted: false if they are none, or do not help any
// more. Where those that go are enough by now, the rest is spared.
func (e *Engine) sameVictims(unit *queue.Unit, prof *profile, need gang.Need, c *clearance) (r room, same bool) {
	trial := e.store.Trial()
	defer trial.Discard()
	run := e.dryRunBeside(prof, trial, need, c.draw, e.promises(unit))
	s := e.store.Snapshot()
	begun := len(c.left) < c.evicted
	var rest, going []*cluster.Pod
	for uid, how := range c.left { // order: sorted below
		p, n, _, there := s.PodOn(uid)
		switch {
		case !there || how != deleted || s.Node(n) == nil:
		case p.Terminating:
			begun = true
			going = append(going, p)
		default:
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 || !begun || e.protectedNow(rest, e.power(unit.Gang, need.Members)) {
		return room{}, false
	}
	slices.SortFunc(rest, byKey)
	slices.SortFunc(going, byKey)
	if nodes := run.without(going); nodes != nil {
		return room{verdict: preempt.NotEligible, message: notGoneMessage, need: need, nodes: nodes, same: true, spared: rest}, true
	}
	if nodes := run.without(slices.Concat(rest, going)); nodes != nil {
		return room{verdict: preempt.Evict, victims: rest, need: need, nodes: nodes, same: true}, true
	}
	return room{}, false
}

// protectedNow reports whether one of some victims may not be evicted any more by a power: its group declares more than before. A
// gang that goes whole and of which some are gone goes to its end all the same (rule R5).
func (e *Engine) protectedNow(victims []*cluster.Pod, power int32) bool {
	return slices.ContainsFunc(victims, func(p *cluster.Pod) bool {
		key, in := e.store.Snapshot().HeldGang(p.UID)
		return in && !e.goesWhole(key) && e.ruleOf(key).Protects(p.Spec.Priority) >= power
	})
}

func byKey(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
}
