// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// evictions is an Evictor with an API server to itself, the pending pod p of UID "high", and victims v0, v1, … of UIDs
// u0, u1, … on node a.
type evictions struct {
	*Evictor
	t       *testing.T
	api     *kubetest.APIServer
	reg     componentmetrics.KubeRegistry
	request engine.Evict

	mu      sync.Mutex
	known   map[string]*cluster.Pod // UID -> as the watch has it
	answers []engine.EvictDone
	events  []engine.WriteEvent
}

func newEvictions(t *testing.T, victims int) *evictions {
	high := kubetest.PendingPod("p", "high")
	s := &evictions{t: t, api: kubetest.NewAPIServer(high), known: map[string]*cluster.Pod{"high": kubetest.NewRecord(high)},
		request: engine.Evict{For: kubetest.Ref(high), Node: "a", Decision: 7}}
	for i := range victims {
		low := kubetest.BoundPod(fmt.Sprint("v", i), types.UID(fmt.Sprint("u", i)), "a")
		low.Generation = 3
		s.api.Put(low)
		s.known[string(low.UID)] = kubetest.NewRecord(low)
		s.request.Victims = append(s.request.Victims, kubetest.Ref(low))
	}
	var m *metrics.Metrics
	m, s.reg = counted()
	s.Evictor = NewEvictor(t.Context(), s.api, s.pod, m, func(e engine.WriteEvent, other record.PodRef) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if other.UID != "high" {
			t.Errorf("an event for %v", other)
		}
		s.events = append(s.events, e)
	}, func(done engine.EvictDone) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers = append(s.answers, done)
	})
	return s
}

func (s *evictions) pod(ref record.PodRef) *cluster.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[ref.UID]
}

// learn lets the watch bring a pod; nil takes it away.
func (s *evictions) learn(uid string, p *cluster.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[uid] = p
}

// settled waits until nothing happens any more.
func (s *evictions) settled() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

// answered is the message of the one answer.
func (s *evictions) answered() string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) != 1 {
		s.t.Fatalf("got %d answers, want 1: %+v", len(s.answers), s.answers)
	}
	if got := s.answers[0]; got.For.UID != "high" || got.Decision != 7 {
		s.t.Errorf("the answer is about something else: %+v", got)
	}
	return s.answers[0].Message
}

func (s *evictions) deleted() []string {
	return s.api.Deletes()
}

// TestAnEvictionMarksDeletesAndTells: each victim gets the condition, is deleted with its own grace period and its UID
// as precondition, and has an event; the last one goes when all others are gone. Catches one that goes with the others:
// its end could be seen before the answer, and the pod that waits for the answer would miss it.
func TestAnEvictionMarksDeletesAndTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 4)
		conditions := map[string]v1.PodCondition{} // pod -> as it was deleted
		s.api.Before = func(verb, pod string) error {
			if verb == "delete" {
				if pod == "ns/v3" && len(s.deleted()) != 3 {
					t.Errorf("the last victim was deleted after %v", s.deleted())
				}
				is := s.api.Pod(pod)
				s.mu.Lock()
				conditions[pod] = is.Status.Conditions[0]
				s.mu.Unlock()
				time.Sleep(time.Second)
			}
			return nil
		}
		s.Evict(s.request)
		s.settled()
		if message := s.answered(); message != "" {
			t.Errorf("failed: %s", message)
		}
		if got := s.deleted(); len(got) != 4 || got[3] != "u3" {
			t.Errorf("deleted: %v", got)
		}
		want := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "PreemptionByScheduler", ObservedGeneration: 3,
			Message: "default-scheduler: preempting to accommodate a higher priority pod"}
		for pod, is := range conditions {
			is.LastTransitionTime = metav1.Time{}
			if is != want {
				t.Errorf("condition of %s: %+v", pod, is)
			}
		}
		if len(s.events) != 4 || s.events[0].Reason != "Preempted" || s.events[0].Action != "Preempting" || s.events[0].Type != "Normal" ||
			s.events[0].Note != "Preempted by pod high on node a" {
			t.Errorf("events: %+v", s.events)
		}
		if n := kubetest.Value(t, s.reg, "scheduler_preemption_goroutines_execution_total", "result=success"); n != 1 {
			t.Errorf("%v successes counted", n)
		}
	})
}

