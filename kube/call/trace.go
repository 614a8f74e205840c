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
	return func(next http.RoundTripper) http.RoundTripper { return recordedTransport{next, clock, recorded} }
}

type recordedTransport struct {
	next     http.RoundTripper
	clock    Clock
	recorded func(timing.Request)
}

// exchange is a write under way. What the connection reports may come from any goroutine, and late.
type exchange struct {
	request         timing.Request
	connected, sent atomic.Int64
}

// RoundTrip sends a request.
func (t recordedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions {
		return t.next.RoundTrip(req)
	}
	now := t.clock.Now()
	x := &exchange{request: timing.Request{ID: newID(), Verb: req.Method, Path: req.URL.Path, Start: now,
		Released: now}}
	of, _ := req.Context().Value(traceKey{}).(*Trace)
	if of != nil {
		x.request.Start, of.Request = t.clock.At(of.called), x.request.ID
		if of.Released == 0 {
			of.Released = now
		}
	}
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { x.connected.Store(int64(t.clock.Now())) },
		WroteRequest: func(httptrace.WroteRequestInfo) { x.sent.Store(int64(t.clock.Now())) },
	})
	req = req.WithContext(ctx) // a transport must not change its request
	req.Header = req.Header.Clone()
	req.Header.Set(auditID, x.request.ID.String())
	answer, err := t.next.RoundTrip(req)
	x.request.FirstByte = t.clock.Now()
	if of != nil {
		of.FirstByte = x.request.FirstByte
	}
	if err != nil {
		x.request.Failed = err.Error()
		t.end(x, x.request.FirstByte)
		return answer, err
	}
	x.request.Status = answer.StatusCode
	answer.Body = &body{ReadCloser: answer.Body, ended: func() { t.end(x, t.clock.Now()) }}
	return answer, nil
}

// end records an exchange. An HTTP/2 connection may report that it has sent the request after the answer.
func (t recordedTransport) end(x *exchange, at record.Time) {
	q := x.request
	q.Connected = min(record.Time(x.connected.Load()), q.FirstByte)
	q.Sent = min(record.Time(x.sent.Load()), q.FirstByte)
	q.End = at
	t.recorded(q)
}

// WrappedRoundTripper returns the transport below, as client-go asks for.
func (t recordedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is the body of an answer that reports its end once.
type body struct {
	io.ReadCloser
	once  sync.Once
	ended func()
}

// Read reports the end with the last byte.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil {
		b.once.Do(b.ended)
	}
	return n, err
}

// Close reports the end of an answer that was not read to its end.
func (b *body) Close() error {
	b.once.Do(b.ended)
	return b.ReadCloser.Close()
}

// newID returns a random UUID (RFC 9562, version 4).
func newID() (id timing.ID) {
	rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
