// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// leases keep the rule that the fake clientset does not: a write on top of an old version is a conflict.
type leases struct {
	mu  sync.Mutex
	now *coordinationv1.Lease // nil: there is none
}

func keepLeases(api *kubetest.APIServer, first *coordinationv1.Lease) *leases {
	l := &leases{}
	if first != nil {
		l.write(first)
	}
	api.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		resource := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
		switch a := a.(type) {
		case clienttesting.CreateAction: // of updates, too
			lease := a.GetObject().(*coordinationv1.Lease)
			if a.GetVerb() == "update" && (l.now == nil || lease.ResourceVersion != l.now.ResourceVersion) {
				return true, nil, apierrors.NewConflict(resource, lease.Name, nil)
			}
			l.writeLocked(lease)
		case clienttesting.GetAction:
			if l.now == nil {
				return true, nil, apierrors.NewNotFound(resource, a.GetName())
			}
		}
		return true, l.now.DeepCopy(), nil
	})
	return l
}

func (l *leases) write(lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writeLocked(lease)
}

func (l *leases) writeLocked(lease *coordinationv1.Lease) {
	version := 1
	if l.now != nil {
		version, _ = strconv.Atoi(l.now.ResourceVersion)
		version++
	}
	l.now = lease.DeepCopy()
	l.now.ResourceVersion = strconv.Itoa(version)
}

// note writes an annotation as a person does, or takes it off.
func (l *leases) note(key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := l.now.DeepCopy()
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[key] = value
	if value == "" {
		delete(lease.Annotations, key)
	}
	l.writeLocked(lease)
}

// notes are the annotations.
func (l *leases) notes() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.DeepCopy().Annotations
}

func (l *leases) state() PauseState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return PauseStateOf(l.now)
}

// TestAPauseEndsWhatIsUnderWayAndBeginsNothing: the leader learns of a pause with its next renewal, decides nothing
// more, answers when what it had sent has an outcome, and goes on when the pause ends. It would fail with a leader that
// forgets the annotation when it renews, that answers before its binds have ended, or that decides although it is
// paused.
func TestAPauseEndsWhatIsUnderWayAndBeginsNothing(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("sent", "u1"))
	kept := keepLeases(api, nil)
	api.Before = func(verb, pod string) error {
		if verb == "bind" && pod == "ns/sent" {
			time.Sleep(10 * time.Second)
		}
		return nil
	}
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		kept.note(PausedAnnotation, Pause{Reason: "storage", By: "ann"}.Text())
		w.after(3 * time.Second)
		if s := kept.state(); s.Paused || s.InFlight != 1 {
			t.Errorf("while a bind is under way the leader says %+v", s)
		}
		if p := w.Paused(); p == nil || p.Reason != "storage" || p.By != "ann" {
			t.Errorf("paused: %+v", p)
		}
		api.Put(kubetest.PendingPod("late", "u2"))
		w.after(time.Minute)
		if w.on("ns/sent") == "" {
			t.Error("the bind that was sent has not ended")
		}
		if w.on("ns/late") != "" {
			t.Error("a pod was bound in a pause")
		}
		if got := kubetest.Value(t, w.reg, "scheduler_pending_pods", "queue=active"); got != 1 {
			t.Errorf("%v pods wait to be tried, want 1: nothing is decided in a pause", got)
		}
		if s := kept.state(); !s.Paused || s.InFlight != 0 {
			t.Errorf("the leader says %+v, want paused", s)
		}
		if got := kubetest.Value(t, w.reg, "kumiki_paused"); got != 1 {
			t.Errorf("kumiki_paused is %v", got)
		}
		if still := w.Loop.Stalled(); still > 2*time.Second {
			t.Errorf("the loop has stood still for %s", still)
		}
		kept.note(PausedAnnotation, "")
		w.after(5 * time.Second)
		if w.on("ns/late") == "" {
			t.Error("the pod still waits after the pause")
		}
		if _, left := kept.notes()[PauseStateAnnotation]; left || w.Paused() != nil || kubetest.Value(t, w.reg, "kumiki_paused") != 0 {
			t.Errorf("after the pause: annotations %v", kept.notes())
		}
	})
}

// TestNothingGoesToANodeThatWasCordonedInThePause: a pod that was decided on and not sent is decided on anew. It would
// fail with binds that are kept over a pause.
func TestNothingGoesToANodeThatWasCordonedInThePause(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("sent", "u0"))
	kept := keepLeases(api, nil)
	api.Before = func(verb, pod string) error {
		if verb == "bind" && pod == "ns/sent" {
			time.Sleep(10 * time.Second)
		}
		return nil
	}
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		for i := range 4 {
			api.Put(kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i+1))))
		}
		w.after(time.Second) // decided on, and waiting for the bind before
		kept.note(PausedAnnotation, "maintenance")
		w.after(5 * time.Second)
		if got := kubetest.Value(t, w.reg, "scheduler_pending_pods", "queue=active"); got != 4 {
			t.Errorf("%v pods wait to be tried, want the 4 that were recalled", got)
		}
		if got := kubetest.Value(t, w.reg, "kumiki_foreign_conflicts_total"); got != 0 {
			t.Errorf("%v conflicts with other schedulers were counted", got)
		}
		cordoned := kubetest.Node("n1")
		cordoned.Spec.Unschedulable = true
		if _, err := api.Clientset.CoreV1().Nodes().Update(t.Context(), cordoned, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(30 * time.Second)
		kept.note(PausedAnnotation, "")
		w.after(time.Minute)
		onN2 := 0
		for i := range 4 {
			switch on := w.on(fmt.Sprint("ns/p", i)); on {
			case "n1":
				t.Errorf("pod p%d was bound to a node that was cordoned in the pause", i)
			case "n2":
				onN2++
			}
		}
		if onN2 < 3 {
			t.Errorf("%d pods were bound after the pause, want 3 or 4", onN2)
		}
	}, func(o *wholeOptions) { o.binds = 1 })
}