// TestGangsAreMarkedBeforeOneIsDeleted: where gangs go whole, no victim is deleted before all have the condition,
// and the events name the gang that gets the capacity. The capacity is needed while any of its pods waits. Catches
// marks that come one by one with the deletes, and a gang given up with its first pod.
func TestGangsAreMarkedBeforeOneIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 3)
		other := kubetest.PendingPod("p2", "high2")
		s.learn("high2", kubetest.NewRecord(other))
		s.learn("high", nil)
		s.request.GangID = "big-uid"
		s.request.Gang, s.request.Beside, s.request.Whole = "ns/big", []record.PodRef{kubetest.Ref(other)}, true
		s.api.Before = func(verb, _ string) error {
			for i := range 3 {
				is := s.api.Pod(fmt.Sprint("ns/v", i))
				if verb != "delete" || is == nil {
					continue
				}
				if len(is.Status.Conditions) == 0 {
					t.Errorf("a victim is deleted, and v%d is not marked", i)
				} else if c := is.Status.Conditions[0]; c.Reason != "PreemptionByScheduler" ||
					c.Message != "default-scheduler: preempting to accommodate a higher priority podgroup" {
					t.Errorf("condition of v%d: %+v", i, c)
				}
			}
			time.Sleep(time.Second)
			return nil
		}
		s.Evict(s.request)
		s.settled()
		if message := s.answered(); message != "" || len(s.deleted()) != 3 {
			t.Errorf("deleted %v: %s", s.deleted(), message)
		}
		if len(s.events) != 3 || s.events[0].Note != "Preempted by podgroup big-uid on node cluster" {
			t.Errorf("events: %+v", s.events)
		}
	})
}

// TestTheRestOfAGangGoesInAnyCase: what is left of a gang is evicted though the pod that was to get the capacity is
// gone.
func TestTheRestOfAGangGoesInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 2)
		s.learn("high", nil)
		s.request.Finish = true
		s.Evict(s.request)
		s.settled()
		if message := s.answered(); message != "" || len(s.deleted()) != 2 || len(s.events) != 2 {
			t.Errorf("deleted %v, events %+v: %s", s.deleted(), s.events, message)
		}
	})
}

