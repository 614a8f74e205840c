// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// auditID is the header by which a client names a request. The API server accepts it as it is, writes it into its audit
// log and its traces, and answers with it (k8s.io/apiserver, WithAuditInit).
const auditID = "Audit-Id"

// Trace collects the moments of the writes of one job, whose tries follow each other.
type Trace struct {
	// Begun is when a worker took the job; set by its owner.
	Begun time.Time
	// Released is when the client's rate limiter let the first write pass, and FirstByte when the answer to the last
	// one began; 0 for never. Request identifies the last write. Recorded sets them, with its clock.
	Released, FirstByte record.Time
	Request             timing.ID

	called time.Time
}

type traceKey struct{}

// WithTrace returns a context for a write of a job. The client must be called directly afterwards: what passes until
// the transport gets the request is the wait for the client's rate limiter. t may be nil for a job of one write.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	if t == nil {
		t = &Trace{}
	}
	t.called = time.Now()
	return context.WithValue(ctx, traceKey{}, t)
}

// Recorded returns a wrapper of transports that names each write by an audit ID and records how long its parts took.
// Reads pass unchanged.
func Recorded(clock Clock, recorded func(timing.Request)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &recordedTransport{next, clock, recorded} }
}

type recordedTransport struct {
	next     http.RoundTripper
	clock    Clock
	recorded func(timing.Request)
}

// exchange is a write under way, and the body of its answer. What the connection reports may come from any goroutine,
// and late.
type exchange struct {
	io.ReadCloser   // of the answer
	of              *recordedTransport
	request         timing.Request
	connected, sent atomic.Int64
	hooks           httptrace.ClientTrace
	once            sync.Once // the exchange is recorded
}

// RoundTrip sends a request.
func (t *recordedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions {
		return t.next.RoundTrip(req)
	}
	now := t.clock.Now()
	x := &exchange{of: t, request: timing.Request{ID: newID(), Verb: req.Method, Path: req.URL.Path, Start: now,
		Released: now}}
	of, _ := req.Context().Value(traceKey{}).(*Trace)
	if of != nil {
		x.request.Start, of.Request = t.clock.At(of.called), x.request.ID
		if of.Released == 0 {
			of.Released = now
		}
	}
	x.hooks.GotConn = func(httptrace.GotConnInfo) { x.connected.Store(int64(t.clock.Now())) }
	x.hooks.WroteRequest = func(httptrace.WroteRequestInfo) { x.sent.Store(int64(t.clock.Now())) }
	answer, err := t.next.RoundTrip(named(req.WithContext(httptrace.WithClientTrace(req.Context(), &x.hooks)),
		x.request.ID.String()))
	x.request.FirstByte = t.clock.Now()
	if of != nil {
		of.FirstByte = x.request.FirstByte
	}
	if err != nil {
		x.request.Failed = err.Error()
		x.end()
		return answer, err
	}
	x.request.Status = answer.StatusCode
	x.ReadCloser, answer.Body = answer.Body, x
	return answer, nil
}

// named gives a copy of a request its audit ID. The header of the original, which a transport must not change, shares
// the values.
func named(req *http.Request, id string) *http.Request {
	header := make(http.Header, len(req.Header)+1)
	for name, values := range req.Header {
		header[name] = values
	}
	header[auditID] = []string{id}
	req.Header = header
	return req
}

// end records an exchange once. An HTTP/2 connection may report that it has sent the request after the answer.
func (x *exchange) end() {
	x.once.Do(func() {
		q := x.request
		q.Connected = min(record.Time(x.connected.Load()), q.FirstByte)
		q.Sent = min(record.Time(x.sent.Load()), q.FirstByte)
		q.End = x.of.clock.Now()
		x.of.recorded(q)
	})
}

// Read reads the answer; the exchange ends with the last byte.
func (x *exchange) Read(into []byte) (int, error) {
	n, err := x.ReadCloser.Read(into)
	if err != nil {
		x.end()
	}
	return n, err
}

// Close ends an exchange whose answer was not read to its end.
func (x *exchange) Close() error {
	x.end()
	return x.ReadCloser.Close()
}

// WrappedRoundTripper returns the transport below, as client-go asks for.
func (t *recordedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// newID returns a random UUID (RFC 9562, version 4).
func newID() (id timing.ID) {
	rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
