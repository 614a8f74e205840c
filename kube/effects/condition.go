// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// patchesInFlight bounds the status patches under way: few, because binds matter more.
const patchesInFlight = 16

// Patcher writes PodScheduled=False conditions. Of several for one pod the newest is written; one that the API server
// has already is not.
//
// Each patch has the UID and the resourceVersion as preconditions, so that it can neither reach another pod of the same
// name nor overwrite the PodScheduled=True that a bind sets. After a conflict the pod is read again.
type Patcher struct {
	client  kubernetes.Interface
	newest  func(record.PodRef) *cluster.Pod // from the watch; nil when the pod is gone
	metrics *metrics.Metrics
	// patience is the first wait between tries; it doubles up to half a minute.
	patience time.Duration

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	states map[string]*patchState // UID -> what is on its way or was written
	pods   taskQueue[*patchState] // those with a wish
	sweep  int                    // sweep states when they grow past this
}

// wish is the desired status of a pod: a condition, a nomination, or both.
type wish struct {
	engine.Condition        // without a Reason, only the nomination counts
	nominate         string // empty: none
}

// add keeps of an unwritten wish what this newer one does not contradict.
func (w *wish) add(was wish) {
	if w.Reason == "" && was.Reason != "" {
		cleared := w.ClearNomination
		w.Condition = was.Condition
		w.ClearNomination, w.Condition.Nominate = cleared, ""
	}
	switch {
	case w.nominate != "" || w.ClearNomination:
	case was.Condition.Nominate != "": // made together with a condition: another condition leaves it
		w.nominate, w.Condition.Nominate = was.nominate, was.Condition.Nominate
	default:
		w.ClearNomination = was.ClearNomination || was.nominate != ""
	}
}

// patchState is one pod's wish on its way.
type patchState struct {
	want   *wish // nil: nothing is wished
	active bool  // queued or being written
	// written is what the API server has as far as we know, at version; nil before the first patch.
	written *known
}

// known is what the API server has of a pod.
type known struct {
	version   string // resourceVersion
	condition cluster.Condition
	nominated string
}

// NewPatcher returns a Patcher. Calls end when ctx does.
func NewPatcher(ctx context.Context, client kubernetes.Interface, newest func(record.PodRef) *cluster.Pod,
	metrics *metrics.Metrics) *Patcher {
	p := &Patcher{
		client: client, newest: newest, metrics: metrics, patience: 100 * time.Millisecond,
		states: map[string]*patchState{}, sweep: 1024,
	}
	p.pods = taskQueue[*patchState]{mu: &p.mu, limit: patchesInFlight, do: p.settle}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Set wishes for a condition, and for the nomination that comes with it. What Nominate wished for is over then: the pod
// was not bound to its node.
func (p *Patcher) Set(c engine.Condition) { p.wish(wish{Condition: c, nominate: c.Nominate}) }

// Nominate wishes for a nomination.
func (p *Patcher) Nominate(pod record.PodRef, node string) {
	p.wish(wish{Condition: engine.Condition{Pod: pod}, nominate: node})
}

// NominateNow writes a nomination before it returns, if that can be done at the first try; else it is a wish.
func (p *Patcher) NominateNow(pod record.PodRef, node string) {
	want := wish{Condition: engine.Condition{Pod: pod}, nominate: node}
	p.mu.Lock()
	s := p.stateLocked(pod.UID)
	busy, base := s.active || p.pods.closed, p.baseLocked(pod, s)
	p.mu.Unlock()
	if busy {
		p.wish(want)
		return
	}
	result, next := p.write(want, base)
	if result == "retry" || result == "reread" {
		p.wish(want)
		return
	}
	p.metrics.ConditionPatches.WithLabelValues(result).Inc()
	p.mu.Lock()
	defer p.mu.Unlock()
	if next != nil {
		s.written = next
	}
}

// stateLocked returns the state of a pod.
func (p *Patcher) stateLocked(uid string) *patchState {
	s := p.states[uid]
	if s == nil {
		p.sweepLocked()
		s = &patchState{}
		p.states[uid] = s
	}
	return s
}

// Denominate wishes that there be no nomination, whatever the condition.
func (p *Patcher) Denominate(pod record.PodRef) {
	p.wish(wish{Condition: engine.Condition{Pod: pod, ClearNomination: true}})
}

func (p *Patcher) wish(c wish) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pods.closed {
		return
	}
	s := p.stateLocked(c.Pod.UID)
	if was := s.want; was != nil {
		c.add(*was)
	}
	s.want = &c
	if s.active {
		return
	}
	s.active = true
	p.pods.push(s)
}

// Cancel drops the wish for a pod: it is being bound.
func (p *Patcher) Cancel(pod record.PodRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[pod.UID]; s != nil {
		s.want = nil
	}
}

// sweepLocked forgets what was written. The watch knows it by now; where it does not, a patch meets a conflict and the
// pod is read again.
func (p *Patcher) sweepLocked() {
	if len(p.states) < p.sweep {
		return
	}
	for uid, s := range p.states {
		if s.active || s.want != nil {
			continue
		}
		delete(p.states, uid)
	}
	p.sweep = max(1024, 2*len(p.states))
}

// Stop ends the calls and waits for the workers.
func (p *Patcher) Stop() {
	p.mu.Lock()
	p.pods.closed = true
	p.mu.Unlock()
	p.cancel()
	p.pods.wait()
}

