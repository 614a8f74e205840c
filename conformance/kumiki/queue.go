// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	corequeue "github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// waiting is kumiki's queue. It receives events as from the engine.
type waiting struct {
	q      *corequeue.Queue
	intake *convert.Intake
	store  *cluster.Store                  // what plugins look at for hints: nodes, bound pods, objects
	nodes  map[string]*cluster.Node        // name -> as last received
	pods   map[cluster.UID]*cluster.Pod    // UID -> as last received, pending or bound
	flying map[cluster.UID]*corequeue.Unit // UID -> what Pop returned
	noted  map[*cluster.Node]bool          // version of a node -> it has the note that Outside waits for
	open   bool                            // state of HoldGate
	tally  counted
}

// NewQueue starts an empty queue with the default profile and upstream's times.
func NewQueue(start time.Time) queue.Queue {
	profile, err := Profile(&scenario.Profile{Plugins: gen.DefaultPlugins()})
	if err != nil {
		panic(fmt.Sprintf("the default profile: %v", err))
	}
	w := &waiting{
		intake: convert.NewIntake(),
		store:  cluster.NewStore(),
		nodes:  map[string]*cluster.Node{},
		pods:   map[cluster.UID]*cluster.Pod{},
		flying: map[cluster.UID]*corequeue.Unit{},
		noted:  map[*cluster.Node]bool{},
		tally:  newCounted(),
	}
	gate := hold{&w.open}
	wakes := corequeue.Profile{Gates: append(profile.Gates, gate)}
	for _, w := range append(profile.Wakers, gate, outside{w.noted}) {
		wakes.Wakes = append(wakes.Wakes, corequeue.PluginWakes{Plugin: w.Name(), Wakes: w.Wakes()})
	}
	w.q = corequeue.New(corequeue.Config{
		InitialBackoff:       record.Second,
		MaxBackoff:           10 * record.Second,
		UnschedulableTimeout: 300 * record.Second,
		PopFromBackoff:       true,
		Less:                 basic.PrioritySort{},
		State:                w.store.Snapshot(),
		Meter:                w.tally.meter,
		Profiles:             map[string]corequeue.Profile{profile.Name: wakes},
	})
	w.Advance(start)
	return w
}

func (w *waiting) Close() {}

// NodeSet implements queue.Queue.
func (w *waiting) NodeSet(_, node *v1.Node) {
	n := w.intake.Node(node)
	w.noted[n] = node.Annotations[queue.NoteKey] == queue.OutsideNote
	old := w.nodes[n.Name]
	w.nodes[n.Name] = n
	defer w.count(engine.NodeSet{Node: n})
	w.change(func() { w.store.SetNode(n) })
	if old == nil {
		w.happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: n})
		return
	}
	for _, ev := range plugin.NodeChanges(old, n) {
		w.happened(plugin.Change{Event: ev, OldNode: old, NewNode: n})
	}
}

// NodeGone implements queue.Queue.
func (w *waiting) NodeGone(node *v1.Node) {
	old := w.nodes[node.Name]
	delete(w.nodes, node.Name)
	defer w.count(engine.NodeGone{Name: node.Name})
	w.change(func() { w.store.DeleteNode(node.Name) })
	w.happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Delete}, OldNode: old})
}

// PodSet implements queue.Queue.
func (w *waiting) PodSet(_, pod *v1.Pod) {
	p := w.intake.Pod(pod)
	old := w.pods[p.UID]
	w.pods[p.UID] = p
	defer w.count(engine.PodSet{Pod: p})
	if p.NodeName != "" {
		w.change(func() { w.store.SetPod(p) })
	}
	switch {
	case old != nil && old.NodeName != "":
		for _, ev := range plugin.PodChanges(old, p) {
			w.happened(plugin.Change{Event: ev, OldPod: old, NewPod: p})
		}
	case p.NodeName != "":
		if old != nil {
			w.q.Delete(old)
		}
		w.happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}, NewPod: p})
	case old == nil:
		w.q.Add(p)
	default:
		w.q.Update(old, p)
		if old.Nominated != "" && old.Nominated != p.Nominated {
			w.roomFreed(old, &old.Spec.Priority)
		}
	}
}

// PodGone implements queue.Queue.
func (w *waiting) PodGone(pod *v1.Pod) {
	old := w.pods[cluster.UID(pod.UID)]
	delete(w.pods, old.UID)
	defer w.count(engine.PodGone{Pod: old.Ref()})
	if old.NodeName != "" {
		w.change(func() { w.store.DeletePod(old.UID) })
		w.roomFreed(old, nil)
		return
	}
	w.q.Delete(old)
	if old.Nominated != "" {
		w.roomFreed(old, &old.Spec.Priority)
	}
}

// ObjectSet implements queue.Queue.
func (w *waiting) ObjectSet(old, obj scenario.APIObject) {
	w.change(func() { w.store.SetObject(intake.Trim(obj)) })
	w.objectHappened(queue.ObjectChanges(old, obj))
}

