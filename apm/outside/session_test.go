// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// endless is a scheduler whose answers last until they are ended. It notes the order of requests and ends.
type endless struct {
	fake
	denied map[string]bool // path -> refuses an answer that lasts
}

func (e *endless) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, what)
}

func (e *endless) Start(_ context.Context, path string) (Pending, error) {
	plain, _, _ := strings.Cut(path, "?")
	if e.denied[plain] {
		return nil, errors.New("denied: " + plain)
	}
	e.note("begin " + plain)
	r, w := io.Pipe()
	return &lasting{Reader: r, e: e, path: plain, w: w, first: strings.NewReader("first of " + plain + ", ")}, nil
}

// lasting is such an answer: its first bytes, and the rest when it is ended.
type lasting struct {
	io.Reader
	e     *endless
	path  string
	w     *io.PipeWriter
	first *strings.Reader
	once  sync.Once
}

func (l *lasting) Read(b []byte) (int, error) {
	if l.first.Len() > 0 {
		return l.first.Read(b)
	}
	return l.Reader.Read(b)
}

func (l *lasting) End() error {
	l.once.Do(func() {
		l.e.note("end " + l.path)
		go func() {
			_, _ = io.WriteString(l.w, "rest")
			l.w.Close()
		}()
	})
	return nil
}

func (l *lasting) Close() error { return l.w.CloseWithError(errors.New("closed")) }

// allocated returns a profile of allocations, with some bytes in one function.
func allocated(t *testing.T, n int64) string {
	t.Helper()
	f := &profile.Function{ID: 1, Name: "main.f"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}},
		Function: []*profile.Function{f}, Location: []*profile.Location{l},
		Sample: []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{n}}}}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// growing answers each request for allocations with more of them.
type growing struct {
	*endless
	t *testing.T
	n int64
}

func (g *growing) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	g.note(path)
	if path == allocsPath {
		g.n += 1000
		return io.NopCloser(strings.NewReader(allocated(g.t, g.n*g.n/1000))), nil
	}
	g.mu.Lock()
	answer, known := g.answers[path]
	g.mu.Unlock()
	if !known {
		return nil, errors.New("denied: " + path)
	}
	return io.NopCloser(strings.NewReader(answer)), nil
}

// session records until a workload of the given duration is over.
func session(t *testing.T, from Endless, took, most time.Duration) *bundle.Reader {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s, err := Begin(t.Context(), from, nil, most)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(took)
		w := bundle.NewWriter(&out)
		if err := s.End(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	r, err := bundle.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func content(t *testing.T, r *bundle.Reader, kind bundle.Kind) []byte {
	t.Helper()
	c, err := r.Open(kind)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestASessionLastsAsLongAsTheWorkload: the trace is inside of the CPU profile, metrics are directly around it, answers
// are whole, and allocations are those between begin and end. A workload that lasts longer than the limit gets a
// shorter recording.
func TestASessionLastsAsLongAsTheWorkload(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, time.Hour: time.Minute} {
		g := &growing{&endless{fake: fake{answers: map[string]string{"/metrics": "up 1\n"}}}, t, 0}
		r := session(t, g, took, time.Minute)
		if asked := []string{"begin /debug/pprof/profile", allocsPath, "/metrics", "begin /debug/pprof/trace",
			"end /debug/pprof/trace", "/metrics", allocsPath, "end /debug/pprof/profile"}; !slices.Equal(g.asked, asked) {
			t.Errorf("asked %v, want %v", g.asked, asked)
		}
		if text := string(content(t, r, bundle.Trace)); text != "first of /debug/pprof/trace, rest" {
			t.Errorf("the trace is %q", text)
		}
		p, _ := r.Part(bundle.Trace)
		if got := p.Ended.Sub(p.Began); got != want {
			t.Errorf("a workload of %v is recorded for %v, want %v", took, got, want)
		}
		allocs, err := profile.Parse(bytes.NewReader(content(t, r, bundle.Allocs)))
		if err != nil || len(allocs.Sample) != 1 || allocs.Sample[0].Value[0] != 4000-1000 {
			t.Errorf("allocations %v, %v; want the 3000 bytes between begin and end", allocs, err)
		}
	}
}

// TestASessionWithDenials: each missing part has its reason, and the rest is there.
func TestASessionWithDenials(t *testing.T) {
	e := &endless{denied: map[string]bool{"/debug/pprof/trace": true}, fake: fake{answers: map[string]string{
		"/metrics": "up 1\n"}}}
	r := session(t, e, time.Second, time.Minute)
	for kind, want := range map[bundle.Kind]string{bundle.Trace: "denied: /debug/pprof/trace",
		bundle.Allocs: "denied: /debug/pprof/allocs", bundle.CPU: "", bundle.MetricsAfter: ""} {
		if p, ok := r.Part(kind); !ok || !strings.HasPrefix(p.Missing, want) || want == "" && p.Missing != "" {
			t.Errorf("%s: missing because %q (listed: %v), want %q", kind, p.Missing, ok, want)
		}
	}
}

// TestASessionThatIsDropped: a run that fails closes its session, and nothing waits any more.
func TestASessionThatIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Begin(t.Context(), &growing{&endless{fake: fake{answers: map[string]string{"/metrics": "up 1\n"}}}, t, 0}, nil,
			time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		s.Close()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Begin(ctx, &endless{}, nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a session of a context that has ended: %v", err)
	}
}

// TestDifferenceOfRealProfiles: two profiles of this process.
func TestDifferenceOfRealProfiles(t *testing.T) {
	var before, after bytes.Buffer
	for _, to := range []*bytes.Buffer{&before, &after} {
		if err := pprof.Lookup("allocs").WriteTo(to, 0); err != nil {
			t.Fatal(err)
		}
	}
	f, err := difference(&before, &after)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		if s.Value[1] < 0 {
			t.Errorf("a negative allocation: %v", s)
		}
	}
	if _, err := difference(strings.NewReader("no"), strings.NewReader("no")); err == nil {
		t.Error("something else is taken for a profile")
	}
}
