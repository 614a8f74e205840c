// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// patching runs a scenario against an API server with pod ns/p. The watch sees the pod at once unless the scenario freezes
// it.
type patching struct {
	*Patcher
	api    *kubetest.APIServer
	pod    *v1.Pod
	frozen *cluster.Pod
}

func patchScenario(t *testing.T, pod *v1.Pod, scenario func(t *testing.T, s *patching)) {
	synctest.Test(t, func(t *testing.T) {
		s := &patching{api: kubetest.NewAPIServer(pod), pod: pod}
		intake := convert.NewIntake()
		m, _ := counted()
		s.Patcher = NewPatcher(t.Context(), s.api, func(r record.PodRef) *cluster.Pod {
			if s.frozen != nil {
				return s.frozen
			}
			p, err := s.api.Get(r.Namespace, r.Name)
			if err != nil || string(p.UID) != r.UID {
				return nil
			}
			return intake.Pod(p)
		}, m)
		scenario(t, s)
		s.Stop()
	})
}

func (s *patching) set(message string) {
	s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "Unschedulable", Message: message, Generation: 1})
}

func (s *patching) settleAll() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

func (s *patching) expect(t *testing.T, patches int, message string) *v1.PodCondition {
	t.Helper()
	s.settleAll()
	if got := len(s.api.Patched()); got != patches {
		t.Errorf("%d patches, want %d: %v", got, patches, s.api.Patched())
	}
	p := s.api.Pod("ns/p")
	if p == nil || len(p.Status.Conditions) == 0 {
		t.Fatalf("no condition on %v", p)
	}
	c := &p.Status.Conditions[0]
	if c.Message != message {
		t.Errorf("message %q, want %q", c.Message, message)
	}
	return c
}

func TestAConditionIsWrittenOnceAndItsTimeStaysWithTheStatus(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.set("no fit")
		c := s.expect(t, 1, "no fit")
		if c.Type != v1.PodScheduled || c.Status != v1.ConditionFalse || c.Reason != "Unschedulable" || c.ObservedGeneration != 1 {
			t.Errorf("condition %+v", c)
		}
		if c.LastTransitionTime.IsZero() {
			t.Error("lastTransitionTime is not set although the status changed")
		}
		s.set("no fit") // the same again
		s.expect(t, 1, "no fit")
		s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "Unschedulable", Message: "no fit", Generation: 2})
		s.expect(t, 1, "no fit") // a new generation alone is nothing to write
		s.set("still no fit")
		s.expect(t, 2, "still no fit")
		status := s.api.Patched()[1]["status"].(map[string]any)
		if _, sent := status["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"]; sent {
			t.Error("lastTransitionTime is sent although the status did not change")
		}
	})
}

// TestTheNewestConditionWins holds the first patch back while others are wished for.
func TestTheNewestConditionWins(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.api.Before = func(verb, _ string) error { time.Sleep(time.Second); return nil }
		for i := range 10 {
			s.set(fmt.Sprint("message ", i))
			synctest.Wait()
		}
		s.expect(t, 2, "message 9")
	})
}

// TestALateConditionDoesNotUndoABind is why patches have preconditions: without them PodScheduled=False would overwrite
// the True that the bind has set.
func TestALateConditionDoesNotUndoABind(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.api.Before = func(verb, _ string) error {
			if verb == "patch" {
				s.api.Bind(&v1.Binding{ObjectMeta: s.pod.ObjectMeta, Target: v1.ObjectReference{Name: "n"}})
			}
			return nil
		}
		s.set("no fit")
		s.settleAll()
		p := s.api.Pod("ns/p")
		if len(s.api.Patched()) != 0 || p.Status.Conditions[0].Status != v1.ConditionTrue {
			t.Errorf("condition of the bound pod is %+v", p.Status.Conditions)
		}
	})
}

func TestACancelledConditionIsNotWritten(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.api.Before = kubetest.Times(1000, "patch", kubetest.ErrLost)
		s.set("no fit")
		synctest.Wait()
		s.Cancel(kubetest.Ref(s.pod))
		s.api.Before = nil
		s.settleAll()
		if len(s.api.Patched()) != 0 {
			t.Errorf("written: %v", s.api.Patched())
		}
	})
}

func TestAConditionOutlivesAnOutage(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.api.Before = kubetest.Times(20, "patch", kubetest.ErrLost)
		s.set("no fit")
		s.expect(t, 1, "no fit")
	})
}

// TestAConditionMeetsAVersionThatTheWatchHasNotSeen re-reads and writes on top.
func TestAConditionMeetsAVersionThatTheWatchHasNotSeen(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.frozen = convert.NewIntake().Pod(s.pod)
		labelled := kubetest.PendingPod("p", "u1")
		labelled.Labels = map[string]string{"new": "label"}
		s.api.Put(labelled)
		s.set("no fit")
		s.expect(t, 1, "no fit")
		gets := 0
		s.api.Before = func(verb, _ string) error {
			if verb == "get" {
				gets++
			}
			return nil
		}
		s.set("other") // our own write is known although the watch has not seen it
		s.expect(t, 2, "other")
		if gets != 0 {
			t.Errorf("%d re-reads, want none", gets)
		}
	})
}

// TestAConditionForAPodThatIsNotThere drops it: gone, replaced, or refused for good.
func TestAConditionForAPodThatIsNotThere(t *testing.T) {
	for name, prepare := range map[string]func(s *patching){
		"gone":    func(s *patching) { s.api.Remove("ns/p") },
		"another": func(s *patching) { s.api.Put(kubetest.PendingPod("p", "u2")) },
		"refused": func(s *patching) {
			s.api.Before = kubetest.Once("patch", apierrors.NewForbidden(kubetest.PodResource, "p", errors.New("no")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
				s.frozen = convert.NewIntake().Pod(s.pod)
				prepare(s)
				s.set("no fit")
				s.settleAll()
				if len(s.api.Patched()) != 0 {
					t.Errorf("written: %v", s.api.Patched())
				}
			})
		})
	}
}

