// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The configuration of every run.
const (
	seed                 = 1
	initialBackoff       = record.Second
	maxBackoff           = 10 * record.Second
	unschedulableTimeout = 300 * record.Second
)

// scheduler places pods one by one, as kube-scheduler with a gang plugin does: one pod per cycle is searched a node,
// reserved, permitted and bound. It takes the events of the engine and returns its effects, so that a simulation runs
// either. It knows no preemption, volumes or extenders, no other scheduler that binds its pods, and no objects beside
// pods and nodes.
type scheduler struct {
	store  *cluster.Store
	queue  *queue.Queue
	placer *place.Placer
	permit *permit

	// pending has the newest version of each pod that is not seen bound.
	pending map[cluster.UID]*cluster.Pod
	// reserved has the pods with a node whose bind has no outcome.
	reserved  map[cluster.UID]*reservation
	now       record.Time
	wake      record.Time // of the last Wake effect, 0 for none
	decisions uint64
	synced    bool
	effects   []engine.Effect
}

// reservation is a pod that has a node and is not bound.
type reservation struct {
	unit     *queue.Unit
	pod      *cluster.Pod
	node     string
	decision uint64
	// gang is what the pod waits for; nil if it is in no gang.
	gang *gang
	// allowed: the pod may be bound. rejected is why it must not wait any longer; empty if it may.
	allowed  bool
	rejected string
	// shown: the node was shown as the nominated one. bindSent: the bind has no outcome yet.
	shown, bindSent bool
}

// newScheduler makes a scheduler that knows no nodes and no pods.
func newScheduler(style Style) *scheduler {
	s := &scheduler{store: cluster.NewStore(), pending: map[cluster.UID]*cluster.Pod{}, reserved: map[cluster.UID]*reservation{}}
	s.permit = newPermit(s, style)
	profile := engine.DefaultProfile(v1.DefaultSchedulerName)
	s.placer = place.New(place.Profile{Filters: profile.Filters, Scorers: profile.Scorers}, engine.NoMeter{}, place.DefaultClassBytes)
	units := queue.Profile{Gates: append(profile.Gates, permitPlugin{s.permit})}
	for _, w := range append(profile.Wakers, permitPlugin{s.permit}) {
		units.Wakes = append(units.Wakes, queue.PluginWakes{Plugin: w.Name(), Wakes: w.Wakes()})
	}
	s.queue = queue.New(queue.Config{
		InitialBackoff:       initialBackoff,
		MaxBackoff:           maxBackoff,
		UnschedulableTimeout: unschedulableTimeout,
		PopFromBackoff:       true,
		Less:                 s.permit.order(basic.PrioritySort{}),
		Profiles:             map[string]queue.Profile{v1.DefaultSchedulerName: units},
		State:                s.store.Snapshot(),
		Meter:                engine.NoMeter{},
	})
	return s
}

// Ready reports whether a Cycle would try a pod.
func (s *scheduler) Ready() bool { return s.synced && s.queue.Ready() }

// Binding returns how many pods have a node and are not seen bound.
func (s *scheduler) Binding() int { return len(s.reserved) }

// Step takes one event and returns its effects, which are valid until the next Step.
func (s *scheduler) Step(ev engine.Event) []engine.Effect {
	clear(s.effects)
	s.effects = s.effects[:0]
	s.store.Begin()
	s.handle(ev)
	s.wakeByNominations()
	s.permit.settle()
	s.store.Commit()
	s.wakeByNominations()
	s.reportMoves()
	at, ok := s.queue.NextTick()
	for _, next := range []record.Time{s.nextTimeout(), s.permit.nextCheck()} {
		if next != 0 && (!ok || next < at) {
			at, ok = next, true
		}
	}
	if ok && at != s.wake {
		s.wake = at
		s.emit(engine.Wake{At: at})
	}
	return s.effects
}

func (s *scheduler) handle(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.NodeSet:
		s.setNode(ev.Node)
	case engine.NodeGone:
		s.deleteNode(ev.Name)
	case engine.PodSet:
		s.setPod(ev.Pod)
	case engine.PodGone:
		s.deletePod(cluster.UID(ev.Pod.UID))
	case engine.BindDone:
		s.bindDone(ev)
	case engine.Tick:
		if ev.Now < s.now {
			return
		}
		s.now = ev.Now
		s.store.SetNow(ev.Now)
		s.queue.Tick(ev.Now)
		s.proceedDue()
		s.permit.tick()
	case engine.Synced:
		s.synced = true
	case engine.Cycle:
		s.cycle()
	default:
		panic(fmt.Sprintf("gangs: event of type %T", ev))
	}
}

