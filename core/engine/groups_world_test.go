// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
	"github.com/kumiki-scheduler/kumiki/record"
)

// groups is what an arena knows of native pod groups, disruption budgets and claims.
type groups struct {
	objects   map[string]*cluster.Gang                 // group -> the API server's version
	budgets   map[string]*policyv1.PodDisruptionBudget // name -> the same
	claims    map[string]*v1.PersistentVolume          // name -> the same
	made      int                                      // groups
	holdAfter record.Time
	reached   map[string]bool // combination -> this history has reached it
	evicted   map[string]int  // group -> evictions for it
	begun     map[string]bool // group -> an eviction of one of its pods was asked for
}

// newGroupArena is an arena with pod groups of both policies on two nodes.
func newGroupArena(t *rapid.T) *arena {
	how := preempt.Config{
		Sync:          rapid.IntRange(0, 5).Draw(t, "sync") == 0,
		Strict:        rapid.Bool().Draw(t, "strict"),
		VictimTimeout: rapid.SampledFrom([]record.Time{0, 5 * record.Second}).Draw(t, "victim timeout"),
		After:         anyDelay(t),
	}
	a := &arena{how: how, nodes: map[string]bool{}, last: map[string]*underWay{}, landed: map[string]bool{}}
	a.groups = &groups{
		objects: map[string]*cluster.Gang{}, budgets: map[string]*policyv1.PodDisruptionBudget{}, claims: map[string]*v1.PersistentVolume{},
		holdAfter: rapid.SampledFrom([]record.Time{0, record.Second, 1_000_000 * record.Second}).Draw(t, "holds after"),
		reached:   map[string]bool{}, evicted: map[string]int{}, begun: map[string]bool{},
	}
	a.stage = newStage(t, a)
	a.start()
	for i := range 2 {
		a.setNode(fmt.Sprint("n", i))
	}
	return a
}

func (g *groups) engine(how preempt.Config) *engine.Engine {
	p := locked()
	p.Preemption = &how
	p.Gates, p.Wakers = append(p.Gates, claimGate{}), append(p.Wakers, claimGate{})
	return engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, Hold: &engine.Hold{After: g.holdAfter, For: 20 * record.Second, Backfill: true},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
	})
}

// list are the objects as a starting scheduler lists them.
func (g *groups) list() (all []engine.Event) {
	for _, name := range sortedKeys(g.claims) {
		all = append(all, engine.ObjectSet{Object: g.claims[name].DeepCopy()})
	}
	for _, name := range sortedKeys(g.budgets) {
		all = append(all, engine.ObjectSet{Object: g.budgets[name].DeepCopy()})
	}
	for _, name := range sortedKeys(g.objects) {
		all = append(all, engine.ObjectSet{Object: g.objects[name]})
	}
	return all
}

func groupKey(name string) cluster.GangKey {
	return cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "default", Name: name}
}

// mark puts on a pod what it says of its group.
func (g *groups) mark(p *v1.Pod, c *cluster.Pod) {
	if name := p.Annotations[gangAnnotation]; name != "" {
		c.Gang = &cluster.GangMark{Key: groupKey(name)}
		if n, err := strconv.Atoi(p.Annotations[quorumAnnotation]); err == nil {
			c.Bound = &cluster.BoundMark{Quorum: n}
		}
	}
}

// setGroup makes a version of a group's object.
func (a *arena) setGroup(name string, change func(*cluster.Gang)) {
	g := &cluster.Gang{Key: groupKey(name)}
	if old := a.groups.objects[name]; old != nil {
		*g = *old
	}
	change(g)
	a.rv++
	at := g.Key.Object()
	g.ObjectMeta = metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, UID: types.UID("group-" + name), ResourceVersion: fmt.Sprint(a.rv)}
	a.groups.objects[name] = g
	a.watch = append(a.watch, engine.ObjectSet{Object: g})
}

func (a *arena) drawGroup(g *cluster.Gang) {
	g.Basic = rapid.IntRange(0, 2).Draw(a.t, "basic") == 0
	g.MinCount = rapid.IntRange(1, 3).Draw(a.t, "min")
	g.Priority = nil
	if rapid.Bool().Draw(a.t, "declares a priority") {
		declared := int32(rapid.IntRange(0, 5).Draw(a.t, "declared"))
		g.Priority = &declared
	}
	g.EvictWhole = rapid.Bool().Draw(a.t, "whole")
	g.NeverPreempts = rapid.IntRange(0, 9).Draw(a.t, "group never") == 0
}

