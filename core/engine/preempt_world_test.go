// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// arena is an API server on which pods are evicted for others: the watch lags, evictions take their time, victim by
// victim, and fail, victims take long to end, nodes vanish, the scheduler is killed. It knows the truth and checks
// the engine by it.
type arena struct {
	stage
	how   preempt.Config
	nodes map[string]bool // node name -> it exists

	evictions []*underWay

	last   map[string]*underWay // preemptor -> its last eviction
	landed map[string]bool      // preemptor that evicted -> it got a place
	// rejected: pod -> the engine's time when this process first wrote its condition. In a session that is when the
	// session began, which may be before the condition's own time.
	rejected  map[string]record.Time
	recreated int
	gangs     *gangArena // nil where there are none
	groups    *groups    // nil where there are none; not with gangs
}

// underWay is one eviction.
type underWay struct {
	engine.Evict
	todo     []record.PodRef // victims that were not worked on
	failed   string
	answered bool
	marked   bool // its victims have the condition, all of them
}

func newArena(t *rapid.T, how preempt.Config) *arena { return newArenaOf(t, how, nil) }

// newArenaOf is an arena with capacity on two nodes, for gangs too if there are any.
func newArenaOf(t *rapid.T, how preempt.Config, gangs *gangArena) *arena {
	a := &arena{how: how, nodes: map[string]bool{}, last: map[string]*underWay{}, landed: map[string]bool{}, gangs: gangs}
	a.stage = newStage(t, a)
	a.start()
	for i := range 2 {
		a.setNode(fmt.Sprint("n", i))
	}
	return a
}

// start begins a scheduler that knows nothing, and shows it what there is.
func (a *arena) start() {
	a.restarted()
	a.rejected = map[string]record.Time{}
	if a.groups != nil {
		for _, ev := range a.groups.list() {
			a.send(ev)
		}
	}
	for _, name := range sortedKeys(a.nodes) {
		a.send(engine.NodeSet{Node: a.node(name)})
	}
	for _, uid := range listed(a.t, a.pods) {
		a.send(engine.PodSet{Pod: a.compact(a.pods[uid])})
	}
	a.send(engine.Synced{})
}

func (a *arena) send(ev engine.Event) {
	decided := a.engine.Now()
	for _, f := range a.step(ev) {
		switch f := f.(type) {
		case engine.Bind:
			a.binds = append(a.binds, f)
		case engine.Evict:
			a.evict(f)
		case engine.Condition:
			if p := a.pods[f.Pod.UID]; p != nil {
				if f.ClearNomination {
					p.Status.NominatedNodeName = ""
				}
				if f.Nominate != "" {
					p.Status.NominatedNodeName = f.Nominate
				}
				since := a.wallClock()
				if at := slices.IndexFunc(p.Status.Conditions, isScheduled); at >= 0 {
					since = p.Status.Conditions[at].LastTransitionTime // the status does not change
				} else {
					a.rejected[f.Pod.UID] = decided
				}
				p.Status.Conditions = append(slices.DeleteFunc(p.Status.Conditions, isScheduled),
					v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason, Message: f.Message,
						ObservedGeneration: f.Generation, LastTransitionTime: since})
				a.changed(p)
			}
		case engine.Wasted:
			if a.gangs != nil {
				a.gangs.wasted += f.Pods
			}
		case engine.Trouble:
			if strings.Contains(f.What, "panic") {
				a.t.Fatalf("contained a panic on %s: %s", f.Object, f.Details)
			}
		}
	}
}

func isScheduled(c v1.PodCondition) bool { return c.Type == v1.PodScheduled }

// evict takes an eviction in hand, and holds it against the rules: strictly lower priority (R4, R14), and nothing
// more for the same pod while its victims are going (R12).
func (a *arena) evict(f engine.Evict) {
	a.checkDelay(f)
	switch {
	case a.groups != nil:
		a.evictForGroups(f)
		return
	case f.Gang != "" || a.gangs != nil:
		a.evictUnits(f)
		return
	}
	boss := a.pods[f.For.UID]
	for _, v := range f.Victims {
		if p := a.pods[v.UID]; boss != nil && p != nil && *p.Spec.Priority >= *boss.Spec.Priority {
			a.t.Fatalf("pod %s of priority %d is evicted for %s of %d", p.Name, *p.Spec.Priority, boss.Name, *boss.Spec.Priority)
		}
	}
	if before := a.last[f.For.UID]; before != nil && before.failed == "" && a.nodes[before.Node] {
		for _, v := range before.Victims {
			if p := a.pods[v.UID]; p != nil && (p.DeletionTimestamp != nil || !before.answered) {
				a.t.Fatalf("pod %s evicts %v from %s while %s is going for it on %s", f.For.Name, named(f.Victims), f.Node, v.Name, before.Node)
			}
		}
	}
	e := &underWay{Evict: f, todo: slices.Clone(f.Victims)}
	if len(f.Victims) > 0 {
		a.last[f.For.UID] = e
		a.landed[f.For.UID] = false
	}
	for _, ref := range f.Denominate {
		if p := a.pods[ref.UID]; p != nil && p.Status.NominatedNodeName == f.Node {
			p.Status.NominatedNodeName = ""
			a.changed(p)
		}
	}
	a.evictions = append(a.evictions, e)
}