// emit appends an effect, after the moves that came before it.
func (s *scheduler) emit(f engine.Effect) {
	s.reportMoves()
	s.effects = append(s.effects, f)
}

func (s *scheduler) reportMoves() {
	for _, m := range s.queue.TakeMoves() {
		s.effects = append(s.effects, engine.Moved{Move: m})
	}
}

// cycle tries one pod.
func (s *scheduler) cycle() {
	if !s.Ready() {
		return
	}

	// 1. Pop the next pod; drop it if it is being deleted.
	unit, ok := s.queue.Pop()
	if !ok {
		return
	}
	p := unit.Members[0]
	if p.Terminating {
		s.emit(engine.WriteEvent{Pod: p.Ref(), Type: "Warning", Reason: "FailedScheduling", Action: "Scheduling",
			Note: "skip schedule deleting pod: " + p.Key()})
		s.queue.Done(p.UID)
		return
	}
	s.decisions++
	d := s.decision(unit, s.decisions)

	// 2. Reject it without a search if its gang must not be tried (upstream: PreFilter).
	if why := s.permit.check(p); why != "" {
		s.reject(unit, d, why, s.permit.Plugin)
		s.report(p, engine.ReasonUnschedulable, why, p.Nominated != "")
		s.permit.failed(p, false)
		return
	}

	// 3. Search all nodes; without one, the pod goes back to the queue.
	out := s.placer.Place(s.store.Snapshot(), p, s.queue, place.Draw(seed, s.decisions))
	d.Nodes, d.Feasible = out.Nodes, out.Feasible
	switch {
	case out.Err != nil:
		s.fail(unit, d, out.Err.Error(), false)
		return
	case out.Node == cluster.NoNode:
		s.unplaced(unit, d, out)
		return
	}

	// 4. Reserve the node and ask the gang plugin.
	s.placed(&d, out)
	r := &reservation{unit: unit, pod: p, node: d.Winner.Node, decision: d.Number}
	trial := s.store.Trial()
	trial.Assume(p, out.Node)
	if why := s.permit.reserve(trial.Snapshot(), r); why != "" {
		trial.Discard()
		d.Winner, d.RunnerUp, d.Tied = nil, nil, 0
		s.turnBack(unit, d, r.node, why, false)
		return
	}
	trial.Commit()

	// 5. Bind the pod, or let it wait for its gang. The queue keeps events for it as long as it waits.
	if r.gang == nil {
		s.queue.Done(p.UID)
	}
	s.queue.Unnominate(p.UID)
	s.emit(engine.Decided{Decision: d})
	s.reserved[p.UID] = r
	s.proceed(r)
}

// unplaced puts a pod back that fits no node.
func (s *scheduler) unplaced(unit *queue.Unit, d record.Decision, out place.Outcome) {
	p := unit.Members[0]
	why := s.placer.Why(s.store.Snapshot(), out)
	if unit.Early() && s.permit.of[p.UID] == nil && s.queue.NominationOf(p.UID) == "" && p.Nominated == "" {
		s.queue.Rest(unit, why.Plugins) // a try before the end of its backoff, which changed nothing
		return
	}
	d.PreFilter, d.Reasons = why.PreFilter, why.Reasons
	s.reject(unit, d, why.Message, why.Plugins...)
	s.report(p, engine.ReasonUnschedulable, why.Message, p.Nominated != "")
	s.permit.failed(p, true)
}

// reject puts a pod back into the queue. Events that these plugins registered for wake it.
func (s *scheduler) reject(unit *queue.Unit, d record.Decision, message string, plugins ...string) {
	s.queue.Requeue(unit, queue.Rejection{Plugins: plugins})
	s.queue.Unnominate(unit.Members[0].UID)
	d.Verdict, d.Message, d.Plugins = record.DoesNotFit, message, plugins
	s.emit(engine.Decided{Decision: d})
}

// turnBack rejects a pod on the node that was chosen for it. cleared asks that its nomination be cleared in any case.
func (s *scheduler) turnBack(unit *queue.Unit, d record.Decision, node, why string, cleared bool) {
	p := unit.Members[0]
	message := fmt.Sprintf("0/1 nodes are available: 1 %s.", why)
	d.Reasons = []record.Reason{{Plugin: s.permit.Plugin, Reason: why, Nodes: 1, Examples: []string{node}}}
	s.reject(unit, d, message, s.permit.Plugin)
	s.report(p, engine.ReasonUnschedulable, message, cleared || p.Nominated != "")
}

