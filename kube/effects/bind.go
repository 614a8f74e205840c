// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/wire"
	"github.com/kumiki-scheduler/kumiki/record"
)

// DefaultBindsInFlight bounds the binds under way at once when no qps is set: enough to keep an API server busy
// without filling its queue for others.
const DefaultBindsInFlight = 100

const (
	// bindTries is how often a bind is sent when its outcome was unknown and the pod turned out to be unbound. The same
	// bind again, to the same node, is also what makes a late arrival of the first one harmless. Upstream sends it as
	// often after errors that the API server may not have again (conformance/retry).
	bindTries = 4
	// lateness is how long after it was sent a bind may still be carried out that the API server did not say it had
	// ended: it gives up a request after this time (upstream's flag --request-timeout). Until then the capacity stays
	// with the pod and the bind is sent again, so that one that comes late is no surprise.
	lateness = 60 * time.Second
	// viaPatience is the longest wait for a bind that foreign code says it has done.
	viaPatience = 2 * time.Second
)

// Binder carries out binds side by side and answers each exactly once, unless it is stopped before.
type Binder struct {
	*workerPool[engine.Bind]
	// writes sends binds; set before the first bind.
	writes wire.Writes
	answer func(engine.BindDone)
	// traced takes the outcome of a bind that was begun, with its moments; nil for answer. Set before the first bind.
	traced func(engine.BindDone, *call.Trace)
	// via lets foreign code bind; set before the first bind that names some.
	via BindVia
}

// BindVia lets the named foreign code bind a pod. ErrUseAPI means that it did not, and that the API server is to be
// asked in its place.
type BindVia func(ctx context.Context, name string, pod record.PodRef, node string) error

// ErrUseAPI is how a BindVia leaves a bind to the API server.
var ErrUseAPI = errors.New("bind with the API server")

// NewBinder returns a Binder that sends at most limit binds at once, with the typed clients. Calls end when ctx does.
func NewBinder(ctx context.Context, client kubernetes.Interface, limit int, metrics *metrics.Metrics,
	answer func(engine.BindDone)) *Binder {
	if limit <= 0 {
		limit = DefaultBindsInFlight
	}
	b := &Binder{workerPool: newWorkerPool[engine.Bind](ctx, client, metrics, "binding", limit),
		writes: wire.Typed(client), answer: answer}
	b.do = func(bind engine.Bind) {
		trace := &call.Trace{Begun: time.Now()}
		switch done, known := b.carryOut(bind, trace); {
		case !known:
		case b.traced != nil:
			b.traced(done, trace)
		default:
			b.answer(done)
		}
	}
	return b
}

// Bind queues one bind. While the binder is held, it is answered as recalled.
func (b *Binder) Bind(bind engine.Bind) {
	b.add(bind.Pod.UID, bind)
	if b.isHeld() && b.takeBack(bind.Pod.UID, func(waits engine.Bind) bool { return waits.Decision == bind.Decision }) {
		b.answer(heldBack(bind))
	}
}

func heldBack(bind engine.Bind) engine.BindDone {
	return engine.BindDone{Pod: bind.Pod, Node: bind.Node, Outcome: engine.BindRecalled,
		Message: "taken back from node " + bind.Node + ": scheduling was paused before the bind was sent"}
}

// Hold keeps binds from being sent, or lets them be sent again. Those that were not sent yet are answered as recalled:
// by the time the hold ends, their nodes may have been cordoned, drained or filled. Those that were sent go on.
func (b *Binder) Hold(on bool) {
	if !on {
		b.workerPool.Hold(false)
		return
	}
	for _, bind := range b.holdBack() {
		b.answer(heldBack(bind))
	}
}

// Recall takes back a bind that was not sent yet, which answers it. One that is on its way goes on, and its outcome is
// the answer.
func (b *Binder) Recall(r engine.Recall) {
	if b.takeBack(r.Pod.UID, func(bind engine.Bind) bool { return bind.Decision == r.Decision }) {
		b.answer(engine.BindDone{Pod: r.Pod, Node: r.Node, Outcome: engine.BindRecalled})
	}
}

// Drain drops the binds that were not sent yet, which leaves their pods pending for the next leader, and waits for
// those in flight until patience ends. Then it ends what is left.
func (b *Binder) Drain(patience context.Context) {
	if dropped := b.drain(patience); dropped > 0 {
		klog.FromContext(b.ctx).Info("Binds left to the next leader", "count", dropped)
	}
}