// anyGroup makes a group with some pods; sometimes the object comes late or never.
func (a *arena) anyGroup() {
	name := fmt.Sprint("g", a.groups.made)
	a.groups.made++
	late := rapid.IntRange(0, 3).Draw(a.t, "late") == 0
	if !late {
		a.setGroup(name, a.drawGroup)
	}
	priority, cpu := int32(rapid.IntRange(0, 3).Draw(a.t, "priority")), int64(rapid.IntRange(1, 3).Draw(a.t, "cores"))
	for range rapid.IntRange(0, 4).Draw(a.t, "pods") {
		a.member(name, priority, cpu)
	}
	if late {
		a.setGroup(name, a.drawGroup)
	}
}

// member adds a pod to a group: mostly like the others, sometimes of another priority, that never preempts, or
// behind a gate.
func (a *arena) member(name string, priority int32, cpu int64) {
	odd := rapid.IntRange(0, 11).Draw(a.t, "odd")
	if odd == 0 {
		priority = int32(rapid.IntRange(0, 4).Draw(a.t, "own priority"))
	}
	p := a.create(fmt.Sprintf("%s-%d", name, a.rv), priority, cpu)
	p.Annotations = map[string]string{gangAnnotation: name}
	p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"x", "y"}).Draw(a.t, "app")}
	if rapid.Bool().Draw(a.t, "owned") {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: name, Controller: &yes}}
	}
	switch odd {
	case 1:
		never := v1.PreemptNever
		p.Spec.PreemptionPolicy = &never
	case 2:
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "wait"}}
	case 3:
		p.Labels["claim"] = rapid.SampledFrom([]string{"c0", "c1"}).Draw(a.t, "claim")
	}
	a.watch = a.watch[:len(a.watch)-1] // it was never without its group
	a.changed(p)
}

// someGroup draws one of the groups with an object; empty for none.
func (a *arena) someGroup() string {
	names := sortedKeys(a.groups.objects)
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(names).Draw(a.t, "which group")
}

