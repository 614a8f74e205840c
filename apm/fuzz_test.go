// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// FuzzScrapes: whatever /metrics answers before and after, reading both ends without a panic, and what is shown is a
// number that did not fall.
func FuzzScrapes(f *testing.F) {
	const attempts = "scheduler_schedule_attempts_total{profile=\"p\",result=\"scheduled\"} "
	f.Add("process_start_time_seconds 5\nprocess_cpu_seconds_total 1\n"+attempts+"3\n",
		"process_start_time_seconds 5\nprocess_cpu_seconds_total 2\n"+attempts+"7\n")
	f.Add("process_cpu_seconds_total 1e308\nprocess_cpu_seconds_total{a=\"b\"} 1e308\n", "process_cpu_seconds_total 1e308\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		p, err := Analyze(bundleOf(t, map[bundle.Kind]string{bundle.MetricsBefore: before, bundle.MetricsAfter: after}))
		if err != nil {
			return
		}
		if p.CPU.Process != nil && *p.CPU.Process < 0 {
			t.Errorf("the process used %v", *p.CPU.Process)
		}
		for _, a := range p.Attempts {
			if a.Count < 0 {
				t.Errorf("%d attempts %q", a.Count, a.Result)
			}
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	})
}

// FuzzAllocs: whatever the allocation profile contains, reading it ends without a panic, and no function allocated less
// than nothing.
func FuzzAllocs(f *testing.F) {
	var packed bytes.Buffer
	if err := pprof.Lookup("allocs").WriteTo(&packed, 0); err != nil {
		f.Fatal(err)
	}
	plain, err := readProfile(&packed)
	if err != nil {
		f.Fatal(err)
	}
	var out bytes.Buffer
	if err := plain.WriteUncompressed(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(data)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		of, err := readAllocs(&packed)
		if err != nil {
			return
		}
		for name, n := range of {
			if n < 0 {
				t.Errorf("%q allocated %d bytes", name, n)
			}
		}
	})
}

// FuzzTrace: whatever the trace contains, a profile of it ends without a panic, and no time is negative.
func FuzzTrace(f *testing.F) {
	var events bytes.Buffer
	if err := trace.Start(&events); err != nil {
		f.Fatal(err)
	}
	spin(time.Millisecond)
	trace.Stop()
	f.Add(events.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Analyze(bundleOf(t, map[bundle.Kind]string{bundle.Trace: string(data)}))
		if err != nil || strings.HasPrefix(string(data), "denied") {
			return
		}
		if *p.Traced < 0 {
			t.Errorf("traced for %v", *p.Traced)
		}
		for _, rows := range [][]Row{p.Lanes, p.Goroutines, p.Functions} {
			for _, r := range rows {
				if r.Running < 0 || r.Runnable < 0 || r.BlockedSyscall < 0 || r.Wait() < 0 {
					t.Errorf("%q: a time is negative: %+v", r.Name, r)
				}
			}
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	})
}