// fail puts a pod back after an error, which no event cures.
func (s *scheduler) fail(unit *queue.Unit, d record.Decision, message string, cleared bool) {
	s.queue.Requeue(unit, queue.Rejection{Err: true})
	d.Verdict, d.Message = record.AttemptFailed, message
	s.emit(engine.Decided{Decision: d})
	p := unit.Members[0]
	s.report(p, engine.ReasonError, message, cleared || p.Nominated != "")
}

// report writes the event and the condition of a pod that was not placed, the condition only if it is new.
func (s *scheduler) report(p *cluster.Pod, reason, message string, cleared bool) {
	s.emit(engine.WriteEvent{Pod: p.Ref(), Type: "Warning", Reason: "FailedScheduling", Action: "Scheduling", Note: message})
	if cleared || p.Condition != (cluster.Condition{Reason: reason, Message: message, Generation: p.Generation}) {
		s.emit(engine.Condition{Pod: p.Ref(), Reason: reason, Message: message, Generation: p.Generation, ClearNomination: cleared})
	}
}

func (s *scheduler) decision(unit *queue.Unit, number uint64) record.Decision {
	p := unit.Members[0]
	return record.Decision{Number: number, At: s.now, Revision: s.store.Snapshot().Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Attempt: unit.Attempts}
}

// placed records the chosen node.
func (s *scheduler) placed(d *record.Decision, out place.Outcome) {
	view := s.store.Snapshot()
	d.Verdict, d.Tied = record.Placed, out.Tied
	d.Winner = &record.Candidate{Node: view.NodeName(out.Node), Total: out.Total, Scores: s.placer.Scores(out, out.Node)}
	if out.RunnerUp != cluster.NoNode {
		d.RunnerUp = &record.Candidate{Node: view.NodeName(out.RunnerUp), Total: out.RunnerUpTotal, Scores: s.placer.Scores(out, out.RunnerUp)}
	}
}

// proceed binds a pod that is allowed, turns back one that is rejected, and otherwise shows once where it waits.
func (s *scheduler) proceed(r *reservation) {
	if _, exists := s.store.Snapshot().Find(r.node); !exists {
		s.release(r)
		s.retry(r, fmt.Sprintf("node %q is gone", r.node))
		return
	}
	switch why, wait := s.permit.verdict(r); {
	case why != "":
		s.release(r)
		if p := s.pending[r.pod.UID]; p != nil {
			r.unit.Members[0] = p
			d := s.decision(r.unit, r.decision)
			d.Nodes = 1
			s.turnBack(r.unit, d, r.node, why, r.shown)
		}
	case wait && !r.shown:
		r.shown = true
		s.permit.announce(r)
		if r.pod.Nominated != r.node {
			s.emit(engine.Nominate{Pod: r.pod.Ref(), Node: r.node})
		}
	case wait:
	default:
		r.bindSent = true
		if r.gang != nil {
			s.queue.Done(r.pod.UID)
		}
		s.emit(engine.Bind{Pod: r.pod.Ref(), Node: r.node, Decision: r.decision})
	}
}

// waiting returns the pods that wait for their gangs, in the order of their decisions.
func (s *scheduler) waiting() []*reservation {
	var out []*reservation
	for _, r := range s.reserved { // order: sorted below
		if !r.bindSent {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *reservation) int { return cmp.Compare(a.decision, b.decision) })
	return out
}

// proceedAll asks again for all pods that wait.
func (s *scheduler) proceedAll() { s.proceedThose(s.waiting()) }

// proceedDue asks again for those whose time is over.
func (s *scheduler) proceedDue() {
	s.proceedThose(slices.DeleteFunc(s.waiting(), func(r *reservation) bool { return r.gang.until > s.now }))
}

func (s *scheduler) proceedThose(waiting []*reservation) {
	for _, r := range waiting {
		if s.reserved[r.pod.UID] == r { // no other one ended it
			s.proceed(r)
		}
	}
}

// nextTimeout is when the first pod stops waiting; 0 if none waits.
func (s *scheduler) nextTimeout() (at record.Time) {
	for _, r := range s.waiting() {
		if at == 0 || r.gang.until < at {
			at = r.gang.until
		}
	}
	return at
}

// release ends a reservation: its node and what it holds of its gang are free.
func (s *scheduler) release(r *reservation) {
	delete(s.reserved, r.pod.UID)
	s.permit.release(r)
	s.forget(r.pod.UID)
	if s.pending[r.pod.UID] == nil && r.gang != nil && !r.bindSent {
		s.queue.Done(r.pod.UID)
	}
}

// retry puts a pod back whose bind failed, unless it is gone.
func (s *scheduler) retry(r *reservation, message string) {
	p := s.pending[r.pod.UID]
	if p == nil {
		return
	}
	r.unit.Members[0] = p
	s.fail(r.unit, s.decision(r.unit, r.decision), message, r.shown)
}