// somePod draws one of the pods that is tells of; nil for none.
func (a *arena) somePod(is func(*v1.Pod) bool) *v1.Pod {
	var uids []string
	for _, uid := range sortedKeys(a.pods) {
		if is(a.pods[uid]) {
			uids = append(uids, uid)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	return a.pods[rapid.SampledFrom(uids).Draw(a.t, "which pod")]
}

// setBudget makes a version of a budget.
func (a *arena) setBudget(name string, allowed int32, app string) {
	a.rv++
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: fmt.Sprint(a.rv)}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status.DisruptionsAllowed = allowed
	a.groups.budgets[name] = b
	a.watch = append(a.watch, engine.ObjectSet{Object: b.DeepCopy()})
}

// budgetsFollow is the controller of budgets: it has seen that a pod is gone, and what it allows stays as it was drawn.
func (a *arena) budgetsFollow(gone *v1.Pod) {
	for _, name := range sortedKeys(a.groups.budgets) {
		b := a.groups.budgets[name]
		if app := b.Spec.Selector.MatchLabels["app"]; app == gone.Labels["app"] {
			a.setBudget(name, b.Status.DisruptionsAllowed, app)
		}
	}
}

// disturbances are the moves of which it is noted in which state of the engine they come.
var disturbances = []string{"restart", "clock jump", "member gone", "group gone", "min", "budget", "label", "node", "ungate", "claim", "group back"}

// states are the states in which a disturbance is noted.
var states = []string{"hold", "gang evicts", "pod evicts", "barred"}

// note notes which combinations of a disturbance and a state of the engine this history reaches.
func (a *arena) note(move string) {
	holds, gangs, pods, barred := engine.UnderWay(a.engine)
	for i, on := range []bool{holds, gangs > 0, pods > 0, barred > 0} {
		if on {
			a.groups.reached[move+" during "+states[i]] = true
		}
	}
}

// disturb makes one thing happen that only arenas with groups know. It reports whether it knows the move.
func (a *arena) disturb(move string) bool {
	g := a.groups
	switch move {
	case "group":
		a.anyGroup()
	case "member":
		if name := a.someGroup(); name != "" {
			a.member(name, int32(rapid.IntRange(0, 4).Draw(a.t, "priority")), int64(rapid.IntRange(1, 2).Draw(a.t, "cores")))
		}
	case "member gone":
		if p := a.somePod(func(p *v1.Pod) bool { return p.Annotations[gangAnnotation] != "" }); p != nil {
			a.remove(p)
		}
	case "min":
		if name := a.someGroup(); name != "" {
			a.setGroup(name, func(o *cluster.Gang) { o.MinCount = rapid.IntRange(1, 4).Draw(a.t, "min") })
		}
	case "group gone":
		if name := a.someGroup(); name != "" {
			delete(g.objects, name)
			a.watch = append(a.watch, engine.ObjectGone{Kind: cluster.KindGang, Key: groupKey(name).Object()})
		}
	case "group back":
		if g.made > 0 {
			a.setGroup(fmt.Sprint("g", rapid.IntRange(0, g.made-1).Draw(a.t, "which group")), a.drawGroup)
		}
	case "budget":
		name := rapid.SampledFrom([]string{"b0", "b1"}).Draw(a.t, "which budget")
		if g.budgets[name] != nil && rapid.IntRange(0, 3).Draw(a.t, "budget gone") == 0 {
			delete(g.budgets, name)
			a.watch = append(a.watch, engine.ObjectGone{Kind: cluster.KindBudget, Key: cluster.ObjectKey{Namespace: "default", Name: name}})
			break
		}
		a.setBudget(name, int32(rapid.IntRange(0, 2).Draw(a.t, "allowed")), rapid.SampledFrom([]string{"x", "y"}).Draw(a.t, "app"))
	case "label":
		if p := a.somePod(func(p *v1.Pod) bool { return p.DeletionTimestamp == nil }); p != nil {
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels["app"] = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(a.t, "app")
			a.changed(p)
		}
	case "ungate":
		if p := a.somePod(func(p *v1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }); p != nil {
			p.Spec.SchedulingGates = nil
			p.Generation++
			a.changed(p)
		}
	case "claim":
		name := rapid.SampledFrom([]string{"c0", "c1"}).Draw(a.t, "which claim")
		if g.claims[name] != nil && rapid.Bool().Draw(a.t, "claim gone") {
			delete(g.claims, name)
			a.watch = append(a.watch, engine.ObjectGone{Kind: cluster.KindVolume, Key: cluster.ObjectKey{Name: name}})
			break
		}
		a.rv++
		g.claims[name] = &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(a.rv)}}
		a.watch = append(a.watch, engine.ObjectSet{Object: g.claims[name].DeepCopy()})
	case "catch up":
		a.catchUp()
	case "activate":
		if p := a.somePod(isWaiting); p != nil {
			a.send(engine.Activate{Pods: []record.PodRef{{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}}})
		}
	case "clock jump":
		a.now += record.Time(rapid.SampledFrom([]int{30, 600, 7200}).Draw(a.t, "seconds")) * record.Second
		a.send(engine.Tick{Now: a.now})
	default:
		return false
	}
	return true
}

// catchUp shows the engine all that there is and lets it decide. Evictions stay where they are.
func (a *arena) catchUp() {
	for steps := 0; steps < 200 && (len(a.watch)+len(a.binds) > 0 || a.engine.Ready()); steps++ {
		switch {
		case len(a.watch) > 0:
			a.deliver()
		case len(a.binds) > 0:
			a.bind()
		default:
			a.send(engine.Cycle{})
		}
	}
}

// fill puts pods on the nodes, most of them of low priority, and sometimes a budget over them.
func (a *arena) fill() {
	for i := range rapid.IntRange(0, 8).Draw(a.t, "fill") {
		p := a.create(fmt.Sprint("f", i), int32(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 9}).Draw(a.t, "priority")), int64(rapid.IntRange(1, 2).Draw(a.t, "cores")))
		p.Labels = map[string]string{"app": "x"}
		a.watch = a.watch[:len(a.watch)-1]
		a.changed(p)
	}
	if rapid.Bool().Draw(a.t, "guarded") {
		a.setBudget("b0", int32(rapid.IntRange(0, 1).Draw(a.t, "allowed")), "x")
	}
	for range 3 {
		a.catchUp()
		for len(a.answers) > 0 {
			a.answer()
		}
	}
}

// declared is the priority that a pod's group declares, nil for none.
func (a *arena) declared(p *v1.Pod) *int32 {
	if o := a.groups.objects[p.Annotations[gangAnnotation]]; o != nil {
		return o.Priority
	}
	return nil
}