// ObjectGone implements queue.Queue.
func (w *waiting) ObjectGone(old scenario.APIObject) {
	ref := scenario.Object{APIObject: old}.Key()
	w.change(func() {
		w.store.DeleteObject(cluster.Kind(ref.Kind), cluster.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	})
	w.objectHappened(queue.ObjectChanges(old, nil))
}

func (w *waiting) objectHappened(changes []queue.Change) {
	defer w.count(engine.Tick{})
	for _, c := range changes {
		ch := plugin.Change{Event: plugin.Event{Resource: resourceOf(c.Event.Resource), Action: plugin.Action(c.Event.ActionType)}}
		if c.OldObject != nil {
			ch.OldObject = intake.Trim(c.OldObject)
		}
		if c.NewObject != nil {
			ch.NewObject = intake.Trim(c.NewObject)
		}
		w.happened(ch)
	}
}

func (w *waiting) change(f func()) {
	w.store.Begin()
	f()
	w.store.Commit()
}

func (w *waiting) happened(ch plugin.Change) {
	ch.State = w.store.Snapshot()
	w.q.Happened(ch)
}

func (w *waiting) roomFreed(p *cluster.Pod, upTo *int32) {
	w.happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, OldPod: p, OnlyUpTo: upTo})
}

// Pop implements queue.Queue.
func (w *waiting) Pop() string {
	defer w.count(engine.Cycle{})
	u, ok := w.q.Pop()
	if !ok {
		return ""
	}
	w.flying[u.UID()] = u
	return string(u.UID())
}

// Size implements queue.Queue.
func (w *waiting) Size(uid string) queue.Size {
	s := w.flying[cluster.UID(uid)].Pod().Spec
	return queue.Size{MilliCPU: s.Held.MilliCPU, Memory: s.Held.Memory, Ephemeral: s.Held.Ephemeral,
		NonZeroCPU: s.HeldNonZero[0], NonZeroMemory: s.HeldNonZero[1]}
}

// Fail implements queue.Queue. The queue itself knows whether the pod has gone.
func (w *waiting) Fail(uid string, now *v1.Pod, why queue.Rejection) {
	u := w.flying[cluster.UID(uid)]
	if u == nil {
		return // a Pop that differed has been reported
	}
	delete(w.flying, cluster.UID(uid))
	w.q.Requeue(u, corequeue.Rejection{Plugins: why.Plugins, Pending: why.Pending})
	if _, _, waits := w.q.Lookup(u.UID()); waits {
		w.count(engine.Cycle{}, decided(u, why))
	} else { // it is gone
		w.count(engine.Cycle{})
	}
	if p := w.pods[cluster.UID(uid)]; why.Nominate != "" && p != nil && p.NodeName == "" {
		w.q.Nominate(p, why.Nominate)
		return
	}
	w.q.Unnominate(cluster.UID(uid))
}

// Done implements queue.Queue.
func (w *waiting) Done(uid string, _ *v1.Pod) {
	delete(w.flying, cluster.UID(uid))
	defer w.count(engine.Cycle{})
	w.q.Unnominate(cluster.UID(uid))
	w.q.Done(cluster.UID(uid))
}

// NominatedOn implements queue.Queue.
func (w *waiting) NominatedOn(node string) []string {
	var out []string
	for _, p := range w.q.NominatedOn(node) {
		out = append(out, string(p.UID))
	}
	slices.Sort(out)
	return out
}

// SetHold implements queue.Queue.
func (w *waiting) SetHold(open bool) { w.open = open }

// Activate implements queue.Queue.
func (w *waiting) Activate(pods []*v1.Pod) {
	var refs []record.PodRef
	for _, p := range pods {
		refs = append(refs, record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)})
	}
	w.q.Activate(refs)
	w.count(engine.Activate{Pods: refs})
}

// Advance implements queue.Queue.
func (w *waiting) Advance(now time.Time) {
	w.q.Tick(record.Time(now.UnixNano()))
	w.count(engine.Tick{})
}

// Places implements queue.Queue. It also holds the queue to its promise to forget
// events that no pod in flight can need.
func (w *waiting) Places() map[string]queue.Place {
	if len(w.flying) == 0 && w.q.InFlightEvents() != 0 {
		panic(fmt.Sprintf("%d events are kept for pods in flight, and none is", w.q.InFlightEvents()))
	}
	out := map[string]queue.Place{}
	for _, sub := range []record.SubQueue{record.Active, record.Backoff, record.Unschedulable, record.Gated, record.InFlight} {
		w.q.Each(sub, func(u *corequeue.Unit) {
			out[string(u.UID())] = standing(sub, u)
		})
	}
	return out
}

func standing(sub record.SubQueue, u *corequeue.Unit) queue.Place {
	if sub == record.InFlight {
		return queue.Place{In: queue.InFlight}
	}
	p := queue.Place{Attempts: u.Attempts, Rejected: u.UnschedulableCount, Errors: u.ErrorCount}
	switch {
	case sub == record.Active:
		p.In = queue.Active
	case sub == record.Backoff && len(u.Plugins) == 0 && len(u.Pending) == 0:
		p.In = queue.ErrorBackoff
	case sub == record.Backoff:
		p.In = queue.Backoff
	case sub == record.Unschedulable:
		p.In = queue.Unschedulable
	case sub == record.Gated:
		p.In = queue.Gated
	}
	return p
}
