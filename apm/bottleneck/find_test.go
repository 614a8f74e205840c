// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// randomWindow draws a window that is consistent.
func randomWindow(t *rapid.T) (w Window) {
	share := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0x1p-54, 1}))
	pods := rapid.SampledFrom([]float64{0, 0, 0.01, 1, 3, 1e3, 1e6})
	for range rapid.IntRange(1, 4).Draw(t, "buckets") {
		b := Bucket{Took: time.Duration(rapid.Int64Range(1, 1e10).Draw(t, "took"))}
		for s := range b.Stages {
			l := &b.Stages[s]
			l.In, l.Out, l.Content = pods.Draw(t, "in"), pods.Draw(t, "out"), pods.Draw(t, "content")
			l.AtCapacity = share.Draw(t, "capacity")
			l.Blocked = share.Draw(t, "blocked") * (1 - l.AtCapacity)
			l.Starved = share.Draw(t, "starved") * (1 - l.AtCapacity - l.Blocked)
		}
		for r := range b.Held {
			b.Held[r] = pods.Draw(t, "held")
		}
		w.Buckets = append(w.Buckets, b)
	}
	e := &w.Evidence
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		s := rapid.IntRange(0, Stages-1).Draw(t, "stage")
		left := 1.0
		for _, p := range e.Parts[s] {
			left -= p.Share
		}
		c := Cause(rapid.IntRange(0, Causes-1).Draw(t, "cause"))
		e.Parts[s] = append(e.Parts[s], Part{c, max(left, 0) * share.Draw(t, "share"), "", share.Draw(t, "stays")})
	}
	e.Flushed = share.Draw(t, "flushed")
	if rapid.Bool().Draw(t, "some retried") {
		r := share.Draw(t, "retried")
		e.Retried = &r
	}
	e.InFlight = Limit{pods.Draw(t, "limit"), 100}
	return w
}

// TestExplainedIsAShare: whatever the data, no pod-second counts twice and no value is infinite.
func TestExplainedIsAShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomWindow(t)
		v := Find(w)
		sum := v.Service
		for i, f := range v.Findings {
			if f.Cause != Arrivals || i > 0 {
				sum += f.PodSeconds
			}
			if f.Share > 1+1e-9 || f.Gain.Saved > 1+1e-9 || math.IsInf(f.Gain.PerSecond, 0) || f.Gain.PerSecond < 0 {
				t.Fatalf("finding %+v", f)
			}
		}
		if sum > v.PodSeconds*(1+1e-9)+1e-9 || v.Explained > 1 {
			t.Fatalf("%.9g of %.9g pod-seconds are explained: %+v", sum, v.PodSeconds, v)
		}
		if v.Known != (v.NotKnown == "") || v.Known && v.PodSeconds >= minPodSeconds && v.Explained < MinExplained {
			t.Fatalf("known: %v, not known because %q, explained %v", v.Known, v.NotKnown, v.Explained)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSmallestShareOfABusyLoop: a cause whose share is less than the precision of numbers, in a loop that is always
// busy, has a gain that is a number. It made 0/0.
func TestSmallestShareOfABusyLoop(t *testing.T) {
	b := Bucket{Took: time.Second}
	b.Stages[Loop] = Load{In: 10, Out: 10, Content: 5, AtCapacity: 1}
	w := Window{Buckets: []Bucket{b}}
	w.Evidence.Parts[Loop] = []Part{{GC, 1, "", 1}, {Plugin, 0x1p-54, "", 1}}
	for _, f := range Find(w).Findings {
		if math.IsNaN(f.Gain.Saved) {
			t.Fatalf("finding %+v", f)
		}
	}
}

// TestHostileDataIsNotKnown: data that cannot be true gives a reason and no cause.
func TestHostileDataIsNotKnown(t *testing.T) {
	good := func() Window {
		b := Bucket{Took: time.Second}
		b.Stages[Loop] = Load{In: 1, Out: 1, Content: 5, AtCapacity: 1}
		return Window{Buckets: []Bucket{b}}
	}
	if v := Find(good()); !v.Known || v.Findings[0].Cause != SchedulerCPU {
		t.Fatalf("good data: %+v", v)
	}
	for want, spoil := range map[string]func(*Window){
		"it takes 0s":                 func(w *Window) { w.Buckets[0].Took = 0 },
		"stage loop has the value -1": func(w *Window) { w.Buckets[0].Stages[Loop].Content = -1 },
		"the value NaN":               func(w *Window) { w.Buckets[0].Stages[Loop].In = math.NaN() },
		"the value +Inf":              func(w *Window) { w.Buckets[0].Stages[Answer].Content = math.Inf(1) },
		"add up to 1.10":              func(w *Window) { w.Buckets[0].Stages[Loop].Blocked = 0.1 },
		"gated: NaN":                  func(w *Window) { w.Buckets[0].Held[Gated] = math.NaN() },
		"causes take 1.20": func(w *Window) {
			w.Evidence.Parts[Loop] = []Part{{Plugin, 0.6, "", 0}, {GC, 0.6, "", 0}}
		},
		"cause 200 has":        func(w *Window) { w.Evidence.Parts[Loop] = []Part{{200, 0.6, "", 0}} },
		"has the share -0.5":   func(w *Window) { w.Evidence.Parts[Loop] = []Part{{Plugin, -0.5, "", 0}} },
		"Flushed is 2":         func(w *Window) { w.Evidence.Flushed = 2 },
		"Retried is 3":         func(w *Window) { r := 3.0; w.Evidence.Retried = &r },
		"a limit is no number": func(w *Window) { w.Evidence.InFlight.Value = math.NaN() },
		"more than 100000":     func(w *Window) { w.Buckets = make([]Bucket, maxBuckets+1) },
	} {
		w := good()
		spoil(&w)
		if v := Find(w); v.Known || !strings.Contains(v.NotKnown, want) || len(v.Findings) > 0 {
			t.Errorf("%q: known %v, %q, findings %v", want, v.Known, v.NotKnown, v.Findings)
		}
	}
}

// TestCausesHaveTexts: each cause has a name of its own, and texts that say what to do.
func TestCausesHaveTexts(t *testing.T) {
	for c := range Cause(Causes) {
		text, err := c.MarshalText()
		var back Cause
		if err != nil || back.UnmarshalText(text) != nil || back != c || c.What() == "" || c.Setting() == "" {
			t.Errorf("cause %d: %q, error %v, read as %s", c, text, err, back)
		}
	}
	if _, err := Cause(Causes).MarshalText(); err == nil {
		t.Error("a cause that does not exist has a name")
	}
	if err := new(Cause).UnmarshalText([]byte("weather")); err == nil {
		t.Error("weather is a cause")
	}
}
