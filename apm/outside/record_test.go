// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// fake answers by path without the query. A path that it does not have is denied.
type fake struct {
	answers map[string]string // path -> answer
	mu      sync.Mutex
	asked   []string // paths with queries, guarded by mu
}

func (f *fake) Fetch(_ context.Context, path string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, path)
	plain, _, _ := strings.Cut(path, "?")
	answer, known := f.answers[plain]
	if !known {
		return nil, errors.New("denied: " + plain)
	}
	return io.NopCloser(strings.NewReader(answer)), nil
}

// recorded records a fake scheduler, with virtual time.
func recorded(t *testing.T, f *fake) (data []byte, lines []string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var mu sync.Mutex
		err = Record(t.Context(), f, bundle.NewWriter(&out), Options{Seconds: 10, Progress: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}})
		data = out.Bytes()
	})
	return data, lines, err
}

// everything is a scheduler that denies nothing.
func everything() *fake {
	return &fake{answers: map[string]string{"/metrics": "up 1\n", "/debug/pprof/trace": "a trace",
		"/debug/pprof/profile": "a profile", "/debug/pprof/allocs": "allocations"}}
}

// TestTheTraceIsInsideTheProfile: the CPU profile begins first and is longer than the trace, with metrics around it.
func TestTheTraceIsInsideTheProfile(t *testing.T) {
	f := everything()
	data, lines, err := recorded(t, f)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(f.asked[:3])                                                    // they are at the same time
	f.asked = slices.DeleteFunc(slices.Clone(f.asked), func(path string) bool { // samples are taken meanwhile
		return path == "/metrics"
	})
	if want := []string{"/debug/kumiki/work?seconds=12", "/debug/pprof/allocs?seconds=12",
		"/debug/pprof/profile?seconds=12", "/debug/pprof/trace?seconds=10"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %v, want %v", f.asked, want)
	}
	if !slices.Contains(lines, "the trace has begun") {
		t.Errorf("progress %q", lines)
	}
	r, err := bundle.NewReader(bytes.NewReader(data), int64(len(data)), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[bundle.Kind]string{bundle.Trace: "a trace", bundle.CPU: "a profile",
		bundle.Allocs: "allocations", bundle.MetricsBefore: "up 1\n", bundle.MetricsAfter: "up 1\n"} {
		content, err := r.Open(kind)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(content); string(text) != want {
			t.Errorf("%s is %q, want %q", kind, text, want)
		}
		content.Close()
	}
	if m := r.Manifest; m.Seconds != 10 || !m.Ended.After(m.Began) {
		t.Errorf("manifest %+v", m)
	}
}

// TestDenialsAreReasons: what the scheduler denies is missing with the reason, and the rest is there.
func TestDenialsAreReasons(t *testing.T) {
	f := everything()
	delete(f.answers, "/debug/pprof/allocs")
	f.answers["/metrics"] = ""
	data, lines, err := recorded(t, f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bundle.NewReader(bytes.NewReader(data), int64(len(data)), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for kind, why := range map[bundle.Kind]string{bundle.Allocs: "denied: /debug/pprof/allocs",
		bundle.MetricsBefore: "the answer is empty", bundle.Trace: "", bundle.CPU: ""} {
		if p, ok := r.Part(kind); !ok || p.Missing != why {
			t.Errorf("%s: missing because %q (listed: %v), want %q", kind, p.Missing, ok, why)
		}
	}
	if !slices.Contains(lines, "no allocs-profile: denied: /debug/pprof/allocs") {
		t.Errorf("progress %q", lines)
	}
}

// TestNothingToRecordIsAnError: metrics alone are no profile.
func TestNothingToRecordIsAnError(t *testing.T) {
	data, _, err := recorded(t, &fake{answers: map[string]string{"/metrics": "up 1\n"}})
	if err == nil || !strings.Contains(err.Error(), "denied: /debug/pprof/trace") {
		t.Errorf("%v, with %d bytes", err, len(data))
	}
	for _, seconds := range []int{0, -1, MaxSeconds + 1} {
		if err := Record(t.Context(), everything(), bundle.NewWriter(io.Discard), Options{Seconds: seconds}); err == nil {
			t.Errorf("%d seconds are recorded", seconds)
		}
	}
}

// TestAnInterruptedRecordingIsAnError: there is no bundle with half of the parts.
func TestAnInterruptedRecordingIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Record(ctx, everything(), bundle.NewWriter(io.Discard), Options{Seconds: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
