// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// recorder keeps requests.
type recorder struct {
	mu   sync.Mutex
	kept []timing.Request
}

func (r *recorder) add(q timing.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, q)
}

// client sends through a recorded transport.
func client(r *recorder, clock Clock) *http.Client {
	return &http.Client{Transport: Recorded(clock, r.add)(&http.Transport{})}
}

// TestWritesAreNamedAndRecorded: a write has an audit ID, which the record has too; its moments do not decrease. A read
// has neither.
func TestWritesAreNamedAndRecorded(t *testing.T) {
	var got []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.Header.Get("Audit-ID"))
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "bound")
	}))
	defer api.Close()
	r, clock := &recorder{}, NewClock()
	c := client(r, clock)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		trace := &Trace{Begun: time.Now()}
		ctx := WithTrace(t.Context(), trace)
		flowcontrol.NewTokenBucketRateLimiter(1, 1).Wait(ctx) // as client-go does between the call and the transport
		req, err := http.NewRequestWithContext(ctx, method, api.URL+"/api/v1/namespaces/ns/pods/p/binding", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost && len(r.kept) != 0 {
			t.Error("recorded before the answer was read")
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		answer.Body.Close()
		if req.Header.Get("Audit-ID") != "" {
			t.Error("the transport changed the request of its caller")
		}
		if method == http.MethodGet && (trace.Released != 0 || trace.FirstByte != 0) {
			t.Errorf("a read is traced: %+v", trace)
		}
		if method == http.MethodPost && (trace.Released == 0 || trace.FirstByte < trace.Released) {
			t.Errorf("the trace of a write: %+v", trace)
		}
	}
	if len(r.kept) != 1 {
		t.Fatalf("%d requests recorded, want 1", len(r.kept))
	}
	q := r.kept[0]
	if got[0] != "GET " || got[1] != "POST "+q.ID.String() {
		t.Errorf("the server got %q, recorded is %s", got, q.ID)
	}
	if form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`); !form.MatchString(q.ID.String()) {
		t.Errorf("%s is no random UUID", q.ID)
	}
	if q.Status != http.StatusCreated || q.Start == 0 || q.Released < q.Start || q.Connected < q.Released ||
		q.Sent < q.Connected || q.FirstByte < q.Sent || q.End < q.FirstByte {
		t.Errorf("%+v", q)
	}
}

// transport is a RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// slowBody takes a while for each read.
type slowBody struct{ io.Reader }

func (s slowBody) Read(into []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	return s.Reader.Read(into)
}

// TestPartsOfAWrite: the wait for a connection ends when the transport reads the body, and the sending with the end of
// the body. The body gets there unchanged.
func TestPartsOfAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		send := Recorded(NewClock(), r.add)(transport(func(req *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			if got, err := io.ReadAll(req.Body); string(got) != "a binding" || err != nil {
				t.Errorf("sent %q, %v", got, err)
			}
			req.Body.Close()
			time.Sleep(30 * time.Millisecond)
			return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader("bound"))}, nil
		}))
		req, err := http.NewRequestWithContext(WithTrace(t.Context(), nil), http.MethodPost, "http://api/api/v1/pods", slowBody{strings.NewReader("a binding")})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the rate limiter
		answer, err := send.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		q := r.kept[0]
		got := []record.Time{q.Released - q.Start, q.Connected - q.Released, q.Sent - q.Connected, q.FirstByte - q.Sent, q.End - q.FirstByte}
		for i, want := range []record.Time{5, 10, 4, 30, 1} { // the body is two reads
			if got[i] != want*record.Time(time.Millisecond) {
				t.Errorf("part %d takes %v, want %d ms", i, time.Duration(got[i]), want)
			}
		}
	})
}

// TestAWriteOverHTTP2: the transport of real API servers reads the body on another goroutine. A second write has the
// connection at once.
func TestAWriteOverHTTP2(t *testing.T) {
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || string(got) != "a binding" || err != nil || r.Header.Get("Audit-ID") == "" {
			t.Errorf("HTTP %d, body %q (%v), header %v", r.ProtoMajor, got, err, r.Header)
		}
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "bound")
	}))
	api.EnableHTTP2 = true
	api.StartTLS()
	defer api.Close()
	r := &recorder{}
	send := Recorded(NewClock(), r.add)(api.Client().Transport)
	for range 2 {
		req, err := http.NewRequestWithContext(WithTrace(t.Context(), nil), http.MethodPost, api.URL+"/api/v1/pods", strings.NewReader("a binding"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := send.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(answer.Body); string(text) != "bound" || err != nil {
			t.Errorf("answer %q, %v", text, err)
		}
		answer.Body.Close()
	}
	for i, q := range r.kept {
		if q.Connected <= q.Released || q.Sent <= q.Connected || q.FirstByte < q.Sent || q.End < q.FirstByte || q.Status != http.StatusCreated {
			t.Errorf("write %d: %+v", i, q)
		}
	}
	if len(r.kept) != 2 {
		t.Errorf("%d writes are recorded", len(r.kept))
	}
}

// TestEachTryIsAWriteOfItsOwn: a client sends a refused write again with the same context, while the answer to the first
// try may not have been read. Each has its audit ID and its moments.
func TestEachTryIsAWriteOfItsOwn(t *testing.T) {
	r := &recorder{}
	var named []string
	send := Recorded(NewClock(), r.add)(transport(func(req *http.Request) (*http.Response, error) {
		named = append(named, req.Header.Get("Audit-ID"))
		return &http.Response{StatusCode: 429 + len(named), Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	trace := &Trace{}
	req, err := http.NewRequestWithContext(WithTrace(t.Context(), trace), http.MethodPost, "http://api/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	var answers []*http.Response
	for range 2 {
		answer, err := send.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	for _, answer := range answers {
		answer.Body.Close()
	}
	if len(r.kept) != 2 || r.kept[0].Status != 430 || r.kept[1].Status != 431 || r.kept[0].ID.String() != named[0] ||
		r.kept[1].ID.String() != named[1] || named[0] == named[1] || trace.Request != r.kept[1].ID {
		t.Errorf("%+v, the server got %q", r.kept, named)
	}
}

// TestAWriteWithoutAnAnswer is recorded with its error.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	r := &recorder{}
	c := client(r, NewClock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://127.0.0.1:1/api/v1/namespaces/ns/pods/p", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := c.Transport.RoundTrip(req); err == nil {
		answer.Body.Close()
		t.Fatal("answered")
	}
	if len(r.kept) != 1 || r.kept[0].Failed == "" || r.kept[0].Status != 0 || r.kept[0].End < r.kept[0].Start {
		t.Errorf("%+v", r.kept)
	}
}
