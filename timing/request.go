// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"encoding/hex"
	"strings"
	"sync"

	"github.com/kumiki-scheduler/kumiki/record"
)

// ID is a UUID that identifies a request.
type ID [16]byte

// String returns the usual form of a UUID.
func (id ID) String() string {
	var out [36]byte
	hex.Encode(out[:8], id[:4])
	hex.Encode(out[9:13], id[4:6])
	hex.Encode(out[14:18], id[6:8])
	hex.Encode(out[19:23], id[8:10])
	hex.Encode(out[24:], id[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// Request is one write to the API server. The moments do not decrease; one that was not reached is that of the one
// before.
type Request struct {
	ID ID
	// Verb is the HTTP method, Path the path of the URL.
	Verb, Path string
	// Start is when the client was called, Released when its rate limiter let the request pass, Connected when there
	// was a connection, Sent when the request was written, FirstByte when the answer began, and End when it had been
	// read.
	Start, Released, Connected, Sent, FirstByte, End record.Time
	// Status is the HTTP status; 0 without an answer, for the reason in Failed.
	Status int
	Failed string
}

// requests are the newest requests, with a lock of their own: those that send do not wait for the loop.
type requests struct {
	mu   sync.Mutex
	kept ring[Request]
}

// Requested records a request that has ended. Any goroutine may call it.
func (r *Recorder) Requested(q Request) {
	q.Released = max(q.Released, q.Start)
	q.Connected = max(q.Connected, q.Released)
	q.Sent = max(q.Sent, q.Connected)
	q.FirstByte = max(q.FirstByte, q.Sent)
	q.End = max(q.End, q.FirstByte)
	r.requests.mu.Lock()
	defer r.requests.mu.Unlock()
	r.requests.kept.add(q)
}

// report returns a request as a record.
func (q *Request) report() record.RequestTiming {
	t := record.RequestTiming{AuditID: q.ID.String(), Verb: q.Verb, Start: q.Start, Throttle: q.Released - q.Start,
		Connect: q.Connected - q.Released, Send: q.Sent - q.Connected, Server: q.FirstByte - q.Sent,
		Answer: q.End - q.FirstByte, Status: q.Status, Failed: q.Failed}
	t.Resource, t.Namespace, t.Name = splitPath(q.Path)
	return t
}

// splitPath returns what a path of the API server names: /api/v1/namespaces/ns/pods/p/binding is pods/binding, ns, p.
func splitPath(path string) (resource, namespace, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return path, "", ""
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	switch len(parts) {
	case 0:
		return path, "", ""
	case 1:
		return parts[0], namespace, ""
	case 2:
		return parts[0], namespace, parts[1]
	}
	return parts[0] + "/" + parts[2], namespace, parts[1]
}