// work carries out one victim of an eviction: any of those before the last, or the last when it is alone.
func (a *arena) work() {
	if len(a.evictions) == 0 {
		return
	}
	i := rapid.IntRange(0, len(a.evictions)-1).Draw(a.t, "which eviction")
	e := a.evictions[i]
	if (a.gangs != nil || a.groups != nil) && !e.marked {
		e.marked = true
		for _, v := range e.todo {
			if p := a.pods[v.UID]; p != nil && p.DeletionTimestamp == nil {
				p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler})
				a.changed(p)
			}
		}
	}
	if len(e.todo) > 0 {
		k := 0
		if len(e.todo) > 1 {
			k = rapid.IntRange(0, len(e.todo)-2).Draw(a.t, "which victim")
		}
		v := e.todo[k]
		e.todo = slices.Delete(e.todo, k, k+1)
		if (a.gangs != nil || a.groups != nil) && a.needless(e) {
			e.failed, e.todo = "nobody needs the room", nil
		} else if !a.calm && rapid.IntRange(0, 7).Draw(a.t, "refused") == 0 {
			e.failed = "refused"
			e.todo = nil
		} else if p := a.pods[v.UID]; p != nil {
			a.terminate(p)
			if a.gangs != nil {
				a.gangs.terminated(p)
			}
		}
	}
	if len(e.todo) == 0 {
		e.answered = true
		a.evictions = slices.Delete(a.evictions, i, i+1)
		a.answers = append(a.answers, engine.EvictDone{For: e.For, Decision: e.Decision, Message: e.failed})
	}
}

// terminate marks and deletes a pod as the evictor does. One that is not bound ends at once.
func (a *arena) terminate(p *v1.Pod) {
	if p.Spec.NodeName == "" {
		a.remove(p)
		return
	}
	p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler})
	a.changed(p)
	if p.DeletionTimestamp == nil {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		if a.groups != nil {
			*p.DeletionTimestamp = a.wallClock()
		}
	}
	a.changed(p)
}

// compact is a pod as the engine is shown it.
func (a *arena) compact(p *v1.Pod) *cluster.Pod {
	c := a.intake.Pod(p.DeepCopy())
	if a.gangs != nil {
		a.gangs.mark(p, c)
	}
	if a.groups != nil {
		a.groups.mark(p, c)
	}
	return c
}

func (a *arena) fresh() *engine.Engine {
	if a.groups != nil {
		return a.groups.engine(a.how)
	}
	if a.gangs != nil {
		return gangPreemptingEngine(a.how, a.gangs.holdAfter, a.gangs.period)
	}
	return preemptingEngineFlushing(a.how, noFlush)
}

// create makes a pending pod.
func (a *arena) create(name string, priority int32, cpu int64) *v1.Pod {
	a.rv++
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(fmt.Sprintf("%s-%d", name, a.rv))}}
	p.Spec.SchedulerName, p.Spec.Priority = "default-scheduler", &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(cpu, apiresource.DecimalSI)}}}}
	if a.gangs != nil && rapid.IntRange(0, 3).Draw(a.t, "agrees") == 0 {
		p.Annotations = map[string]string{convert.EvictableAnnotation: "true"}
	}
	a.pods[string(p.UID)] = p
	a.changed(p)
	return p
}

func (a *arena) node(name string) *cluster.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourcePods: apiresource.MustParse("4")}
	return a.intake.Node(n)
}

func (a *arena) setNode(name string) {
	a.nodes[name] = true
	a.watch = append(a.watch, engine.NodeSet{Node: a.node(name)})
}

// bind lets the API server handle one bind.
func (a *arena) bind() {
	if len(a.binds) == 0 {
		return
	}
	b := a.binds[0]
	a.binds = a.binds[1:]
	done := engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.Bound}
	p := a.pods[b.Pod.UID]
	switch {
	case p == nil:
		done.Outcome = engine.PodVanished
	case p.Spec.NodeName == "":
		p.Spec.NodeName = b.Node
		p.Status.StartTime = &metav1.Time{Time: time.Unix(int64(a.now/record.Second), 0)}
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, isScheduled)
		a.changed(p)
		if _, evicted := a.landed[b.Pod.UID]; evicted {
			a.landed[b.Pod.UID] = true
		}
		if a.gangs != nil {
			a.gangs.bound(a, p, b)
		}
		if a.groups != nil && b.Gang != nil {
			p.Annotations[quorumAnnotation] = fmt.Sprint(b.Gang.Quorum)
		}
	}
	a.answers = append(a.answers, done)
}