// TestAPauseOutlivesItsLeader: one who starts, or takes over, finds the pause on the lease before it decides. It would
// fail with a leader that reads the annotation only when it renews.
func TestAPauseOutlivesItsLeader(t *testing.T) {
	other, seconds := "other", int32(15)
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	kept := keepLeases(api, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler", Annotations: map[string]string{
			PausedAnnotation:     "a plain reason",
			PauseStateAnnotation: `{"paused":true,"holder":"other"}`}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds},
	})
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(2 * time.Second)
		if p := w.Paused(); p == nil || p.Reason != "a plain reason" {
			t.Errorf("the standby knows of the pause %+v", p)
		}
		if got := kubetest.Value(t, w.reg, "kumiki_paused"); got != 0 {
			t.Errorf("kumiki_paused of a standby is %v", got)
		}
		w.after(time.Minute)
		if s := kept.state(); !s.Paused || s.Holder == "other" {
			t.Errorf("the new leader says %+v", s)
		}
		if w.on("ns/p") != "" {
			t.Error("the new leader has bound a pod in a pause")
		}
		w.end()
		<-w.outcome
		w.outcome <- nil
		if notes := kept.notes(); notes[PausedAnnotation] == "" || notes[PauseStateAnnotation] != "" {
			t.Errorf("annotations after the end: %v", notes)
		}
	})
}

// TestWhatWasNotSentIsRecalled: of two binds, one is sent before the pause; a third is asked for in it. It would fail
// with a binder that keeps what waits and sends it after the pause, to a node that may have been cordoned meanwhile.
func TestWhatWasNotSentIsRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubetest.NewAPIServer(kubetest.PendingPod("a", "u1"), kubetest.PendingPod("b", "u2"), kubetest.PendingPod("c", "u3"))
		api.Before = func(string, string) error { time.Sleep(time.Second); return nil }
		m, _ := counted()
		var mu sync.Mutex
		all := map[string]engine.BindOutcome{} // pod -> outcome
		b := effects.NewBinder(t.Context(), api, 1, m, func(done engine.BindDone) {
			mu.Lock()
			defer mu.Unlock()
			all[done.Pod.Name] = done.Outcome
		})
		outcomes := func() map[string]engine.BindOutcome {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(all)
		}
		bind := func(name, uid string) {
			b.Bind(engine.Bind{Pod: record.PodRef{Namespace: "ns", Name: name, UID: uid}, Node: "n1", Decision: 7})
		}
		bind("a", "u1")
		bind("b", "u2")
		synctest.Wait()
		b.Hold(true)
		bind("c", "u3")
		if answers := outcomes(); len(answers) != 2 || answers["b"] != engine.BindRecalled || answers["c"] != engine.BindRecalled || b.InFlight() != 1 {
			t.Errorf("answers %v, %d binds in flight; want b and c recalled, and a in flight", answers, b.InFlight())
		}
		time.Sleep(time.Minute)
		b.Hold(false)
		time.Sleep(time.Minute)
		if answers := outcomes(); api.Bound() != 1 || answers["a"] != engine.Bound || len(answers) != 3 || b.InFlight() != 0 {
			t.Errorf("%d binds, answers %v; want a alone bound", api.Bound(), answers)
		}
		bind("b", "u2")
		time.Sleep(time.Minute)
		if answers := outcomes(); answers["b"] != engine.Bound {
			t.Errorf("a bind after the pause: %v", answers["b"])
		}
		b.Drain(t.Context())
	})
}

// TestWhatAsksForAPause are values of the annotation, written by the command and by hand.
func TestWhatAsksForAPause(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]*Pause{
		"false":    nil,
		"true":     {},
		"":         {},
		"upgrade":  {Reason: "upgrade"},
		`{"since`:  {Reason: `{"since`},
		`"quoted"`: {Reason: `"quoted"`},
		Pause{Since: since, Reason: "r", By: "b"}.Text(): {Since: since, Reason: "r", By: "b"},
	} {
		got := PauseOf(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PausedAnnotation: text}}})
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q asks for %+v, want %+v", text, got, want)
		}
	}
	if PauseOf(&coordinationv1.Lease{}) != nil {
		t.Error("a lease without the annotation asks for a pause")
	}
	if r := (&Pause{Since: since}).Record(); r.Since != record.Time(since.UnixNano()) {
		t.Errorf("record %+v", r)
	}
}
