// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

func eventScenario(t *testing.T, scenario func(t *testing.T, w *EventWriter, api *fake.Clientset, dropped func() float64)) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		m, reg := counted()
		pod := kubetest.PendingPod("p", "u1")
		pod.ResourceVersion = "42"
		pod.Spec.SchedulerName = "mine"
		rec := convert.NewIntake().Pod(pod)
		w := NewEventWriter(t.Context(), api, func(r record.PodRef) *cluster.Pod {
			if r == rec.Ref() {
				return rec
			}
			return nil
		}, m, "default-scheduler", "host")
		scenario(t, w, api, func() float64 { return kubetest.Value(t, reg, "kumiki_events_dropped_total") })
		w.Stop(t.Context())
	})
}

// TestAnEventAboutAVictimIsReportedByThePreemptorsScheduler, and names the pod for which it was evicted.
func TestAnEventAboutAVictimIsReportedByThePreemptorsScheduler(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, _ func() float64) {
		victim := engine.WriteEvent{Pod: kubetest.Ref(kubetest.BoundPod("v", "u2", "a")), Type: "Normal", Reason: "Preempted", Action: "Preempting", Note: "n"}
		w.WriteAbout(victim, kubetest.Ref(kubetest.PendingPod("p", "u1")))
		got := kubetest.Events(t, api)[0]
		if got.ReportingController != "mine" || got.ReportingInstance != "mine-host" {
			t.Errorf("reported by %s, %s", got.ReportingController, got.ReportingInstance)
		}
		if r := got.Regarding; r.Name != "v" || r.UID != "u2" {
			t.Errorf("regarding %+v", r)
		}
		if r := got.Related; r == nil || r.Name != "p" || r.UID != "u1" || r.ResourceVersion != "42" {
			t.Errorf("related to %+v", r)
		}
	})
}

func rejected(note string) engine.WriteEvent {
	return engine.WriteEvent{Pod: kubetest.Ref(kubetest.PendingPod("p", "u1")), Type: "Warning", Reason: "FailedScheduling", Action: "Scheduling", Note: note}
}

func TestAnEventIsUpstreams(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, _ func() float64) {
		w.Write(engine.WriteEvent{Pod: kubetest.Ref(kubetest.PendingPod("p", "u1")), Type: "Normal", Reason: "Scheduled", Action: "Binding",
			Note: "Successfully assigned ns/p to n"})
		got := kubetest.Events(t, api)
		if len(got) != 1 {
			t.Fatalf("%d events, want 1", len(got))
		}
		e := got[0]
		if e.ReportingController != "mine" || e.ReportingInstance != "mine-host" || e.Type != "Normal" || e.Reason != "Scheduled" ||
			e.Action != "Binding" || e.Note != "Successfully assigned ns/p to n" || e.EventTime.IsZero() || e.Series != nil {
			t.Errorf("event %+v", e)
		}
		r := e.Regarding
		if r.Kind != "Pod" || r.APIVersion != "v1" || r.Namespace != "ns" || r.Name != "p" || r.UID != "u1" || r.ResourceVersion != "42" {
			t.Errorf("regarding %+v", r)
		}
		if !strings.HasPrefix(e.Name, "p.") {
			t.Errorf("name %s", e.Name)
		}
	})
}

func TestALongNoteIsCutWhereTheAPIWouldRefuseIt(t *testing.T) {
	for _, note := range []string{strings.Repeat("a", 1024), strings.Repeat("a", 1025), strings.Repeat("é", 600)} {
		cut := cutNote(note)
		switch {
		case len(note) <= 1024 && cut != note:
			t.Errorf("a note of %d bytes was cut", len(note))
		case len(note) > 1024 && (len(cut) > 1024 || len(cut) < 1023 || !strings.HasSuffix(cut, " ...")):
			t.Errorf("cut to %d bytes: %q", len(cut), cut[len(cut)-8:])
		case !utf8.ValidString(cut):
			t.Error("cut in the middle of a character")
		}
	}
}

// TestTheSameAgainIsASeries writes the second at once and the last count when the series has ended.
func TestTheSameAgainIsASeries(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, _ func() float64) {
		w.Write(rejected("no fit"))
		kubetest.Events(t, api)
		for range 4 {
			time.Sleep(time.Minute)
			w.Write(rejected("no fit"))
		}
		got := kubetest.Events(t, api)
		if len(got) != 1 || got[0].Series == nil || got[0].Series.Count != 2 {
			t.Fatalf("events %+v, want one that is a series of 2", got)
		}
		w.EndSeries()
		time.Sleep(seriesEnds)
		w.EndSeries()
		if got := kubetest.Events(t, api); got[0].Series.Count != 5 {
			t.Errorf("count %d after the end, want 5", got[0].Series.Count)
		}
		w.Write(rejected("no fit"))
		w.Write(rejected("something else"))
		if got := kubetest.Events(t, api); len(got) != 3 {
			t.Errorf("%d events, want 3: the series has ended, and another note is another event", len(got))
		}
	})
}

// TestASlowAPIServerCostsTheOldestEvents and never the caller's time: in this test time stands still while it writes.
// TestASeriesIsWrittenBehindItsEvent: a patch that overtakes the create would find nothing, and create it a second
// time.
func TestASeriesIsWrittenBehindItsEvent(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, dropped func() float64) {
		api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(3 * time.Second)
			return false, nil, nil
		})
		for range 4 {
			w.Write(rejected("no room"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		got := kubetest.Events(t, api)
		if len(got) != 1 || got[0].Series == nil || got[0].Series.Count != 4 {
			t.Errorf("events %+v", got)
		}
		var calls []string
		for _, a := range api.Actions() {
			if a.GetVerb() != "list" {
				calls = append(calls, a.GetVerb())
			}
		}
		if strings.Join(calls, " ") != "create patch" || dropped() != 0 {
			t.Errorf("calls %v, %v dropped", calls, dropped())
		}
	})
}

func TestASlowAPIServerCostsTheOldestEvents(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, dropped func() float64) {
		api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		const more = 1000
		for range eventsInFlight {
			w.Write(engine.WriteEvent{Pod: kubetest.Ref(kubetest.PendingPod("p", "u1")), Type: "Normal", Reason: "Scheduled"})
			synctest.Wait()
		}
		for range eventsWaiting + more {
			w.Write(engine.WriteEvent{Pod: kubetest.Ref(kubetest.PendingPod("p", "u1")), Type: "Normal", Reason: "Scheduled"})
		}
		if got := dropped(); got != more {
			t.Errorf("%v events dropped, want %d", got, more)
		}
		w.cancel()
	})
}

func TestARefusedEventIsNotTriedAgain(t *testing.T) {
	eventScenario(t, func(t *testing.T, w *EventWriter, api *fake.Clientset, dropped func() float64) {
		calls := 0
		api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			calls++
			return true, nil, apierrors.NewForbidden(kubetest.PodResource, "p", errors.New("namespace is terminating"))
		})
		w.Write(rejected("no fit"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if calls != 1 || dropped() != 1 {
			t.Errorf("%d calls and %v dropped, want 1 of each", calls, dropped())
		}
	})
}