func TestANominationIsClearedWithTheCondition(t *testing.T) {
	pod := kubetest.PendingPod("p", "u1")
	pod.Status.NominatedNodeName = "n"
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "Unschedulable",
		Message: "no fit", LastTransitionTime: metav1.Unix(1, 0)}}
	patchScenario(t, pod, func(t *testing.T, s *patching) {
		s.Set(engine.Condition{Pod: kubetest.Ref(pod), Reason: "Unschedulable", Message: "no fit", ClearNomination: true})
		s.expect(t, 1, "no fit")
		if got := s.api.Pod("ns/p").Status.NominatedNodeName; got != "" {
			t.Errorf("still nominated for %q", got)
		}
	})
}

// TestEndlessConflictsDoNotSpin: another client writes the pod all the time.
func TestEndlessConflictsDoNotSpin(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		tries := 0
		s.api.Before = func(verb, _ string) error {
			if verb == "patch" {
				tries++
				return kubetest.Conflict("p", "again")
			}
			return nil
		}
		s.set("no fit")
		s.settleAll()
		if tries < 10 || tries > 200 {
			t.Errorf("%d tries in an hour", tries)
		}
	})
}

// TestANominationShowsAndGoesWithTheCondition: where a pod is about to go is shown once; the condition of an attempt
// that failed takes it away again, also when it was not written yet.
func TestANominationShowsAndGoesWithTheCondition(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.Nominate(kubetest.Ref(s.pod), "n1")
		s.settleAll()
		s.Nominate(kubetest.Ref(s.pod), "n1") // the same again
		s.settleAll()
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "n1" || len(p.Status.Conditions) != 0 || len(s.api.Patched()) != 1 {
			t.Fatalf("after %d patches: %+v", len(s.api.Patched()), p.Status)
		}
		s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "SchedulerError", Message: "took too long", ClearNomination: true})
		s.expect(t, 2, "took too long")
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "" {
			t.Errorf("still nominated to %s", p.Status.NominatedNodeName)
		}
		s.api.Before = func(string, string) error { time.Sleep(time.Second); return nil }
		s.set("held back")
		synctest.Wait()
		s.Nominate(kubetest.Ref(s.pod), "n2")
		synctest.Wait()
		s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "SchedulerError", Message: "again", ClearNomination: true})
		s.expect(t, 4, "again")
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "" {
			t.Errorf("a nomination that was not written yet came after the condition: %s", p.Status.NominatedNodeName)
		}
	})
}

// TestANominationComesAndGoesWithEvictions: the one for which others are evicted comes with the condition, in one
// patch; another condition leaves it, also while it is not written yet; Denominate takes it and leaves the condition.
func TestANominationComesAndGoesWithEvictions(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		choose := func(node, message string) {
			s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "Unschedulable", Message: message, Nominate: node})
		}
		nominated := func(when, want string) {
			t.Helper()
			if got := s.api.Pod("ns/p").Status.NominatedNodeName; got != want {
				t.Errorf("%s: nominated to %q, want %q", when, got, want)
			}
		}
		choose("n1", "makes room")
		s.expect(t, 1, "makes room")
		nominated("with the condition", "n1")
		s.set("still waits")
		s.expect(t, 2, "still waits")
		nominated("after another condition", "n1")

		s.api.Before = func(string, string) error { time.Sleep(time.Second); return nil } // what comes meanwhile becomes one wish
		s.set("held back")
		synctest.Wait()
		choose("n2", "makes room elsewhere")
		s.set("waits again")
		s.expect(t, 4, "waits again")
		nominated("after two at once", "n2")
		s.set("held back")
		synctest.Wait()
		s.set("was overtaken")
		s.Denominate(kubetest.Ref(s.pod))
		s.expect(t, 6, "was overtaken")
		nominated("after the nomination was taken", "")
		s.set("held back")
		synctest.Wait()
		choose("n3", "too late")
		s.Denominate(kubetest.Ref(s.pod))
		s.expect(t, 8, "too late")
		nominated("taken before it was written", "")
	})
}

// TestANominationIsThereBeforeItsCallerGoesOn: NominateNow has written when it returns. A condition that comes next
// takes it back though the watch has not shown it, and what cannot be written at once is written later.
func TestANominationIsThereBeforeItsCallerGoesOn(t *testing.T) {
	patchScenario(t, kubetest.PendingPod("p", "u1"), func(t *testing.T, s *patching) {
		s.frozen = s.newest(kubetest.Ref(s.pod)) // the watch lags
		s.NominateNow(kubetest.Ref(s.pod), "n1")
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "n1" {
			t.Fatalf("nominated to %q, want n1", p.Status.NominatedNodeName)
		}
		s.Set(engine.Condition{Pod: kubetest.Ref(s.pod), Reason: "SchedulerError", Message: "refused", ClearNomination: true})
		s.expect(t, 2, "refused")
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "" {
			t.Errorf("still nominated to %s", p.Status.NominatedNodeName)
		}
		s.api.Before = func(string, string) error { s.api.Before = nil; return errors.New("unavailable") }
		s.NominateNow(kubetest.Ref(s.pod), "n2")
		s.settleAll()
		if p := s.api.Pod("ns/p"); p.Status.NominatedNodeName != "n2" {
			t.Errorf("nominated to %q after a failed call, want n2", p.Status.NominatedNodeName)
		}
	})
}
