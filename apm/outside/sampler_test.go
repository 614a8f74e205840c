// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/samples"
)

// podWatch is an API server whose watch of pods sends lines, one after each second.
type podWatch struct{ lines []string }

func (p podWatch) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	if path != podsPath {
		return io.NopCloser(strings.NewReader("process_cpu_seconds_total 3\n")), nil
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.Close() })
	go func() {
		for _, line := range p.lines {
			time.Sleep(time.Second)
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
		<-ctx.Done()
	}()
	return r, nil
}

// sampledOf records a scheduler and an API server for 10 s of virtual time, and returns the samples.
func sampledOf(t *testing.T, api Source) *samples.Document {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		f := &slowTrace{fake{answers: everything().answers}}
		f.answers["/metrics"] = "kumiki_paused 0\nother 5\n"
		if err := Record(t.Context(), f, bundle.NewWriter(&out), Options{Seconds: 10, API: api}); err != nil {
			t.Fatal(err)
		}
	})
	r, err := bundle.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	content, err := r.Open(bundle.Samples)
	if err != nil {
		t.Fatal(err)
	}
	d, err := samples.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// slowTrace is a scheduler whose trace takes 10 s.
type slowTrace struct{ fake }

func (s *slowTrace) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	if strings.HasPrefix(path, "/debug/pprof/trace") {
		time.Sleep(10 * time.Second)
	}
	return s.fake.Fetch(ctx, path)
}

// TestSamplesWhileTheTraceRuns: the scheduler and the pods without a node are sampled four times a second.
func TestSamplesWhileTheTraceRuns(t *testing.T) {
	event := func(kind, uid, nominated string) string {
		return `{"type":"` + kind + `","object":{"metadata":{"uid":"` + uid + `"},"status":{"nominatedNodeName":"` +
			nominated + `"}}}`
	}
	d := sampledOf(t, podWatch{[]string{event("ADDED", "a", ""), event("ADDED", "b", "n"), event("MODIFIED", "a", ""),
		event("BOOKMARK", "", ""), event("DELETED", "b", "n"), event("DELETED", "unknown", "")}})
	if n := len(d.Samples); n < 39 || n > 42 {
		t.Fatalf("%d samples in 10 s", n)
	}
	last := d.Samples[len(d.Samples)-1]
	if len(last.Values) != 1 || !last.Values.Has("kumiki_paused") || d.Before == nil || d.After == nil || len(last.Probes) == 0 {
		t.Errorf("last sample %+v, API server %v and %v", last, d.Before, d.After)
	}
	// Pod a is there from second 1 to 10, b from second 2 to 5.
	if p := last.Pods; p == nil || p.Unbound != 1 || p.Created != 2 || p.Left != 1 || p.Nominated != 0 ||
		p.Area < 11*int64(time.Second) || p.Area > 12*int64(time.Second) {
		t.Errorf("pods %+v", last.Pods)
	}
	if early := d.Samples[12].Pods; early.Nominated != 1 || early.Unbound != 2 {
		t.Errorf("after three seconds: %+v", early)
	}
}

// TestSamplesSayWhatIsMissing: without an API server, and with a watch that breaks off, there is a reason.
func TestSamplesSayWhatIsMissing(t *testing.T) {
	if d := sampledOf(t, nil); d.NoPods != "the API server was not asked" || d.NoAPI == "" || d.Samples[3].Pods != nil {
		t.Errorf("without an API server: %q, %q", d.NoPods, d.NoAPI)
	}
	broken := podWatch{[]string{`{"type":"ERROR","object":{"metadata":{"uid":"x"}}}`}}
	d := sampledOf(t, broken)
	if !strings.Contains(d.NoPods, "broke off") || d.Samples[len(d.Samples)-1].Pods != nil {
		t.Errorf("a watch that breaks off: %q", d.NoPods)
	}
}
