// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// evictionsInFlight bounds the victims that are worked on at once.
const evictionsInFlight = 50

// gangUndone is the reason in events of pods of a gang that is undone.
const gangUndone = "GangUndone"

var (
	// errGone says that a victim is gone, or that another pod has its name.
	errGone = errors.New("the pod is gone")
	// errHeld says that a victim was spared because evictions are held.
	errHeld = errors.New("scheduling was paused before it was sent")
	// errNeedless says that a victim was spared because no pod needs its capacity any more.
	errNeedless = errors.New("the pod that was to get the room is gone or has a place")
)

// Evictor carries out evictions: each victim gets a condition, a delete and an event. The victims of one eviction
// go side by side but for the last, which goes when all others have been deleted. Each Evict is answered exactly once,
// unless the Evictor is stopped before. The pods' own grace periods count.
//
// Where gangs go that only go whole, all victims are marked before the first is deleted: a scheduler that starts after
// a crash in between finds what is left of such a gang by the marks.
//
// A delete has the victim's UID as its only precondition. As with binds, none is begun without the lease, one that is
// on its way ends with it, and none is sent while evictions are held (docs/design/0003-fencing.md).
type Evictor struct {
	*workerPool[victim]
	newest func(record.PodRef) *cluster.Pod // from the watch; nil when the pod is gone
	tell   func(about engine.WriteEvent, other record.PodRef)
	answer func(engine.EvictDone)
	// traced takes an outcome with the moments of the deletes, in the order of the victims; nil for answer. Set before
	// the first eviction.
	traced func(engine.EvictDone, []call.Trace)
}

// eviction is one Evict on its way.
type eviction struct {
	engine.Evict
	began time.Time
	// scheduler is the scheduler name of the pod that is to get the capacity.
	scheduler string
	// deletes are the moments of the deletes, in the order of the victims; each belongs to the job of its victim.
	deletes []call.Trace

	mu     sync.Mutex
	open   int   // victims before the last without an outcome, or while they are marked all of them
	failed error // the first
	// marking: the victims are being marked; nothing is deleted yet.
	marking bool
}

// victim is one victim of an eviction.
type victim struct {
	of *eviction
	at int // among its victims
	// marks: it is only marked by this job.
	marks bool
}

func (v victim) ref() record.PodRef { return v.of.Victims[v.at] }
func (v victim) last() bool         { return !v.marks && v.at == len(v.of.Victims)-1 }

// NewEvictor returns an Evictor. Calls end when ctx does. tell writes events.
func NewEvictor(ctx context.Context, client kubernetes.Interface, newest func(record.PodRef) *cluster.Pod,
	m *metrics.Metrics, tell func(about engine.WriteEvent, other record.PodRef),
	answer func(engine.EvictDone)) *Evictor {
	e := &Evictor{workerPool: newWorkerPool[victim](ctx, client, m, metrics.Preempting, evictionsInFlight),
		newest: newest, tell: tell, answer: answer}
	e.do = func(v victim) {
		if err := e.carryOut(v); !errors.Is(err, errStopped) {
			e.settle(v, err)
		}
	}
	return e
}

// Evict queues one eviction. While evictions are held, it is answered as failed.
func (e *Evictor) Evict(f engine.Evict) {
	of := &eviction{Evict: f, began: time.Now(), open: len(f.Victims) - 1, deletes: make([]call.Trace, len(f.Victims))}
	for _, ref := range append([]record.PodRef{f.For}, f.Beside...) {
		if p := e.newest(ref); p != nil && of.scheduler == "" {
			of.scheduler = p.Spec.SchedulerName
		}
	}
	if f.Whole {
		of.marking, of.open = true, len(f.Victims)
		for i := range f.Victims {
			e.queue(victim{of: of, at: i, marks: true})
		}
		return
	}
	e.begin(of)
}

// begin queues the victims but the last, if there is more than one.
func (e *Evictor) begin(of *eviction) {
	switch len(of.Victims) {
	case 0:
		e.finish(of)
	case 1:
		e.queue(victim{of: of})
	default:
		for i := range len(of.Victims) - 1 {
			e.queue(victim{of: of, at: i})
		}
	}
}

func (e *Evictor) queue(v victim) {
	uid := v.ref().UID
	e.add(uid, v)
	if e.isHeld() && e.takeBack(uid, func(waits victim) bool { return waits == v }) {
		e.settle(v, v.spared(errHeld))
	}
}