// end ends one pod that is being deleted. A controller makes some of them again.
func (a *arena) end() {
	for _, uid := range sortedKeys(a.pods) {
		p := a.pods[uid]
		if p.DeletionTimestamp == nil || !a.calm && rapid.Bool().Draw(a.t, "not yet") {
			continue
		}
		a.remove(p)
		if a.groups != nil {
			a.budgetsFollow(p)
		}
		if a.recreated < 6 && rapid.Bool().Draw(a.t, "made again") {
			a.recreated++
			cpu := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
			again := a.create(p.Name+"+", *p.Spec.Priority, cpu.Value())
			if a.gangs != nil || a.groups != nil {
				again.Labels = p.Labels
				again.Annotations = map[string]string{gangAnnotation: p.Annotations[gangAnnotation]}
				again.OwnerReferences = p.OwnerReferences
				a.changed(again)
			}
		}
		return
	}
}

// restart kills the scheduler. What it had asked for is done in part, or not at all.
func (a *arena) restart() {
	for len(a.binds) > 0 && rapid.Bool().Draw(a.t, "the bind got through") {
		a.bind()
	}
	for len(a.evictions) > 0 && rapid.Bool().Draw(a.t, "the victim was deleted") {
		a.work()
	}
	for _, e := range a.evictions {
		e.failed = "killed"
	}
	a.binds, a.evictions, a.answers, a.watch = nil, nil, nil, nil
	a.start()
}

// do makes one thing happen.
func (a *arena) do(move string) {
	if a.groups != nil && a.disturb(move) {
		return
	}
	switch move {
	case "pod":
		a.create(fmt.Sprint("p", len(a.pods)), int32(rapid.IntRange(0, 3).Draw(a.t, "priority")), int64(rapid.IntRange(1, 4).Draw(a.t, "cores")))
	case "delete":
		for _, uid := range sortedKeys(a.pods) {
			if rapid.IntRange(0, 3).Draw(a.t, "this one") == 0 {
				a.remove(a.pods[uid])
				return
			}
		}
	case "node":
		name := fmt.Sprint("n", rapid.IntRange(0, 2).Draw(a.t, "node"))
		if a.nodes[name] {
			delete(a.nodes, name)
			a.watch = append(a.watch, engine.NodeGone{Name: name})
		} else {
			a.setNode(name)
		}
	case "watch":
		a.deliver()
	case "cycle":
		a.send(engine.Cycle{})
	case "bind":
		a.bind()
	case "answer":
		a.answer()
	case "work":
		a.work()
	case "end":
		a.end()
	case "tick":
		a.now += record.Time(rapid.IntRange(0, 3).Draw(a.t, "seconds")) * record.Second
		a.send(engine.Tick{Now: a.now})
	case "restart":
		a.restart()
	}
}

// settle ends all faults and lets everything end, well before the flush that would hide a lost wake.
func (a *arena) settle() {
	a.calm = true
	if len(a.nodes) == 0 {
		a.setNode("n0") // without nodes pods are tried again without end
	}
	for round, steps := 0, 0; round < a.rounds() || (a.gangs != nil || a.groups != nil) && a.busy(); steps++ {
		if steps > 5000 {
			a.t.Fatal("it never comes to rest")
		}
		a.drain()
		if a.decideOrWait() {
			round++
		}
	}
}

// rounds is how often time goes on until there is rest. In sessions checkRest lets the time go on that they need.
func (a *arena) rounds() int {
	if a.gangs != nil && a.gangs.period > 0 {
		return 5
	}
	return 40
}

// drain lets everything happen that is on its way, the ends of victims too.
func (a *arena) drain() {
	for len(a.watch)+len(a.binds)+len(a.evictions)+len(a.answers) > 0 {
		a.deliver()
		a.bind()
		a.work()
		a.answer()
	}
	if a.end(); len(a.watch) > 0 {
		a.drain()
	}
}

// busy reports whether anything is left to be done without time going on.
func (a *arena) busy() bool {
	return a.engine.Ready() || len(a.watch)+len(a.binds)+len(a.evictions)+len(a.answers) > 0
}