// settle writes wishes of one pod until none is left.
func (p *Patcher) settle(s *patchState) {
	wait := p.patience
	var have *known // from a re-read
	conflicts := 0  // in a row
	for {
		p.mu.Lock()
		if s.want == nil || p.pods.closed {
			s.active = false
			p.mu.Unlock()
			return
		}
		want := *s.want
		base := have
		if base == nil {
			base = p.baseLocked(want.Pod, s)
		}
		p.mu.Unlock()

		result, next := p.write(want, base)
		have = nil
		switch result {
		case "retry":
			if !call.Sleep(p.ctx, wait) {
				continue // closed, seen above
			}
			wait = min(2*wait, 30*time.Second)
			continue
		case "reread":
			var alive bool
			if have, alive = p.reread(want.Pod, &wait); !alive {
				continue
			}
			if have != nil {
				// The first conflicts are only our view that lags; later ones are another writer that writes all the
				// time.
				if conflicts++; conflicts > 3 && call.Sleep(p.ctx, wait) {
					have, wait = nil, min(2*wait, 30*time.Second)
				}
				continue
			}
			result = "moot"
		}
		p.metrics.ConditionPatches.WithLabelValues(result).Inc()
		p.mu.Lock()
		if next != nil {
			s.written = next
		}
		if s.want != nil && *s.want == want {
			s.want = nil
		}
		p.mu.Unlock()
		wait, conflicts = p.patience, 0
	}
}

// baseLocked is what the API server has as far as we know, nil when the pod is bound or gone: what we wrote last or
// what the watch says, whichever is newer.
func (p *Patcher) baseLocked(pod record.PodRef, s *patchState) *known {
	rec := p.newest(pod)
	if rec == nil || rec.NodeName != "" {
		return nil
	}
	if s.written != nil {
		if order, err := resourceversion.CompareResourceVersion(s.written.version, rec.ResourceVersion); err == nil &&
			order > 0 {
			return s.written
		}
	}
	return &known{rec.ResourceVersion, rec.Condition, rec.Nominated}
}

// write sends one patch on top of base. The result is a label of condition_patches_total, "retry" or "reread".
func (p *Patcher) write(want wish, base *known) (result string, next *known) {
	if base == nil {
		return "moot", nil
	}
	nominates := want.ClearNomination && base.nominated != "" || want.nominate != "" && base.nominated != want.nominate
	// observedGeneration alone is no reason to write (upstream: UpdatePodCondition in pkg/api/v1/pod/util.go).
	conditions := want.Reason != "" && (base.condition.Reason != want.Reason || base.condition.Message != want.Message)
	if !conditions && !nominates {
		return "equal", nil
	}
	body, err := patchBody(want, base, nominates)
	if err != nil {
		klog.FromContext(p.ctx).Error(err, "Condition not written", "pod", call.PodName(want.Pod))
		return "refused", nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, call.Timeout)
	defer cancel()
	got, err := p.client.CoreV1().Pods(want.Pod.Namespace).Patch(call.WithTrace(ctx, nil), want.Pod.Name,
		types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		return "written", knownOf(got)
	case apierrors.IsNotFound(err):
		return "moot", nil
	case apierrors.IsConflict(err):
		return "reread", nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err):
		klog.FromContext(p.ctx).Error(err, "Condition refused", "pod", call.PodName(want.Pod), "reason", want.Reason)
		return "refused", nil
	}
	return "retry", nil
}

// reread asks for the pod; nil when it is bound, gone or replaced. alive is false when the answer did not come.
func (p *Patcher) reread(pod record.PodRef, wait *time.Duration) (got *known, alive bool) {
	ctx, cancel := context.WithTimeout(p.ctx, call.RereadTimeout)
	defer cancel()
	obj, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		call.Sleep(p.ctx, *wait)
		*wait = min(2**wait, 30*time.Second)
		return nil, false
	case string(obj.UID) != pod.UID, obj.Spec.NodeName != "":
		return nil, true
	}
	return knownOf(obj), true
}

func knownOf(pod *v1.Pod) *known {
	k := &known{version: pod.ResourceVersion, nominated: pod.Status.NominatedNodeName}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			k.condition = cluster.Condition{Reason: c.Reason, Message: c.Message, Generation: c.ObservedGeneration}
		}
	}
	return k
}

// patchBody is a strategic merge patch of the status. The condition's lastTransitionTime is set when the status becomes
// False and left alone when it was False before; the list merges by type.
func patchBody(want wish, base *known, nominates bool) ([]byte, error) {
	status := map[string]any{}
	if nominates {
		status["nominatedNodeName"] = nil
		if want.nominate != "" {
			status["nominatedNodeName"] = want.nominate
		}
	}
	if want.Reason != "" {
		status["conditions"] = []any{conditionBody(want.Condition, base)}
	}
	metadata := map[string]any{"uid": want.Pod.UID}
	if base.version != "" {
		metadata["resourceVersion"] = base.version
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "status": status})
	if err != nil {
		return nil, fmt.Errorf("status of pod %s: %w", want.Pod.Key(), err)
	}
	return body, nil
}

func conditionBody(want engine.Condition, base *known) map[string]any {
	condition := map[string]any{
		"type":    v1.PodScheduled,
		"status":  v1.ConditionFalse,
		"reason":  want.Reason,
		"message": want.Message,
	}
	if want.Generation != 0 {
		condition["observedGeneration"] = want.Generation
	}
	if base.condition == (cluster.Condition{}) {
		condition["lastTransitionTime"] = metav1.Now()
	}
	return condition
}
