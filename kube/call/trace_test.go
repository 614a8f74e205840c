// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"

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
