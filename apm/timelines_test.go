// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"bytes"
	"errors"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
)

// TestTheTimelineHasEachMomentOfAGoroutine: the states of a goroutine follow each other without gaps from its begin to
// its end, on the wall clock of the recording.
func TestTheTimelineHasEachMomentOfAGoroutine(t *testing.T) {
	before := time.Now().Add(-time.Second).UnixNano()
	b := traced(t, threeKinds)
	tl, err := ReadTimeline(b)
	if err != nil {
		t.Fatal(err)
	}
	after := time.Now().Add(time.Second).UnixNano()
	goroutines, states, waited := 0, map[string]bool{}, false
	for _, track := range tl.Tracks {
		at, end := int64(0), int64(0)
		for _, s := range track.Spans {
			name := tl.Names[s.Name]
			if s.From < before || s.To > after || s.From > s.To {
				t.Errorf("%s: %s from %d to %d, recorded between %d and %d", track.Name, name, s.From, s.To, before, after)
			}
			if s.Depth == 0 {
				if goroutines++; at != end {
					t.Errorf("%s: the states of a goroutine end at %d, the goroutine at %d", track.Name, at, end)
				}
				at, end = s.From, s.To
				continue
			}
			if states[name] = true; s.From != at || s.To > end {
				t.Errorf("%s: %s begins %d ns after the state before, and ends %d ns before the goroutine", track.Name,
					name, s.From-at, end-s.To)
			}
			at = s.To
			waited = waited || name == "waiting: chan" && strings.HasPrefix(tl.Names[s.At], "runtime.chanrecv")
		}
	}
	if goroutines < workers+4 || !states["running"] || !states["runnable"] || !waited || tl.Dropped > 0 {
		t.Errorf("%d goroutines with the states %v, one waits for a channel: %v; %d spans dropped", goroutines, states,
			waited, tl.Dropped)
	}
}

// podsPart is a part with the times of two pods, one of which was not bound.
func podsPart(t *testing.T) string {
	t.Helper()
	times := pods.Times{Created: pods.FromWatch}
	times.Add(pods.Pod{Namespace: "shop", Name: "web-1", Created: 1e18, Bound: 1e18 + 70})
	times.Add(pods.Pod{Namespace: "shop", Name: "web-2", Created: 1e18})
	var out bytes.Buffer
	if err := times.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const journeysPart = `{"journeys": [{"pod": {"namespace": "shop", "name": "web-1", "uid": "u"}, "began": 5, "ended": 15, "end": "bound",
	"spans": [{"phase": "inbox", "start": 5, "took": 2}, {"phase": "sent", "start": 7, "took": 8}]},
	{"pod": {"namespace": "shop", "name": "web-3"}, "began": 9, "spans": []}]}`

// TestThePodsOfATimeline: from creation to bind, with phases where the scheduler reports them. A bundle without a trace
// has a timeline of its pods.
func TestThePodsOfATimeline(t *testing.T) {
	for name, tt := range map[string]struct {
		parts map[bundle.Kind]string
		want  string
	}{
		"outside": {map[bundle.Kind]string{bundle.Pods: podsPart(t)}, "shop/web-1 70"},
		"both": {map[bundle.Kind]string{bundle.Pods: podsPart(t), bundle.Timing: journeysPart},
			"shop/web-1 10, inbox 2, sent 8"},
	} {
		tl, err := ReadTimeline(bundleOf(t, tt.parts))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, track := range tl.Tracks {
			for _, s := range track.Spans {
				got = append(got, tl.Names[s.Name]+" "+time.Duration(s.To-s.From).String())
			}
		}
		if text := strings.ReplaceAll(strings.Join(got, ", "), "ns", ""); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
	var lacks *bundle.Missing
	if _, err := ReadTimeline(bundleOf(t, map[bundle.Kind]string{bundle.Trace: "denied: off"})); !errors.As(err, &lacks) {
		t.Errorf("a bundle without a trace and without pods: %v", err)
	}
	for _, damaged := range []map[bundle.Kind]string{{bundle.Pods: podsPart(t), bundle.Timing: `{"journeys": [{}]}`},
		{bundle.Pods: "{"}, {bundle.Pods: podsPart(t), bundle.Trace: "go"}} {
		if _, err := ReadTimeline(bundleOf(t, damaged)); err == nil {
			t.Errorf("%v is taken for a profile", damaged)
		}
	}
}

// BenchmarkReadTimeline is the analysis of a trace in which eight goroutines exchange 100,000 messages.
func BenchmarkReadTimeline(b *testing.B) {
	var events bytes.Buffer
	if err := trace.Start(&events); err != nil {
		b.Fatal(err)
	}
	messages, done := make(chan int), make(chan int)
	for range 8 {
		go func() {
			for range messages {
				done <- 1
			}
		}()
	}
	for i := range 100_000 {
		messages <- i
		<-done
	}
	close(messages)
	trace.Stop()
	bundled := bundleOf(b, map[bundle.Kind]string{bundle.Trace: events.String()})
	spans := 0
	for b.Loop() {
		tl, err := ReadTimeline(bundled)
		if err != nil {
			b.Fatal(err)
		}
		spans = tl.Len()
	}
	b.ReportMetric(float64(spans), "spans")
}