// evictForGroups takes an eviction in hand and holds it against the rules, when the engine knows all there is to
// know: strictly lower priority by what is declared (R4, R14, A3), whole groups (R5), no pod for a pod that never
// preempts (A13).
func (a *arena) evictForGroups(f engine.Evict) {
	e := &underWay{Evict: f, todo: slices.Clone(f.Victims)}
	a.evictions = append(a.evictions, e)
	for _, ref := range f.Denominate {
		if p := a.pods[ref.UID]; p != nil && p.Status.NominatedNodeName != "" {
			p.Status.NominatedNodeName = ""
			a.changed(p)
		}
	}
	defer func() {
		for _, v := range f.Victims {
			if p := a.pods[v.UID]; p != nil {
				a.groups.begun[p.Annotations[gangAnnotation]] = true
			}
		}
	}()
	boss := a.pods[f.For.UID]
	if f.Undo || f.Finish || boss == nil || len(f.Victims) == 0 {
		return
	}
	a.noteEviction(f, boss)
	if len(a.watch) > 0 {
		return
	}
	power := *boss.Spec.Priority
	for _, ref := range append([]record.PodRef{f.For}, f.Beside...) {
		p := a.pods[ref.UID]
		if p == nil || f.Gang != "" && p.Status.NominatedNodeName == "" && ref != f.For {
			continue
		}
		if ref != f.For || f.Gang == "" {
			power = min(power, *p.Spec.Priority)
		}
		if p.Spec.PreemptionPolicy != nil && f.Gang == "" {
			a.t.Fatalf("pod %s evicts %v, and never preempts", p.Name, named(f.Victims))
		}
	}
	if declared := a.declared(boss); declared != nil && f.Gang != "" {
		power = *declared
	}
	s := a.engine.Snapshot()
	for _, v := range f.Victims {
		p := a.pods[v.UID]
		if p == nil {
			continue
		}
		guard := *p.Spec.Priority
		switch o := a.groups.objects[p.Annotations[gangAnnotation]]; {
		case o == nil || o.Priority == nil:
		case o.Basic:
			guard = max(guard, *o.Priority)
		default:
			guard = *o.Priority
		}
		o := a.groups.objects[p.Annotations[gangAnnotation]]
		if o != nil && o.EvictWhole && a.groups.begun[o.Key.Name] {
			continue // what was begun is ended, whatever protects it by now
		}
		if guard >= power {
			a.t.Fatalf("pod %s, guarded by %d, is evicted for %s of %d", p.Name, guard, boss.Name, power)
		}
		if o != nil && o.EvictWhole {
			for _, m := range s.GangMembers(o.Key) {
				if !m.Pod.Terminating && !slices.ContainsFunc(f.Victims, func(r record.PodRef) bool { return r.UID == string(m.Pod.UID) }) {
					a.t.Fatalf("pod %s of group %s is evicted for %s, and %s stays", v.Name, o.Key, boss.Name, m.Pod.Name)
				}
			}
		}
	}
}

// noteEviction notes what kind of group evicts.
func (a *arena) noteEviction(f engine.Evict, boss *v1.Pod) {
	name := boss.Annotations[gangAnnotation]
	o := a.groups.objects[name]
	if name == "" || o == nil {
		return
	}
	reach := func(what string, is bool) {
		if is {
			a.groups.reached[what] = true
		}
	}
	kind := "gang"
	if o.Basic {
		kind = "basic group"
	}
	a.groups.evicted[name]++
	reach(kind+" evicts", true)
	reach(kind+" evicts again", a.groups.evicted[name] > 1)
	reach(kind+" evicts, declares a priority above its pods'", o.Priority != nil && *o.Priority > *boss.Spec.Priority)
	reach(kind+" evicts, declares a priority below its pods'", o.Priority != nil && *o.Priority < *boss.Spec.Priority)
	for _, uid := range sortedKeys(a.pods) {
		p := a.pods[uid]
		if p.Annotations[gangAnnotation] != name || p.Spec.NodeName != "" || uid == string(boss.UID) {
			continue
		}
		reach(kind+" evicts, has a member of another priority", *p.Spec.Priority != *boss.Spec.Priority)
		reach(kind+" evicts, has a member that never preempts", p.Spec.PreemptionPolicy != nil)
		reach(kind+" evicts, has a member behind a gate", len(p.Spec.SchedulingGates) > 0 || p.Labels["claim"] != "")
	}
	bound := 0
	for _, p := range a.pods {
		if p.Annotations[gangAnnotation] == name && isBound(p) {
			bound++
		}
	}
	reach("surplus members of a gang evict", !o.Basic && bound >= o.MinCount)
}

