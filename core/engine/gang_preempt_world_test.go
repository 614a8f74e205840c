// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// gangArena is what an arena with gangs knows of them.
type gangArena struct {
	sizes     map[string]int // gang -> how many pods it needs
	holdAfter record.Time
	period    record.Time // of sessions; 0 for none
	// `doomed` are the pods of gangs that are to be evicted, by gang; begun means that one of them was deleted.
	doomed map[string][]string // gang -> UIDs
	begun  map[string]bool     // UID -> it was deleted by an eviction
	wasted int
}

// newGangArena is an arena with capacity on two nodes. holdAfter is when gangs begin to hold capacity.
func newGangArena(t *rapid.T, how preempt.Config, holdAfter record.Time) *arena {
	return newSessionArena(t, how, holdAfter, 0)
}

// newSessionArena is one whose scheduler works in sessions, if period is above 0.
func newSessionArena(t *rapid.T, how preempt.Config, holdAfter, period record.Time) *arena {
	return newArenaOf(t, how, &gangArena{sizes: map[string]int{}, holdAfter: holdAfter, period: period, doomed: map[string][]string{}, begun: map[string]bool{}})
}

func gangPreemptingEngine(how preempt.Config, holdAfter, period record.Time) *engine.Engine {
	p := locked()
	p.Preemption = &how
	return engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, Hold: &engine.Hold{After: holdAfter, For: 20 * record.Second, Backfill: true}, SessionPeriod: period,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
	})
}

// mark puts on a pod what its annotations say of its gang.
func (g *gangArena) mark(p *v1.Pod, c *cluster.Pod) {
	c.EvictableForGangs = p.Annotations[convert.EvictableAnnotation] == "true"
	if name := p.Annotations[gangAnnotation]; name != "" {
		c.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: p.Namespace, Name: name}, Size: g.sizes[name]}
		if n, err := strconv.Atoi(p.Annotations[quorumAnnotation]); err == nil {
			c.Bound = &cluster.BoundMark{Quorum: n}
		}
	}
}

// createGang makes a gang of pods of one size; now and then they differ in priority, or one never preempts.
func (a *arena) createGang(size int, priority int32, cpu int64, owned bool) string {
	name := fmt.Sprintf("g%d", len(a.gangs.sizes))
	a.gangs.sizes[name] = size
	for i := range size {
		p := a.create(fmt.Sprintf("%s-%d", name, i), priority, cpu)
		p.Annotations = map[string]string{gangAnnotation: name}
		if owned {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: name, Controller: &yes}}
		}
		a.watch = a.watch[:len(a.watch)-1] // it was never without its gang
		a.changed(p)
	}
	return name
}

func (a *arena) anyGang() {
	name := a.createGang(rapid.IntRange(1, 4).Draw(a.t, "size"), int32(rapid.IntRange(0, 3).Draw(a.t, "priority")),
		int64(rapid.IntRange(1, 3).Draw(a.t, "cores")), rapid.IntRange(0, 3).Draw(a.t, "owned") > 0)
	odd := rapid.IntRange(0, 9).Draw(a.t, "odd")
	for _, uid := range sortedKeys(a.pods) {
		p := a.pods[uid]
		if p.Annotations[gangAnnotation] != name || odd > 1 {
			continue
		}
		a.watch = slices.DeleteFunc(a.watch, func(ev engine.Event) bool {
			set, is := ev.(engine.PodSet)
			return is && string(set.Pod.UID) == uid
		})
		if odd == 0 {
			more := *p.Spec.Priority + 1
			p.Spec.Priority = &more
		} else {
			never := v1.PreemptNever
			p.Spec.PreemptionPolicy = &never
		}
		a.changed(p)
		return
	}
}

// members are the pods of a gang, by UID, that is tells of.
func (a *arena) members(name string, is func(*v1.Pod) bool) (uids []string) {
	for _, uid := range sortedKeys(a.pods) {
		if p := a.pods[uid]; p.Annotations[gangAnnotation] == name && is(p) {
			uids = append(uids, uid)
		}
	}
	return uids
}

func isBound(p *v1.Pod) bool   { return p.Spec.NodeName != "" && p.DeletionTimestamp == nil }
func isWaiting(p *v1.Pod) bool { return p.Spec.NodeName == "" && p.DeletionTimestamp == nil }