// Hold keeps victims from being deleted, or lets evictions go on. Evictions with victims that were not begun are
// answered as failed: by the time the hold ends, the nodes may have been cordoned, drained or filled. Deletes that were
// sent go on.
func (e *Evictor) Hold(on bool) {
	if !on {
		e.workerPool.Hold(false)
		return
	}
	for _, v := range e.holdBack() {
		e.settle(v, v.spared(errHeld))
	}
}

// Drain drops the victims that were not begun, and waits for those under way until patience ends. Then it ends what is
// left. The pods that were to get the capacity still wait, nominated, for the next leader.
func (e *Evictor) Drain(patience context.Context) {
	if dropped := e.drain(patience); dropped > 0 {
		klog.FromContext(e.ctx).Info("Evictions left to the next leader", "count", dropped)
	}
}

// settle takes the outcome of a victim. The last one is begun, or spared, with the outcome of the one before.
func (e *Evictor) settle(v victim, err error) {
	of := v.of
	of.mu.Lock()
	if of.failed == nil {
		of.failed = err
	}
	failed, open := of.failed, 0
	if !v.last() {
		of.open--
		open = of.open
	}
	marked := open == 0 && of.marking
	if marked {
		of.marking, of.open = false, len(of.Victims)-1
	}
	of.mu.Unlock()
	switch {
	case open > 0:
	case marked && failed == nil:
		e.begin(of)
	case v.last() || failed != nil:
		e.finish(of)
	default:
		e.queue(victim{of: of, at: len(of.Victims) - 1})
	}
}

// finish answers an eviction all of whose victims have an outcome, or whose last one is spared.
func (e *Evictor) finish(of *eviction) {
	done := engine.EvictDone{For: of.For, Decision: of.Decision}
	result := "success"
	if of.failed != nil {
		result, done.Message = "error", of.failed.Error()
		klog.FromContext(e.ctx).Info("Eviction failed", "for", call.PodName(of.For), "node", of.Node,
			"decision", of.Decision, "err", of.failed)
	}
	if !of.Undo && !of.Finish {
		e.metrics.Evictions.WithLabelValues(result).Inc()
		e.metrics.EvictionTime.WithLabelValues(result).Observe(time.Since(of.began).Seconds())
	}
	if e.traced != nil {
		e.traced(done, of.deletes)
	} else {
		e.answer(done)
	}
}

// spared words why a victim was not deleted.
func (v victim) spared(why error) error {
	return fmt.Errorf("evicting pod %s for pod %s: %w", v.ref().Key(), v.of.For.Key(), why)
}

// carryOut evicts one victim. It returns nil when the victim is gone or is going, errStopped when there is no answer to
// give for it.
func (e *Evictor) carryOut(v victim) error {
	of, pod := v.of, v.ref()
	of.mu.Lock()
	failed := of.failed
	of.mu.Unlock()
	if failed != nil {
		return failed // without the others, this eviction would be useless
	}
	known := e.newest(pod)
	if known == nil || known.Terminating {
		return nil
	}
	if e.needless(of) {
		return v.spared(errNeedless)
	}
	var err error
	if v.marks || !of.Whole {
		err = e.mark(v, known.Generation)
	}
	ours := false
	if err == nil && !v.marks {
		ours, err = e.remove(v)
	}
	switch {
	case errors.Is(err, errStopped):
		return err
	case errors.Is(err, errGone), apierrors.IsNotFound(err):
		err = nil
	case err != nil:
		return v.spared(err)
	}
	if ours {
		klog.FromContext(e.ctx).V(2).Info("Evicted", "pod", call.PodName(pod), "node", of.Node,
			"for", call.PodName(of.For), "decision", of.Decision)
		e.tell(of.event(pod), of.For)
	}
	return err
}

// needless reports whether no pod needs the capacity any more. What is left of a gang goes in any case.
func (e *Evictor) needless(of *eviction) bool {
	if of.Finish {
		return false
	}
	waits := func(ref record.PodRef) bool {
		p := e.newest(ref)
		return p != nil && p.NodeName == ""
	}
	return !waits(of.For) && !slices.ContainsFunc(of.Beside, waits)
}