// TestGroupsDoNotWaitInVain runs random histories of native pod groups and pods by themselves: both policies,
// priorities that groups declare, members that differ in priority, never preempt or wait behind gates, strict
// budgets, deletions and changes of all these while capacity is held or evictions are under way, restarts and clock
// jumps. Held at every eviction: strictly lower priority, whole groups, preemption policies. Held at rest: the
// ledger is the truth, no node is oversold, the liveness property, and the tape plays to the same.
func TestGroupsDoNotWaitInVain(t *testing.T) { rapid.Check(t, func(t *rapid.T) { groupHistory(t) }) }

func groupHistory(t *rapid.T) *arena {
	a := newGroupArena(t)
	a.fill()
	moves := append([]string{"group", "group", "pod", "member", "watch", "watch", "watch", "watch", "cycle", "cycle", "catch up", "catch up", "catch up", "catch up",
		"bind", "answer", "answer", "work", "work", "end", "tick", "tick", "tick", "activate", "activate"}, disturbances...)
	for range rapid.IntRange(1, 100).Draw(t, "moves") {
		move := rapid.SampledFrom(moves).Draw(t, "move")
		if slices.Contains(disturbances, move) {
			a.note(move)
		}
		a.do(move)
	}
	a.settle()
	a.checkBooks()
	a.checkLive(neverRefused)
	a.checkReplay()
	return a
}

// reachable are the combinations that the histories of groups must reach, in the order in which they are shown.
func reachable() (all []string) {
	for _, state := range states {
		for _, d := range disturbances {
			all = append(all, d+" during "+state)
		}
	}
	for _, kind := range []string{"gang", "basic group"} {
		for _, what := range []string{"", " again", ", declares a priority above its pods'", ", declares a priority below its pods'",
			", has a member of another priority", ", has a member that never preempts", ", has a member behind a gate"} {
			all = append(all, kind+" evicts"+what)
		}
	}
	return append(all, "surplus members of a gang evict")
}

// TestGroupHistoriesReachWhatTheyShould counts how many of 1,500 histories reach each combination of a disturbance
// and a state, and each kind of eviction; -v shows the table. A combination that none reaches is one that the
// properties say nothing about.
func TestGroupHistoriesReachWhatTheyShould(t *testing.T) {
	const histories = 1500
	probe.QuickRapid(t, histories)
	if err := flag.Set("rapid.seed", "1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set("rapid.seed", "0"); err != nil {
			t.Error(err)
		}
	})
	count := map[string]int{} // combination -> histories
	rapid.Check(t, func(rt *rapid.T) {
		for what := range groupHistory(rt).groups.reached {
			count[what]++
		}
	})
	for _, what := range reachable() {
		t.Logf("%5d of %d histories: %s", count[what], histories, what)
		if count[what] == 0 {
			t.Errorf("no history reaches: %s", what)
		}
		delete(count, what)
	}
	for what := range count {
		t.Errorf("histories reach a combination that is not listed: %s", what)
	}
}

// checkBooks: the ledger is the truth, and no node is oversold.
func (a *arena) checkBooks() {
	s := a.engine.Snapshot()
	held := map[string]int64{}
	for uid, p := range a.pods {
		_, n, assumed, ok := s.PodOn(cluster.UID(uid))
		if p.Spec.NodeName != "" && (!ok || assumed || s.NodeName(n) != p.Spec.NodeName) || p.Spec.NodeName == "" && ok {
			a.t.Fatalf("pod %s is on %q, the ledger has it: %v", p.Name, p.Spec.NodeName, ok)
		}
		cpu := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
		if held[p.Spec.NodeName] += cpu.Value(); p.Spec.NodeName != "" && held[p.Spec.NodeName] > 4 {
			a.t.Fatalf("node %s is oversold", p.Spec.NodeName)
		}
	}
}

// now as the API server writes it, in whole seconds.
func (a *arena) wallClock() metav1.Time {
	return metav1.Time{Time: time.Unix(int64(a.now/record.Second), 0)}
}