// power is what a pod's unit has others evicted by, guard what protects it.
func (a *arena) power(p *v1.Pod) int32 {
	least := *p.Spec.Priority
	for _, uid := range a.members(p.Annotations[gangAnnotation], func(q *v1.Pod) bool { return q.Annotations[gangAnnotation] != "" }) {
		least = min(least, *a.pods[uid].Spec.Priority)
	}
	return least
}

// agrees reports whether a pod may be evicted for a gang by its annotation.
func (a *arena) agrees(p *v1.Pod, gang string, power int32) bool {
	return gang != "" && p.Annotations[convert.EvictableAnnotation] == "true" && p.Annotations[gangAnnotation] == "" &&
		*p.Spec.Priority <= power
}

func (a *arena) guard(p *v1.Pod) int32 {
	most := *p.Spec.Priority
	for _, uid := range a.members(p.Annotations[gangAnnotation], func(q *v1.Pod) bool { return q.Annotations[gangAnnotation] != "" && isBound(q) }) {
		most = max(most, *a.pods[uid].Spec.Priority)
	}
	return most
}

// nodeLost reports whether a node of some victims is gone: what the others leave need not be enough for a gang any
// more.
func (a *arena) nodeLost(victims []record.PodRef) bool {
	return slices.ContainsFunc(victims, func(v record.PodRef) bool {
		p := a.pods[v.UID]
		return p != nil && !a.nodes[p.Spec.NodeName]
	})
}

// evictUnits takes an eviction in hand and holds it against the rules: strictly lower priority by what a unit's
// pods have (R4, R14, A3), whole gangs (R5), nothing more for the same unit while its victims are going (R12),
// places for all that it needs (R6).
func (a *arena) evictUnits(f engine.Evict) {
	key, s := f.For.UID, a.engine.Snapshot()
	boss := a.pods[f.For.UID]
	switch {
	case f.Undo || f.Finish:
		a.evictions = append(a.evictions, &underWay{Evict: f, todo: slices.Clone(f.Victims)})
		return
	case f.Gang != "":
		key = f.Gang
	}
	chosen := map[string]bool{}
	for _, v := range f.Victims {
		chosen[v.UID] = true
	}
	for _, v := range f.Victims {
		p := a.pods[v.UID]
		if p == nil {
			continue
		}
		if boss != nil && a.seen(boss) && a.agrees(p, f.Gang, a.power(boss)) != slices.Contains(f.Agreed, v) {
			a.t.Fatalf("pod %s is evicted for %s, and agreed are %v", p.Name, boss.Name, named(f.Agreed))
		}
		if boss != nil && a.guard(p) >= a.power(boss) && a.seen(p) && a.seen(boss) &&
			!a.agrees(p, f.Gang, a.power(boss)) {
			a.t.Fatalf("pod %s, guarded by %d, is evicted for %s of %d", p.Name, a.guard(p), boss.Name, a.power(boss))
		}
		held, in := s.HeldGang(cluster.UID(v.UID))
		if !in {
			continue
		}
		for _, m := range s.GangMembers(held) {
			if !m.Pod.Terminating && !chosen[string(m.Pod.UID)] {
				a.t.Fatalf("pod %s of gang %s is evicted for %s, and %s stays", v.Name, held, f.For.Name, m.Pod.Name)
			}
		}
		a.gangs.doomed[held.Name] = append(a.gangs.doomed[held.Name], v.UID)
	}
	if before := a.last[key]; before != nil && before.failed == "" && (f.Gang == "" || !a.nodeLost(before.Victims)) {
		for _, v := range before.Victims {
			if p := a.pods[v.UID]; p != nil && a.nodes[p.Spec.NodeName] && len(f.Victims) > 0 && (p.DeletionTimestamp != nil || !before.answered) &&
				(f.Gang != "" || before.Node == boss.Status.NominatedNodeName) {
				a.t.Fatalf("%s evicts %v while %s is going for it from %s", key, named(f.Victims), v.Name, p.Spec.NodeName)
			}
		}
	}
	if f.Gang != "" {
		name := f.Gang[len("default/"):]
		if got := len(f.Beside) + 1 + len(s.GangMembers(cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: name})); got < a.gangs.sizes[name] {
			a.t.Fatalf("gang %s evicts %v and has places for %d of %d", name, named(f.Victims), got, a.gangs.sizes[name])
		}
		never := a.members(name, func(p *v1.Pod) bool { return isWaiting(p) && p.Spec.PreemptionPolicy != nil })
		if len(never) > 0 && len(f.Victims) > len(f.Agreed) && a.seen(a.pods[never[0]]) {
			a.t.Fatalf("gang %s evicts %v though %s never preempts", name, named(f.Victims), never[0])
		}
	}
	e := &underWay{Evict: f, todo: slices.Clone(f.Victims)}
	if len(f.Victims) > 0 {
		a.last[key], a.landed[key] = e, false
	}
	for _, ref := range f.Denominate {
		if p := a.pods[ref.UID]; p != nil && p.Status.NominatedNodeName != "" {
			p.Status.NominatedNodeName = ""
			a.changed(p)
		}
	}
	a.evictions = append(a.evictions, e)
}