// checkRest: the ledger is the truth, no pod waits behind a gate or though there is capacity, and no node is oversold.
func (a *arena) checkRest() {
	if engine.WorksInSessions(a.engine) {
		a.quiesce() // what comes free during a session is not tried before the next one
	}
	a.checkBooks()
	for uid, p := range a.pods {
		if p.Spec.NodeName != "" {
			continue
		}
		if fit, _ := inspect(a.engine).ExplainPod(p.Namespace, p.Name); p.Annotations[gangAnnotation] == "" && fit.Pod.UID == uid && fit.Fit != nil && fit.Fit.Feasible > 0 {
			a.t.Fatalf("pod %s waits in %s and %v would take it", p.Name, fit.Where, fit.Fit.FeasibleExamples)
		}
	}
	a.checkNobodyStarves()
	c := inspect(a.engine).QueueReport().Counts
	if a.gangs != nil {
		c.Gated = a.gangs.gated(a)
	}
	if engine.WorksInSessions(a.engine) {
		c.Active, c.Backoff = 0, 0 // a hold that ends moves them; the next session tries them wherever they are
	}
	if c.Gated+c.Active+c.Backoff+c.InFlight > 0 {
		a.t.Fatalf("at rest %+v", c)
	}
	a.checkLive(neverRefused)
}

// checkNobodyStarves: no pod waits that a node would take without its pods of lower priority, so no wake was lost.
func (a *arena) checkNobodyStarves() {
	if a.gangs != nil {
		a.gangs.checkNobodyStarves(a)
		return
	}
	for _, p := range a.pods {
		if p.Spec.NodeName != "" {
			continue
		}
		for node := range a.nodes {
			cpu, count := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU], 1
			for _, other := range a.pods {
				if other.Spec.NodeName == node && *other.Spec.Priority >= *p.Spec.Priority {
					cpu.Add(other.Spec.Containers[0].Resources.Requests[v1.ResourceCPU])
					count++
				}
			}
			if cpu.Value() <= 4 && count <= 4 {
				r, _ := inspect(a.engine).ExplainPod(p.Namespace, p.Name)
				a.t.Fatalf("pod %s of priority %d waits in %s, nominated to %q, though evictions on %s would make room", p.Name, *p.Spec.Priority, r.Where, r.Nominated, node)
			}
		}
	}
}

// TestEvictionsHoldTheRules runs random histories of pods of four priorities on two nodes: victims that take long
// to end, deletes that fail, nodes that vanish after the evictions, pods of higher priority that come in between,
// and a scheduler that is killed at any point. Held at every eviction: strictly lower priority (R4, R14), nothing
// more for a pod whose victims are going (R12). Held at rest: no pod waits behind a gate, no pod waits though there
// is capacity or evictions would free it, no node is oversold, and the tape plays to the same. It catches the
// mutants gateOpensLate and failureUnheard; the stories see the others.
func TestEvictionsHoldTheRules(t *testing.T) { rapid.Check(t, eviction) }

func eviction(t *rapid.T) {
	a := newArena(t, preempt.Config{Sync: rapid.IntRange(0, 4).Draw(t, "sync") == 0, After: anyDelay(t)})
	for range rapid.IntRange(1, 80).Draw(t, "moves") {
		a.do(rapid.SampledFrom([]string{"pod", "pod", "watch", "watch", "watch", "watch", "cycle", "cycle", "cycle", "bind", "bind", "answer", "answer",
			"work", "work", "end", "tick", "tick", "delete", "node", "restart"}).Draw(t, "move"))
	}
	a.settle()
	a.checkRest()
	a.checkReplay()
}

// TestEvictorsLand: where the pods that evict are all of one priority, and nothing but the watch and the victims
// takes its time, each pod for which others were evicted gets a place. No eviction is wasted.
func TestEvictorsLand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArena(t, preempt.Config{})
		a.calm = true
		for i := range rapid.IntRange(1, 8).Draw(t, "victims") {
			a.create(fmt.Sprint("low", i), int32(rapid.IntRange(0, 2).Draw(t, "priority")), int64(rapid.IntRange(1, 2).Draw(t, "cores")))
		}
		a.settle()
		a.recreated = 100
		for i := range rapid.IntRange(1, 4).Draw(t, "evictors") {
			a.create(fmt.Sprint("high", i), 9, int64(rapid.IntRange(1, 4).Draw(t, "cores")))
			for range rapid.IntRange(0, 12).Draw(t, "moves") {
				a.do(rapid.SampledFrom([]string{"watch", "cycle", "bind", "answer", "work", "end", "tick"}).Draw(t, "move"))
			}
		}
		a.settle()
		for uid, landed := range a.landed {
			if !landed {
				t.Fatalf("pods were evicted for %s, which has no place", uid)
			}
		}
		a.checkRest()
	})
}