// TestEachEvictionIsAnsweredOnceAndTruly plays the ways in which the eviction of two pods can go. A victim that is
// gone or terminating is no failure, no matter what deleted it; one that stays is, and then the last victim is
// spared. Catches a lost reply taken for a failure, which would have another pod evicted, and a delete that reaches
// another pod of the same name.
func TestEachEvictionIsAnsweredOnceAndTruly(t *testing.T) {
	forbidden := apierrors.NewForbidden(kubetest.PodResource, "v0", errors.New("no"))
	first := func(f func(verb, pod string) error) func(string, string) error {
		return func(verb, pod string) error {
			if pod == "ns/v0" {
				return f(verb, pod)
			}
			return nil
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(s *evictions)
		failed  string // a part of the message
		deleted string
		events  int
	}{
		{name: "done", deleted: "[u0 u1]", events: 2},
		{name: "the first is gone", prepare: func(s *evictions) { s.api.Remove("ns/v0") }, deleted: "[u1]", events: 1},
		{name: "the watch knows that it is gone", prepare: func(s *evictions) { s.learn("u0", nil) }, deleted: "[u1]", events: 1},
		{name: "the watch knows that it is going", prepare: func(s *evictions) {
			going := *s.pod(s.request.Victims[0])
			going.Terminating = true
			s.learn("u0", &going)
		}, deleted: "[u1]", events: 1},
		{name: "another pod has its name", prepare: func(s *evictions) { s.api.Put(kubetest.BoundPod("v0", "other", "a")) }, deleted: "[u1]", events: 1},
		{name: "another pod gets its name before the delete", prepare: func(s *evictions) {
			s.api.Before = first(func(verb, _ string) error {
				if verb == "delete" {
					s.api.Put(kubetest.BoundPod("v0", "other", "a"))
				}
				return nil
			})
		}, deleted: "[u1]", events: 1},
		{name: "it is gone after the condition", prepare: func(s *evictions) {
			s.api.Before = first(func(verb, _ string) error {
				if verb == "delete" {
					s.api.Remove("ns/v0")
				}
				return nil
			})
		}, deleted: "[u1]", events: 1},
		{name: "it takes its time to die", prepare: func(s *evictions) {
			slow := kubetest.BoundPod("v0", "u0", "a")
			slow.Finalizers = []string{"example.com/slow"}
			s.api.Put(slow)
		}, deleted: "[u0 u1]", events: 2},
		{name: "the patch is refused", prepare: func(s *evictions) { s.api.Before = first(kubetest.Times(9, "patch", forbidden)) },
			failed: "evicting pod ns/v0 for pod ns/p: setting its condition DisruptionTarget: ", deleted: "[]"},
		{name: "the patch fails twice", prepare: func(s *evictions) { s.api.Before = first(kubetest.Times(2, "patch", kubetest.ErrLost)) }, deleted: "[u0 u1]", events: 2},
		{name: "the reply to the patch is lost", prepare: func(s *evictions) { s.api.After = first(kubetest.Once("patch", kubetest.ErrLost)) }, deleted: "[u0 u1]", events: 2},
		{name: "the delete is refused", prepare: func(s *evictions) { s.api.Before = first(kubetest.Times(9, "delete", forbidden)) },
			failed: "deleting it: ", deleted: "[]"},
		{name: "the time for the delete is up, it was done", prepare: func(s *evictions) {
			s.api.After = first(kubetest.Once("delete", apierrors.NewTimeoutError("etcd", 1)))
		}, deleted: "[u0 u1]", events: 2},
		{name: "the time for the delete is up, it was not done", prepare: func(s *evictions) {
			s.api.Before = first(kubetest.Once("delete", apierrors.NewTimeoutError("etcd", 1)))
		}, deleted: "[u0 u1]", events: 2},
		{name: "the reply to the delete is lost, and the victim takes its time", prepare: func(s *evictions) {
			slow := kubetest.BoundPod("v0", "u0", "a")
			slow.Finalizers = []string{"example.com/slow"}
			s.api.Put(slow)
			s.api.After = first(kubetest.Once("delete", kubetest.ErrLost))
		}, deleted: "[u0 u1]", events: 2},
		{name: "too many requests for a while", prepare: func(s *evictions) {
			s.api.Before = first(kubetest.Times(3, "delete", apierrors.NewTooManyRequests("later", 1)))
		}, deleted: "[u0 u1]", events: 2},
		{name: "a conflict that is about something else", prepare: func(s *evictions) {
			s.api.Before = first(kubetest.Once("delete", kubetest.Conflict("v0", "the object has been modified")))
		}, deleted: "[u0 u1]", events: 2},
		{name: "the delete never goes through", prepare: func(s *evictions) {
			s.api.Before = first(kubetest.Times(100, "delete", apierrors.NewInternalError(errors.New("webhook"))))
		}, failed: "webhook", deleted: "[]"},
		{name: "the API server is down for a while", prepare: func(s *evictions) {
			var restored atomic.Bool // written by a timer, read by the evictor's workers
			time.AfterFunc(10*time.Minute, func() { restored.Store(true) })
			s.api.Before = func(string, string) error {
				if !restored.Load() {
					return kubetest.ErrLost
				}
				return nil
			}
		}, deleted: "[u0 u1]", events: 2},
		{name: "the preemptor is gone", prepare: func(s *evictions) { s.learn("high", nil) }, failed: errNeedless.Error(), deleted: "[]"},
		{name: "the pod has found a place", prepare: func(s *evictions) { s.learn("high", kubetest.NewRecord(kubetest.BoundPod("p", "high", "b"))) },
			failed: errNeedless.Error(), deleted: "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newEvictions(t, 2)
				if c.prepare != nil {
					c.prepare(s)
				}
				s.Evict(s.request)
				s.settled()
				message := s.answered()
				if (message == "") != (c.failed == "") || !strings.Contains(message, c.failed) {
					t.Errorf("answered %q, want %q", message, c.failed)
				}
				if got := fmt.Sprint(s.deleted()); got != c.deleted {
					t.Errorf("deleted %v, want %v", got, c.deleted)
				}
				if len(s.events) != c.events {
					t.Errorf("%d events, want %d: %+v", len(s.events), c.events, s.events)
				}
				if p := s.api.Pod("ns/v0"); p != nil && p.UID == "other" && (p.DeletionTimestamp != nil || len(p.Status.Conditions) > 0) {
					t.Errorf("another pod was touched: %+v", p)
				}
			})
		})
	}
}

