// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// world is an API server as far as the engine can tell: objects, a watch that lags, binds that fail or whose answer
// comes late. It knows the truth and checks the engine against it.
type world struct {
	stage
	nodes map[string]*v1.Node // node name -> the API server's version

	writes   []engine.Prepare
	locks    map[string]*v1.PersistentVolume // name -> the API server's version
	recalled map[uint64]bool                 // decision -> its bind was recalled
	period   record.Time                     // of sessions; 0 for none
	deaf     bool                            // a session was under way before the last step, and keeps the events that it receives
	oursOnly bool                            // no other scheduler binds and no node shrinks, so oversell is ours

	gangs *gangWorld // nil where there are none
}

func newWorld(t *rapid.T) *world {
	w := &world{nodes: map[string]*v1.Node{}, locks: map[string]*v1.PersistentVolume{},
		recalled: map[uint64]bool{}}
	w.stage = newStage(t, w)
	w.begin(0)
	return w
}

// begin starts the scheduler, which knows nothing.
func (w *world) begin(sessions record.Time) {
	w.period = sessions
	w.restarted()
	w.send(engine.Synced{})
}

func freshEngine() *engine.Engine { return engineOf(0) }

// fresh is an engine as this world wants it.
func (w *world) fresh() *engine.Engine { return engineOf(w.period) }

// engineOf works in sessions if period is above 0.
func engineOf(period record.Time) *engine.Engine {
	return engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{locked()}, Less: basic.PrioritySort{}, SessionPeriod: period,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
	})
}

// send feeds one event and checks what comes of it.
func (w *world) send(ev engine.Event) {
	flights := engine.Flights(w.engine)
	stranger := w.foreignNode(ev, flights)
	w.deaf = engine.InSession(w.engine)
	var tryable []engine.Tryable
	if _, cycle := ev.(engine.Cycle); cycle && w.gangs != nil {
		tryable = engine.TryableUnits(w.engine)
	}
	effects := w.step(ev)
	if stranger != "" {
		w.checkRechecked(stranger, flights)
	}
	if w.gangs != nil {
		w.checkGangs(effects)
		w.checkExtras(effects, tryable)
	}
	for _, f := range effects {
		w.checkOurs(f)
		switch f := f.(type) {
		case engine.Bind:
			if slices.ContainsFunc(flights, func(was engine.Flight) bool { return was.Decision == f.Decision && was.Recalled }) {
				w.t.Fatalf("pod %s goes on to its bind although it was taken back", f.Pod.Name)
			}
			w.binds = append(w.binds, f)
		case engine.Recall:
			w.recall(f)
		case engine.Prepare:
			w.writes = append(w.writes, f)
		case engine.Release:
			w.unlock(f)
		case engine.Nominate:
			if p := w.pods[f.Pod.UID]; p != nil && p.Spec.NodeName == "" {
				p.Status.NominatedNodeName = f.Node
				w.changed(p)
			}
		case engine.Trouble:
			if strings.Contains(f.What, "panic") {
				w.t.Fatalf("contained a panic on %s: %s", f.Object, f.Details)
			}
		case engine.Evict:
			w.evict(f)
		case engine.Condition:
			if p := w.pods[f.Pod.UID]; p != nil {
				w.setCondition(p, f)
			}
		}
	}
}

func (w *world) setCondition(p *v1.Pod, f engine.Condition) {
	old := slices.IndexFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	c := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason, Message: f.Message, ObservedGeneration: f.Generation}
	if f.ClearNomination {
		p.Status.NominatedNodeName = ""
	} else if old >= 0 && p.Status.Conditions[old] == c && len(w.watch) == 0 && !w.deaf {
		w.t.Fatalf("condition of %s is written again unchanged: %s", f.Pod.Name, f.Message)
	}
	p.Status.Conditions = []v1.PodCondition{c}
	w.changed(p)
}

func (w *world) createPod(name string) { w.changed(w.newPod(name)) }