// carryOut sends a bind until its outcome is known. Known is false only when the binder was stopped first.
func (b *Binder) carryOut(bind engine.Bind, trace *call.Trace) (done engine.BindDone, known bool) {
	done = engine.BindDone{Pod: bind.Pod, Node: bind.Node}
	if bind.Via != "" {
		if known, ended := b.carryVia(bind, &done); ended {
			return done, known
		}
	}
	wait := b.patience
	var late time.Time // until when a try may still be carried out
	for try := 1; ; try++ {
		if !b.awaitLease() {
			return done, false
		}
		began := time.Now()
		err := b.send(bind, trace)
		b.metrics.Passed("Bind", b.profile(bind.Pod), err, time.Since(began))
		if err == nil {
			done.Outcome, done.Message = engine.Bound, ""
			return done, true
		}
		if b.ctx.Err() != nil {
			return done, false
		}
		message := fmt.Sprintf("binding pod %s to node %s: %v", bind.Pod.Key(), bind.Node, err)
		// A refusal is certain on the first try only: later, the try before may have arrived late.
		switch kind := refusal(err); {
		case kind == vanished:
			done.Outcome, done.Message = engine.PodVanished, message
			return done, true
		case kind == refused && try == 1:
			done.Outcome, done.Message = engine.BindFailed, message
			return done, true
		}

		if mayComeLate(err) {
			late = time.Now().Add(lateness)
		}
		pod, alive := b.reread(bind)
		if !alive {
			return done, false
		}
		done.Message = message
		b.found(bind, pod, &done)
		b.metrics.UnknownBinds.WithLabelValues(outcomeLabel(done.Outcome)).Inc()
		klog.FromContext(b.ctx).V(2).Info("Bind outcome read back", "pod", call.PodName(bind.Pod), "node", bind.Node,
			"decision", bind.Decision, "try", try, "outcome", outcomeLabel(done.Outcome), "err", err)
		// Only an unbound pod that may still be bound is worth another try.
		final := apierrors.IsConflict(err) || refusal(err) != notRefused || try >= bindTries
		if done.Outcome != engine.BindFailed || final && time.Now().After(late) || pod.DeletionTimestamp != nil {
			return done, true
		}
		if !call.Sleep(b.ctx, wait) {
			return done, false
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// mayComeLate reports whether a bind with this error may still be carried out. An answer of the API server says that it
// has ended, unless it is that the time was up; no answer says nothing.
func mayComeLate(err error) bool {
	var said apierrors.APIStatus
	return !errors.As(err, &said) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		strings.Contains(err.Error(), "request timed out") // etcd's words, in an internal error of the API server
}

// carryVia lets foreign code bind, once: whether a second time does no harm is not known of it. What the API server has
// decides, not what the foreign code says. Not ended means that the bind is left to the API server.
func (b *Binder) carryVia(bind engine.Bind, done *engine.BindDone) (known, ended bool) {
	if !b.awaitLease() {
		return false, true
	}
	ctx, cancel := b.writing(call.Timeout)
	defer cancel()
	began := time.Now()
	err := b.via(ctx, bind.Via, bind.Pod, bind.Node)
	b.metrics.Passed("Bind", b.profile(bind.Pod), err, time.Since(began))
	if errors.Is(err, ErrUseAPI) {
		return false, false
	}
	done.Message = fmt.Sprintf("binding pod %s to node %s by %s: %v", bind.Pod.Key(), bind.Node, bind.Via, err)
	if err == nil {
		done.Message = fmt.Sprintf("binding pod %s to node %s by %s: it answered "+
			"that the pod is bound, and the pod is not",
			bind.Pod.Key(), bind.Node, bind.Via)
	}
	for wait := b.patience; ; wait *= 2 {
		pod, alive := b.reread(bind)
		if !alive {
			return false, true
		}
		b.found(bind, pod, done)
		if _, is := errors.AsType[message.Rejected](err); is && done.Outcome == engine.BindFailed {
			*done = done.Failed(err)
		}
		if done.Outcome != engine.BindFailed || err != nil || wait > viaPatience {
			return true, true
		}
		if !call.Sleep(b.ctx, wait) {
			return false, true
		}
	}
}

// send sends a bind once. The UID is its only precondition; docs/design/0003-fencing.md says why, and what stops a
// leader whose time is over.
func (b *Binder) send(bind engine.Bind, trace *call.Trace) error {
	ctx, cancel := b.tracedWriting(call.Timeout, trace)
	defer cancel()
	return b.writes.Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: bind.Pod.Namespace, Name: bind.Pod.Name,
			UID: types.UID(bind.Pod.UID), Annotations: leaves(bind)},
		Target: v1.ObjectReference{Kind: "Node", Name: bind.Node},
	})
}

// leaves is what a bind leaves on the pod: the API server copies the annotations of a binding. No failure can separate
// what was written with the bind itself, so the next leader knows which members of a gang were decided together.
func leaves(bind engine.Bind) map[string]string {
	if bind.Gang == nil {
		return nil
	}
	return map[string]string{
		convert.GangBoundAnnotation:    bind.Gang.Name,
		convert.GangDecisionAnnotation: strconv.FormatUint(bind.Gang.Decision, 10),
		convert.GangQuorumAnnotation:   strconv.Itoa(bind.Gang.Quorum),
	}
}

// reread asks for the pod until the API server answers, nil for a pod that is gone. alive is false when the binder was
// stopped first.
func (b *Binder) reread(bind engine.Bind) (pod *v1.Pod, alive bool) {
	wait := b.patience
	for {
		ctx, cancel := context.WithTimeout(b.ctx, call.RereadTimeout)
		pod, err := b.client.CoreV1().Pods(bind.Pod.Namespace).Get(ctx, bind.Pod.Name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return pod, true
		case apierrors.IsNotFound(err):
			return nil, true
		}
		if wait >= time.Second {
			klog.FromContext(b.ctx).Info("Bind outcome still unknown", "pod", call.PodName(bind.Pod),
				"node", bind.Node, "err", err)
		}
		if !call.Sleep(b.ctx, wait) {
			return nil, false
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// found sets the outcome from what the API server has.
func (b *Binder) found(bind engine.Bind, pod *v1.Pod, done *engine.BindDone) {
	switch {
	case pod == nil, string(pod.UID) != bind.Pod.UID:
		done.Outcome = engine.PodVanished
	case pod.Spec.NodeName == bind.Node:
		done.Outcome, done.Message = engine.Bound, ""
	case pod.Spec.NodeName != "":
		done.Outcome, done.Node = engine.BoundElsewhere, pod.Spec.NodeName
	default:
		done.Outcome = engine.BindFailed
	}
}

func outcomeLabel(o engine.BindOutcome) string {
	switch o {
	case engine.Bound:
		return "bound"
	case engine.BoundElsewhere:
		return "bound_elsewhere"
	case engine.PodVanished:
		return "vanished"
	case engine.BindRecalled:
		return "recalled"
	default:
		return "unbound"
	}
}