// seen reports whether the engine knows all there is to know of a pod and its gang.
func (a *arena) seen(p *v1.Pod) bool {
	return !slices.ContainsFunc(a.watch, func(ev engine.Event) bool {
		switch ev := ev.(type) {
		case engine.PodSet:
			return ev.Pod.Gang != nil && ev.Pod.Gang.Key.Name == p.Annotations[gangAnnotation] || string(ev.Pod.UID) == string(p.UID)
		case engine.PodGone:
			return true
		}
		return false
	})
}

// needless reports whether the evictor finds that no pod needs the capacity any more.
func (a *arena) needless(e *underWay) bool {
	if e.Undo || e.Finish {
		return false
	}
	for _, ref := range append([]record.PodRef{e.For}, e.Beside...) {
		if p := a.pods[ref.UID]; p != nil && p.Spec.NodeName == "" {
			return false
		}
	}
	return true
}

func (g *gangArena) terminated(p *v1.Pod) { g.begun[string(p.UID)] = true }

func (g *gangArena) bound(a *arena, p *v1.Pod, b engine.Bind) {
	name := p.Annotations[gangAnnotation]
	if b.Gang != nil {
		p.Annotations[quorumAnnotation] = fmt.Sprint(b.Gang.Quorum)
	}
	if _, evicted := a.landed["default/"+name]; name != "" && evicted {
		a.landed["default/"+name] = true
	}
}

// checkNobodyStarves: no unit waits that there would be capacity for without the units below it, so no wake was lost.
func (g *gangArena) checkNobodyStarves(a *arena) {
	if g.holdAfter < 1000*record.Second {
		return // capacity is held for gangs that do not fit
	}
	for _, uid := range sortedKeys(a.pods) {
		p := a.pods[uid]
		name := p.Annotations[gangAnnotation]
		need := 1
		if name != "" {
			if slices.ContainsFunc(a.members(name, isWaiting), func(uid string) bool { return a.pods[uid].Spec.PreemptionPolicy != nil }) {
				continue
			}
			need = g.sizes[name] - len(a.members(name, isBound))
			if need <= 0 || len(a.members(name, isWaiting)) < need {
				continue
			}
		}
		if !isWaiting(p) {
			continue
		}
		cpu := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
		room := 0
		for node := range a.nodes {
			free, slots := int64(4), 4
			for _, other := range a.pods {
				if other.Spec.NodeName == node && (a.guard(other) >= a.power(p) && !a.agrees(other, name, a.power(p)) ||
					name != "" && other.Annotations[gangAnnotation] == name) {
					held := other.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
					free -= held.Value()
					slots--
				}
			}
			room += max(0, min(int(free/cpu.Value()), slots))
		}
		if room >= need {
			r, _ := inspect(a.engine).ExplainPod(p.Namespace, p.Name)
			a.t.Fatalf("pod %s of gang %q waits in %s, nominated to %q, though evictions would make room for %d of %d; %+v", p.Name, name, r.Where, r.Nominated, room, need, r)
		}
	}
}

// gated is how many gangs wait behind the gate of evictions. Those behind that of their pods have too few.
func (g *gangArena) gated(a *arena) (n int) {
	for name := range g.sizes {
		if r, ok := inspect(a.engine).ExplainGang("default", name); ok && r.Gate == plugin.DefaultPreemptionName {
			n++
		}
	}
	return n
}

// checkNotBroken: a gang of which a pod was evicted for others has gone whole, or has what it needs again (R5).
func (g *gangArena) checkNotBroken(a *arena) {
	for _, name := range sortedKeys(g.doomed) {
		left := a.members(name, isBound)
		if len(left) > 0 && len(left) < g.sizes[name] && slices.ContainsFunc(g.doomed[name], func(uid string) bool { return g.begun[uid] }) {
			a.t.Fatalf("of gang %s, of which others were evicted, %v are left", name, left)
		}
	}
}