// newPod is a pod that no component has seen yet.
func (w *world) newPod(name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(fmt.Sprintf("%s-%d", name, w.rv))}}
	p.Spec.SchedulerName = "default-scheduler"
	cpu := rapid.SampledFrom([]string{"0", "1", "1", "2", "3", "50E"}).Draw(w.t, "cpu")
	priority := int32(rapid.IntRange(0, 2).Draw(w.t, "priority"))
	p.Spec.Priority = &priority
	c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}
	if rapid.IntRange(0, 4).Draw(w.t, "port") == 0 {
		c.Ports = []v1.ContainerPort{{HostPort: 80}}
	}
	p.Spec.Containers = []v1.Container{c}
	if rapid.IntRange(0, 5).Draw(w.t, "gated") == 0 {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "wait"}}
	}
	if name := rapid.SampledFrom([]string{"", "", "l0", "l1", "l2"}).Draw(w.t, "lock"); name != "" {
		p.Labels = map[string]string{rapid.SampledFrom([]string{"lock", "latch"}).Draw(w.t, "looked at"): name}
	}
	if rapid.IntRange(0, 6).Draw(w.t, "nominated") == 0 {
		p.Status.NominatedNodeName = "n0"
	}
	w.pods[string(p.UID)] = p
	return p
}

func (w *world) setNode(name string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cores := rapid.IntRange(1, 4).Draw(w.t, "cores")
	if old := w.nodes[name]; old != nil && w.oursOnly {
		had := old.Status.Allocatable[v1.ResourceCPU]
		cores = max(cores, int(had.Value()))
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(cores), apiresource.DecimalSI), v1.ResourcePods: apiresource.MustParse("3")}
	w.nodes[name] = n
	w.watch = append(w.watch, engine.NodeSet{Node: w.intake.Node(n)})
}

// pick draws one of the pods that satisfy ok, nil if there is none.
func (w *world) pick(what string, ok func(*v1.Pod) bool) *v1.Pod {
	var uids []string
	for uid, p := range w.pods {
		if ok(p) {
			uids = append(uids, uid)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	slices.Sort(uids)
	return w.pods[rapid.SampledFrom(uids).Draw(w.t, what)]
}

func pending(p *v1.Pod) bool { return p.Spec.NodeName == "" && p.DeletionTimestamp == nil }

// happen makes one random thing happen.
func (w *world) happen() {
	moves := []string{"pod", "pod", "node", "delete", "terminate", "ungate", "watch", "watch", "watch", "bind", "bind", "answer", "answer", "write", "lock", "turn",
		"cycle", "cycle", "cycle", "tick", "tick", "stale tick", "restart"}
	if !w.oursOnly {
		moves = append(moves, "foreign bind", "stranger", "stranger", "node gone")
	}
	w.do(rapid.SampledFrom(moves).Draw(w.t, "move"))
}

// do makes one thing happen.
func (w *world) do(move string) {
	switch move {
	case "pod":
		w.createPod(fmt.Sprintf("p%d", rapid.IntRange(0, 9).Draw(w.t, "name")))
	case "node":
		w.setNode(fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(w.t, "node")))
	case "node gone":
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(w.t, "node"))
		if w.nodes[name] != nil {
			delete(w.nodes, name)
			w.watch = append(w.watch, engine.NodeGone{Name: name})
		}
	case "delete":
		if p := w.pick("deleted", func(*v1.Pod) bool { return true }); p != nil {
			w.remove(p)
		}
	case "terminate":
		if p := w.pick("terminated", func(p *v1.Pod) bool { return p.DeletionTimestamp == nil }); p != nil {
			p.DeletionTimestamp = &metav1.Time{}
			p.DeletionTimestamp.Time = p.DeletionTimestamp.AddDate(1, 0, 0)
			w.changed(p)
		}
	case "ungate":
		if p := w.pick("ungated", func(p *v1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }); p != nil {
			p.Spec.SchedulingGates = nil
			w.changed(p)
		}
	case "foreign bind":
		if p := w.pick("taken", pending); p != nil && len(w.nodes) > 0 {
			p.Spec.NodeName = "n1"
			w.changed(p)
		}
	case "stranger":
		w.bindStranger()
	case "watch":
		w.deliver()
	case "bind":
		w.carryOut()
	case "answer":
		w.answer()
	case "write":
		w.write()
	case "turn":
		w.turnLock()
	case "lock":
		name := rapid.SampledFrom([]string{"l0", "l1"}).Draw(w.t, "which lock")
		if w.locks[name] == nil {
			w.setLock(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	case "cycle":
		w.send(engine.Cycle{})
	case "tick":
		w.now += record.Time(rapid.IntRange(0, 3000).Draw(w.t, "ms")) * record.Second / 1000
		w.send(engine.Tick{Now: w.now})
	case "stale tick":
		w.send(engine.Tick{Now: w.now - record.Second})
		if w.engine.Now() < w.now && !engine.InSession(w.engine) {
			w.t.Fatalf("time went back from %d to %d", w.now, w.engine.Now())
		}
	case "restart":
		w.restart()
	}
}

// carryOut lets the API server handle one of the binds, in any order.
func (w *world) carryOut() {
	if len(w.binds) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.binds)-1).Draw(w.t, "which bind")
	b := w.binds[i]
	w.binds = slices.Delete(w.binds, i, i+1)
	done := engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.BindFailed, Message: "refused"}
	p := w.pods[b.Pod.UID]
	switch {
	case p == nil:
		done.Outcome = engine.PodVanished
	case p.Spec.NodeName != "" && w.oursOnly:
		w.t.Fatalf("pod %s is bound to %s and is bound again to %s", p.Name, p.Spec.NodeName, b.Node)
	case p.Spec.NodeName == b.Node:
		done.Outcome = engine.Bound
	case p.Spec.NodeName != "":
		done.Outcome, done.Node = engine.BoundElsewhere, p.Spec.NodeName
	case p.DeletionTimestamp != nil:
	case !w.calm && rapid.IntRange(0, 3).Draw(w.t, "refuse") == 0:
	default:
		w.checkLock(p)
		p.Spec.NodeName = b.Node
		p.Status.Conditions = nil
		w.gangs.bound(p, b)
		w.noteWhole()
		w.changed(p)
		done.Outcome = engine.Bound
		w.checkRoom(b.Node)
	}
	w.answers = append(w.answers, done)
}