// event tells of a victim that was deleted. Reason, action and note of a preemption are upstream's.
func (of *eviction) event(pod record.PodRef) engine.WriteEvent {
	if of.Undo {
		return engine.WriteEvent{Pod: pod, Type: v1.EventTypeNormal, Reason: gangUndone, Action: "Undoing",
			Note: "Taken back, to be bound with its whole gang: pod " + of.For.Key() + " has no place"}
	}
	switch {
	case slices.Contains(of.Agreed, pod):
		return engine.WriteEvent{Pod: pod, Type: v1.EventTypeNormal, Reason: "EvictedForGang", Action: "Evicting",
			Note: "Evicted so that gang " + of.Gang + " can start, as the pod allows"}
	case of.Finish:
		return engine.WriteEvent{Pod: pod, Type: v1.EventTypeNormal, Reason: "Preempted", Action: "Preempting",
			Note: "Evicted with the rest of its gang, of which others were preempted"}
	case of.Gang != "":
		return engine.WriteEvent{Pod: pod, Type: v1.EventTypeNormal, Reason: "Preempted", Action: "Preempting",
			Note: fmt.Sprintf("Preempted by podgroup %s on node cluster", of.GangID)}
	}
	return engine.WriteEvent{Pod: pod, Type: v1.EventTypeNormal, Reason: "Preempted", Action: "Preempting",
		Note: fmt.Sprintf("Preempted by pod %s on node %s", of.For.UID, of.Node)}
}

// condition tells everyone why a victim is about to be deleted (upstream: preemption/executor.go).
func (of *eviction) condition(pod record.PodRef, generation int64) v1.PodCondition {
	c := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: generation,
		LastTransitionTime: metav1.Now(), Reason: v1.PodReasonPreemptionByScheduler,
		Message: of.scheduler + ": preempting to accommodate a higher priority pod"}
	if of.Gang != "" {
		c.Message += "group" // as upstream has it: podgroup
	}
	if of.Finish {
		c.Message = of.scheduler + ": preempting the rest of a gang"
	}
	if slices.Contains(of.Agreed, pod) { // the reason stays: schedulers recognize it when they start
		c.Message = of.scheduler + ": evicted so that a gang can start, as the pod allows"
	}
	if of.Undo {
		c.Reason, c.Message = gangUndone, of.scheduler+": only a part of its gang has a place"
	}
	return c
}

// mark sets the condition on a victim.
func (e *Evictor) mark(v victim, generation int64) error {
	pod := v.ref()
	condition := v.of.condition(pod, generation)
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []v1.PodCondition{condition}}})
	if err != nil {
		return fmt.Errorf("the condition of a victim: %w", err)
	}
	patch := func(ctx context.Context) error {
		_, err := e.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body,
			metav1.PatchOptions{}, "status")
		return err
	}
	return carry(e, change[*v1.Pod]{
		what:  "setting its condition " + string(v1.DisruptionTarget),
		blind: patch,
		read:  e.read(pod),
		judge: func(is *v1.Pod) (bool, error) {
			if string(is.UID) != pod.UID {
				return false, errGone
			}
			return is.DeletionTimestamp != nil || marked(is, condition), nil
		},
		send: func(ctx context.Context, _ *v1.Pod) error { return patch(ctx) },
	})
}

func marked(pod *v1.Pod, want v1.PodCondition) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == want.Type {
			return c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message
		}
	}
	return false
}

// remove deletes a victim. Ours tells that it was this delete, as far as that can be known, that made it go.
func (e *Evictor) remove(v victim) (ours bool, err error) {
	pod := v.ref()
	uid, trace := types.UID(pod.UID), &v.of.deletes[v.at]
	send := func(ctx context.Context) error {
		if e.isHeld() {
			return final{errHeld}
		}
		if trace.Begun.IsZero() {
			trace.Begun = time.Now()
		}
		err := e.client.CoreV1().Pods(pod.Namespace).Delete(call.WithTrace(ctx, trace), pod.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		ours = ours || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && refusal(err) == notRefused
		return err
	}
	err = carry(e, change[*v1.Pod]{
		what:  "deleting it",
		blind: send,
		read:  e.read(pod),
		judge: func(is *v1.Pod) (bool, error) {
			if string(is.UID) != pod.UID {
				return false, errGone
			}
			return is.DeletionTimestamp != nil, nil
		},
		send: func(ctx context.Context, _ *v1.Pod) error { return send(ctx) },
	})
	return ours, err
}

func (e *Evictor) read(pod record.PodRef) func(context.Context) (*v1.Pod, error) {
	return func(ctx context.Context) (*v1.Pod, error) {
		return e.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	}
}