// TestAGangThatIsTakenBackIsNoPreemption: its pods get another reason, and it counts as no preemption.
func TestAGangThatIsTakenBackIsNoPreemption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 1)
		s.request.Undo, s.request.Node = true, ""
		var mark v1.PodCondition
		s.api.Before = func(verb, pod string) error {
			if verb == "delete" {
				mark = s.api.Pod(pod).Status.Conditions[0]
			}
			return nil
		}
		s.Evict(s.request)
		s.settled()
		if s.answered() != "" || len(s.deleted()) != 1 || mark.Type != v1.DisruptionTarget || mark.Reason != "GangUndone" {
			t.Errorf("answered %q, deleted %v, marked %+v", s.answered(), s.deleted(), mark)
		}
		if len(s.events) != 1 || s.events[0].Reason != "GangUndone" || !strings.Contains(s.events[0].Note, "pod ns/p has no place") {
			t.Errorf("events: %+v", s.events)
		}
		if n := kubetest.Value(t, s.reg, "scheduler_preemption_goroutines_execution_total"); n != 0 {
			t.Errorf("%v preemptions were counted", n)
		}
	})
}

// TestAnEvictionWithoutVictimsIsAnswered: there may only be nominations to end.
func TestAnEvictionWithoutVictimsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 0)
		s.Evict(s.request)
		if s.answered() != "" {
			t.Error("failed")
		}
	})
}

// TestNothingIsDeletedWhilePausedOrWithoutTheLease: an eviction that was not begun is answered as failed when a pause
// begins, or comes during one; one that is half done stops, and so does one between the condition and the delete.
// Without the lease it waits, and is never answered if the process ends. Catches an evictor that looks before the first
// victim only.
func TestNothingIsDeletedWhilePausedOrWithoutTheLease(t *testing.T) {
	at := func(verb, pod string, do func()) func(string, string) error {
		return func(v, p string) error {
			if v == verb && p == pod {
				do()
			}
			return nil
		}
	}
	for _, c := range []struct {
		name     string
		play     func(s *evictions)
		deleted  string
		answered bool
		patched  int // how many victims have the condition
	}{
		{name: "paused before", play: func(s *evictions) { s.Hold(true); s.Evict(s.request) }, deleted: "[]", answered: true},
		{name: "paused while victims wait for their turn", play: func(s *evictions) {
			s.limit = 1
			s.api.Before = at("patch", "ns/v0", func() { s.Hold(true) })
			s.Evict(s.request)
		}, deleted: "[]", answered: true, patched: 1},
		{name: "paused before the last", play: func(s *evictions) {
			s.api.Before = at("delete", "ns/v1", func() { time.Sleep(time.Second); s.Hold(true) })
			s.Evict(s.request)
		}, deleted: "[u0 u1]", answered: true, patched: 2},
		{name: "paused between condition and delete", play: func(s *evictions) {
			s.request.Victims = s.request.Victims[:1]
			s.api.Before = at("patch", "ns/v0", func() { s.Hold(true) })
			s.Evict(s.request)
		}, deleted: "[]", answered: true, patched: 1},
		{name: "paused between two tries", play: func(s *evictions) {
			s.request.Victims = s.request.Victims[:1]
			s.api.Before = func(verb, _ string) error {
				if verb == "delete" {
					s.Hold(true)
					return kubetest.ErrLost
				}
				return nil
			}
			s.Evict(s.request)
		}, deleted: "[]", answered: true, patched: 1},
		{name: "no lease", play: func(s *evictions) {
			s.lead = func() bool { return false }
			s.Evict(s.request)
		}, deleted: "[]"},
		{name: "the lease ends after the first", play: func(s *evictions) {
			held := true
			s.lead = func() bool { return held }
			s.request.Victims = s.request.Victims[:2]
			s.api.Before = at("delete", "ns/v0", func() { held = false })
			s.Evict(s.request)
		}, deleted: "[u0]", patched: 1},
		{name: "the lease ends between condition and delete", play: func(s *evictions) {
			held := true
			s.lead = func() bool { return held }
			s.request.Victims = s.request.Victims[:1]
			s.api.Before = at("patch", "ns/v0", func() { held = false })
			s.Evict(s.request)
		}, deleted: "[]", patched: 1},
		{name: "the process ends", play: func(s *evictions) {
			s.Drain(call.Expired())
			s.Evict(s.request)
		}, deleted: "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newEvictions(t, 3)
				c.play(s)
				s.settled()
				s.Drain(call.Expired())
				if got := fmt.Sprint(s.deleted()); got != c.deleted {
					t.Errorf("deleted %v, want %v", got, c.deleted)
				}
				if !c.answered {
					if len(s.answers) != 0 {
						t.Errorf("answered %+v", s.answers)
					}
				} else if !strings.Contains(s.answered(), "scheduling was paused before it was sent") {
					t.Errorf("answered %q", s.answered())
				}
				if n := len(s.api.Patched()); n != c.patched {
					t.Errorf("%d victims were marked, want %d", n, c.patched)
				}
			})
		})
	}
}