// TestEvictionsInUnitsHoldTheRules runs random histories of gangs and pods on two nodes: victims that take long to
// end, deletes that fail, nodes that vanish after the evictions, gangs of higher priority that come in between, a
// scheduler that is killed at any point. Held at every eviction: strictly lower priority (R4, R14, A3), whole gangs
// (R5), nothing more for a gang whose victims are going (R12), places for all of it (R6), none for one that never
// preempts (A13). Held at rest: no gang of which a pod was evicted is left in part (R5), no pod waits behind a
// gate, no pod waits though evictions would free capacity, no node is oversold, and the tape plays to the same.
func TestEvictionsInUnitsHoldTheRules(t *testing.T) { rapid.Check(t, gangEviction) }

func gangEviction(t *rapid.T) { gangEvictionEvery(t, 0) }

// TestEvictionsInSessionsHoldTheRules: the same where the scheduler works in sessions. A session tries each waiting
// unit once, so that at rest each has been tried against what is there.
func TestEvictionsInSessionsHoldTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gangEvictionEvery(t, rapid.SampledFrom([]record.Time{record.Second, 3 * record.Second}).Draw(t, "period"))
	})
}

func gangEvictionEvery(t *rapid.T, period record.Time) {
	holdAfter := rapid.SampledFrom([]record.Time{record.Second, 1_000_000 * record.Second}).Draw(t, "holds after")
	cfg := preempt.Config{Sync: rapid.IntRange(0, 4).Draw(t, "sync") == 0, After: anyDelay(t)}
	a := newSessionArena(t, cfg, holdAfter, period)
	for range rapid.IntRange(1, 80).Draw(t, "moves") {
		switch move := rapid.SampledFrom([]string{"gang", "gang", "pod", "watch", "watch", "watch", "watch", "watch", "cycle", "cycle", "cycle", "bind", "bind", "bind", "answer", "answer",
			"work", "work", "work", "end", "tick", "tick", "delete", "node", "restart"}).Draw(t, "move"); move {
		case "gang":
			a.anyGang()
		default:
			a.do(move)
		}
	}
	a.settle()
	a.checkRest()
	a.gangs.checkNotBroken(a)
	a.checkReplay()
}

// TestGangsThatEvictLand: where the gangs that evict are all of one priority, and nothing but the watch and the
// victims takes its time, each gang for which others were evicted gets its places, and no eviction is wasted.
func TestGangsThatEvictLand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newGangArena(t, preempt.Config{}, 1_000_000*record.Second)
		a.calm = true
		for range rapid.IntRange(1, 6).Draw(t, "victims") {
			if rapid.Bool().Draw(t, "in a gang") {
				a.createGang(rapid.IntRange(1, 3).Draw(t, "size"), int32(rapid.IntRange(0, 2).Draw(t, "priority")), int64(rapid.IntRange(1, 2).Draw(t, "cores")), true)
			} else {
				a.create(fmt.Sprint("low", len(a.pods)), int32(rapid.IntRange(0, 2).Draw(t, "priority")), int64(rapid.IntRange(1, 2).Draw(t, "cores")))
			}
		}
		a.settle()
		a.recreated = 100
		for range rapid.IntRange(1, 3).Draw(t, "evictors") {
			if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
				a.create(fmt.Sprint("high", len(a.pods)), 9, int64(rapid.IntRange(1, 4).Draw(t, "cores")))
			} else {
				a.createGang(rapid.IntRange(1, 4).Draw(t, "size"), 9, int64(rapid.IntRange(1, 3).Draw(t, "cores")), true)
			}
			for range rapid.IntRange(0, 12).Draw(t, "moves") {
				a.do(rapid.SampledFrom([]string{"watch", "watch", "cycle", "bind", "answer", "work", "end", "tick"}).Draw(t, "move"))
			}
		}
		a.settle()
		for _, key := range sortedKeys(a.landed) {
			if !a.landed[key] {
				t.Fatalf("pods were evicted for %s, which has no place", key)
			}
		}
		if a.gangs.wasted > 0 {
			t.Fatalf("%d pods were evicted in vain", a.gangs.wasted)
		}
		a.checkRest()
		a.gangs.checkNotBroken(a)
	})
}
