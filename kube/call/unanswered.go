// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Answers knows which requests to the API server have no answer. Its methods may be called from any goroutine.
type Answers struct {
	clock Clock

	mu sync.Mutex
	// since is when the first request began that has no answer, or when the API server last answered another one, if
	// that is later; 0 if no request is without an answer.
	since record.Time
	// failed counts the requests since then that ended without an answer.
	// Invariant: since is 0 if and only if failed is 0 and pending is empty.
	failed  int
	pending map[*http.Request]record.Time // request under way -> when it began
}

// NewAnswers returns an Answers without requests.
func NewAnswers(clock Clock) *Answers {
	return &Answers{clock: clock, pending: map[*http.Request]record.Time{}}
}

// Unanswered says how the API server answers.
type Unanswered struct {
	// Since is the moment from which on no request was answered although there were requests; 0 if there are none
	// without an answer. Failed counts the requests since then that ended without an answer, Pending those under way.
	Since           record.Time
	Failed, Pending int
	// Oldest is the oldest request under way, as verb and path; empty for none.
	Oldest string
}

// Unanswered returns which requests have no answer now.
func (a *Answers) Unanswered() Unanswered {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := Unanswered{Since: a.since, Failed: a.failed, Pending: len(a.pending)}
	var oldest record.Time
	for req, began := range a.pending { // order: the oldest is named, and of equally old ones the first by name
		name := req.Method + " " + req.URL.Path
		if u.Oldest == "" || began < oldest || began == oldest && name < u.Oldest {
			u.Oldest, oldest = name, began
		}
	}
	return u
}

// Observed returns a wrapper of transports whose requests are observed. An answer is any response, of whatever status.
// A watch answers when it begins, and may wait for that; a request that its caller takes back says nothing.
func (a *Answers) Observed(next http.RoundTripper) http.RoundTripper {
	return &observedTransport{next, a}
}

type observedTransport struct {
	next http.RoundTripper
	of   *Answers
}

// RoundTrip sends a request.
func (t *observedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	counts := !strings.Contains(req.URL.RawQuery, "watch=")
	if counts {
		t.of.began(req)
	}
	answer, err := t.next.RoundTrip(req)
	t.of.ended(req, err, counts)
	return answer, err
}

// WrappedRoundTripper returns the transport below, as client-go asks for.
func (t *observedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (a *Answers) began(req *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	a.pending[req] = now
	if a.since == 0 {
		a.since = now
	}
}

// ended notes the end of a request. One that does not count only shows that the API server answers.
func (a *Answers) ended(req *http.Request, err error, counts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, req)
	switch {
	case err == nil:
		a.failed, a.since = 0, 0
		if len(a.pending) > 0 {
			a.since = a.clock.Now()
		}
	case counts && !errors.Is(err, context.Canceled):
		a.failed++
	case len(a.pending) == 0 && a.failed == 0:
		a.since = 0
	}
}