// TestDeletesUnderWayEndBeforeAHandOver: the next leader finds each victim gone or untouched.
func TestDeletesUnderWayEndBeforeAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, 3)
		s.api.Before = func(verb, _ string) error {
			if verb == "delete" {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
		s.Evict(s.request)
		synctest.Wait()
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s.Drain(patience)
		if got := len(s.deleted()); got != 2 {
			t.Errorf("%d victims were deleted, want those that were under way", got)
		}
	})
}

// TestVictimsGoSideBySideUpToTheLimit holds all deletes back and looks how many have arrived.
func TestVictimsGoSideBySideUpToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEvictions(t, evictionsInFlight+20)
		release := make(chan struct{})
		arrived := 0
		var mu sync.Mutex
		s.api.Before = func(verb, _ string) error {
			if verb == "delete" {
				mu.Lock()
				arrived++
				mu.Unlock()
				<-release
			}
			return nil
		}
		s.Evict(s.request)
		synctest.Wait()
		if arrived != evictionsInFlight || s.InFlight() != evictionsInFlight {
			t.Errorf("%d deletes are under way, %d are counted, want %d", arrived, s.InFlight(), evictionsInFlight)
		}
		close(release)
		s.settled()
		if s.answered() != "" || len(s.deleted()) != evictionsInFlight+20 {
			t.Errorf("%d were deleted: %s", len(s.deleted()), s.answered())
		}
	})
}

// TestAnAgreedVictimIsNotToldOfPriority: a pod that declares that it may be evicted for gangs has an event and a message
// of its own; the others of the same eviction have those of a preemption (fault agreedPreempted).
func TestAnAgreedVictimIsNotToldOfPriority(t *testing.T) {
	agreed := record.PodRef{Namespace: "ns", Name: "spare", UID: "1"}
	other := record.PodRef{Namespace: "ns", Name: "low", UID: "2"}
	of := &eviction{Evict: engine.Evict{Gang: "ns/a", GangID: "id", Victims: []record.PodRef{agreed, other},
		Agreed: []record.PodRef{agreed}}, scheduler: "kumiki"}
	for _, c := range []struct {
		pod                   record.PodRef
		reason, note, message string
	}{
		{agreed, "EvictedForGang", "Evicted so that gang ns/a can start, as the pod allows",
			"kumiki: evicted so that a gang can start, as the pod allows"},
		{other, "Preempted", "Preempted by podgroup id on node cluster",
			"kumiki: preempting to accommodate a higher priority podgroup"},
	} {
		event, condition := of.event(c.pod), of.condition(c.pod, 1)
		if event.Reason != c.reason || event.Note != c.note || condition.Message != c.message ||
			condition.Reason != v1.PodReasonPreemptionByScheduler {
			t.Errorf("%s: event %s %q, condition %s %q", c.pod.Name, event.Reason, event.Note, condition.Reason,
				condition.Message)
		}
	}
}