// checkRoom: no node holds more than it offers, by the API server's own books.
func (w *world) checkRoom(node string) {
	n := w.nodes[node]
	if n == nil || !w.oursOnly {
		return
	}
	var cpu, count int64
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			q := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
			cpu += q.MilliValue()
			count++
		}
	}
	offered := n.Status.Allocatable[v1.ResourceCPU]
	if cpu > offered.MilliValue() || count > 3 {
		w.t.Fatalf("node %s is oversold: %d of %d thousandths of a core, %d pods", node, cpu, offered.MilliValue(), count)
	}
}

// restart kills the scheduler at this instant: binds on the way are carried out or lost, then everything is listed
// anew.
func (w *world) restart() {
	for len(w.binds) > 0 {
		if rapid.Bool().Draw(w.t, "the bind got through") {
			w.carryOut()
		} else {
			w.binds = w.binds[1:]
		}
	}
	for len(w.writes) > 0 {
		if rapid.Bool().Draw(w.t, "the writes got through") {
			w.write()
		} else {
			w.writes = w.writes[1:]
		}
	}
	w.answers, w.watch, w.recalled = nil, nil, map[uint64]bool{}
	w.restarted()
	for _, name := range sortedKeys(w.locks) {
		w.send(engine.ObjectSet{Object: w.locks[name].DeepCopy()})
	}
	for _, name := range sortedKeys(w.nodes) {
		w.send(engine.NodeSet{Node: w.intake.Node(w.nodes[name])})
	}
	for _, uid := range listed(w.t, w.pods) {
		w.send(engine.PodSet{Pod: w.compact(w.pods[uid])})
	}
	w.send(engine.Synced{})
}

