// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/http"
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
}

type traceKey struct{}

// called is a context that has the trace of its job, and when the client was called. With the exchange of the first try
// they are one allocation.
type called struct {
	context.Context
	at    time.Duration // since started
	job   *Trace        // nil for a job of one write
	tried atomic.Bool   // first is in use
	first exchange
}

// started is a moment to count from: the monotonic clock alone takes half of the time of time.Now.
var started = time.Now()

// Value returns the context itself for traceKey.
func (c *called) Value(key any) any {
	if key == (traceKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithTrace returns a context for a write of a job. The client must be called directly afterwards: what passes until
// the transport gets the request is the wait for the client's rate limiter. t may be nil for a job of one write.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return &called{Context: ctx, at: time.Since(started), job: t}
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

// exchange is a write under way, and the body of its answer. It is one allocation with the request that is sent.
type exchange struct {
	io.ReadCloser // of the answer
	of            *recordedTransport
	request       timing.Request
	sent          http.Request
	audit         [1]string // the value of the header auditID
	body          sentBody
	ended         atomic.Bool // the exchange is recorded
}

// sentBody is the body of a request. A transport reads it when it has a connection, to the end, from any goroutine.
//
// Rejected: net/http/httptrace. It takes three allocations more for each request: a context and two functions.
type sentBody struct {
	io.ReadCloser
	of           *recordedTransport
	began, ended atomic.Int64 // of the first read, and of the one that found the end
}

// Read reads from the body.
func (b *sentBody) Read(into []byte) (int, error) {
	if b.began.Load() == 0 {
		b.began.Store(int64(b.of.clock.Now()))
	}
	n, err := b.ReadCloser.Read(into)
	if err != nil {
		b.ended.Store(int64(b.of.clock.Now()))
	}
	return n, err
}

// RoundTrip sends a request.
func (t *recordedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions {
		return t.next.RoundTrip(req)
	}
	now := t.clock.Now()
	var x *exchange
	var job *Trace
	start := now
	if c, is := req.Context().Value(traceKey{}).(*called); is {
		start, job = t.clock.At(started.Add(c.at)), c.job
		if !c.tried.Swap(true) {
			x = &c.first
		}
	}
	if x == nil {
		x = &exchange{}
	}
	x.of = t
	x.request = timing.Request{ID: newID(), Verb: req.Method, Path: req.URL.Path, Start: start, Released: now}
	if job != nil {
		job.Request = x.request.ID
		if job.Released == 0 {
			job.Released = now
		}
	}
	answer, err := t.next.RoundTrip(x.named(req))
	x.request.FirstByte = t.clock.Now()
	if job != nil {
		job.FirstByte = x.request.FirstByte
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

// named returns a copy of a request that has the audit ID and the body of the exchange. The header of the original,
// which a transport must not change, shares the values.
func (x *exchange) named(req *http.Request) *http.Request {
	header := make(http.Header, len(req.Header)+1)
	for name, values := range req.Header {
		header[name] = values
	}
	x.audit[0] = x.request.ID.String()
	header[auditID] = x.audit[:]
	x.sent = *req
	x.sent.Header = header
	if req.Body != nil && req.Body != http.NoBody {
		x.body.ReadCloser, x.body.of = req.Body, x.of
		x.sent.Body = &x.body
	}
	return &x.sent
}

// end records an exchange once. A server may answer before it has got the whole request.
func (x *exchange) end() {
	if x.ended.Swap(true) {
		return
	}
	q := x.request
	q.Connected = min(max(record.Time(x.body.began.Load()), q.Released), q.FirstByte)
	q.Sent = min(max(record.Time(x.body.ended.Load()), q.Connected), q.FirstByte)
	q.End = x.of.clock.Now()
	x.of.recorded(q)
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

// newID returns a random UUID (RFC 9562, version 4). It is unique and no secret, so it does not need a generator for
// keys, which asks the kernel each time.
func newID() (id timing.ID) {
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