// listed are the UIDs of pods in the order of an initial list: any, for they are sorted by names, which can be any.
func listed(t *rapid.T, pods map[string]*v1.Pod) []string {
	return rapid.Permutation(sortedKeys(pods)).Draw(t, "listed")
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// settle ends all faults and lets backoffs run out. It ends well before the flush of unschedulable pods, which would
// hide a wake that was lost.
func (w *world) settle() {
	w.calm = true
	rounds := 30
	if w.period > 0 {
		rounds = 12 // each session tries every unit
	}
	for round := 0; round < rounds; {
		w.drain()
		if w.turnLock(); len(w.watch) > 0 {
			continue
		}
		if w.decideOrWait() {
			round++
		}
	}
}

// drain lets everything happen that is on its way.
func (w *world) drain() {
	for len(w.watch) > 0 || len(w.binds) > 0 || len(w.writes) > 0 || len(w.answers) > 0 {
		w.deliver()
		w.write()
		w.turnLock()
		w.carryOut()
		w.answer()
	}
	if w.turnLock(); len(w.watch) > 0 {
		w.drain()
	}
}

// checkRest compares the engine at rest with the truth.
func (w *world) checkRest() {
	w.checkLedger()
	w.checkLocks()
	w.checkWaiting()
	w.checkLive(w.refused)
}

// refused reports whether the latch of a pod is refused while it is reserved, which no answer about the pod knows.
func (w *world) refused(uid string) bool {
	p := w.pods[uid]
	return p != nil && trouble(w.engine.Snapshot(), w.intake.Pod(p), p.Labels["latch"]) != ""
}

// checkLedger: the ledger has what the API server has, and nothing is on its way.
func (w *world) checkLedger() {
	s := w.engine.Snapshot()
	bound := 0
	for uid, p := range w.pods {
		at, n, assumed, ok := s.PodOn(cluster.UID(uid))
		switch {
		case p.Spec.NodeName == "" && ok:
			w.t.Fatalf("pod %s is pending and the ledger has it on %s", p.Name, s.NodeName(n))
		case p.Spec.NodeName != "" && (!ok || assumed || s.NodeName(n) != p.Spec.NodeName || at.NodeName != p.Spec.NodeName):
			w.t.Fatalf("pod %s is on %s; the ledger: found %v, assumed %v", p.Name, p.Spec.NodeName, ok, assumed)
		case p.Spec.NodeName != "":
			bound++
		}
	}
	if s.PodCount() != bound {
		w.t.Fatalf("the ledger has %d pods, %d are bound", s.PodCount(), bound)
	}
	if n := w.engine.InFlightEvents(); n != 0 {
		w.t.Fatalf("%d events are kept in flight at rest", n)
	}
	if n := w.engine.Binding(); n != 0 {
		w.t.Fatalf("%d binds have no outcome at rest", n)
	}
}

// checkWaiting: each pending pod waits in exactly one place, none waits that a node has capacity for, and none that
// was refused is still promised a node.
func (w *world) checkWaiting() {
	report := inspect(w.engine).QueueReport()
	where := map[string]record.SubQueue{}
	for _, e := range report.Entries {
		if where[e.Pod.UID] != "" {
			w.t.Fatalf("pod %s waits twice", e.Pod.Name)
		}
		where[e.Pod.UID] = e.Where
		for _, uid := range e.Members {
			where[uid] = e.Where
		}
		if w.pods[e.Pod.UID] == nil || w.pods[e.Pod.UID].Spec.NodeName != "" {
			w.t.Fatalf("pod %s waits in %s and is bound or gone", e.Pod.Name, e.Where)
		}
	}
	for uid, p := range w.pods {
		if !pending(p) {
			continue
		}
		if where[uid] == "" {
			w.t.Fatalf("pod %s is pending and waits nowhere", p.Name)
		}
		if where[uid] == record.Unschedulable && p.Status.NominatedNodeName != "" {
			w.t.Fatalf("pod %s was refused and is still promised %s", p.Name, p.Status.NominatedNodeName)
		}
		if len(p.Spec.SchedulingGates) > 0 || trouble(w.engine.Snapshot(), w.intake.Pod(p), p.Labels["latch"]) != "" {
			continue
		}
		if p.Annotations[gangAnnotation] != "" {
			continue // it waits for the others
		}
		fit, _ := inspect(w.engine).ExplainPod(p.Namespace, p.Name)
		if fit.Pod.UID == uid && fit.Fit != nil && fit.Fit.Feasible > 0 {
			w.t.Fatalf("pod %s waits in %s and %v would take it", p.Name, where[uid], fit.Fit.FeasibleExamples)
		}
	}
}

// inspect returns what answers questions about an engine.
func inspect(e *engine.Engine) question.Inspector { return question.New(e.View()) }
