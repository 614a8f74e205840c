// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"io"
	"net/http"
)

// watchBuffer is how much of a watch is read at once: some ten pods.
const watchBuffer = 32 << 10

// readsAhead reads the answers of watches in large pieces. A watch is decoded from two reads per event: its length and
// itself. golang.org/x/net/http2 gives the server its window back after such a read, by a frame of its own, which is
// encrypted and written alone: one system call for each pod or two.
//
// Rejected: larger windows, since the transport gives back what was read after 4 KiB whatever the window is.
type readsAhead struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t readsAhead) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet && resp.StatusCode == http.StatusOK && isWatch(r) {
		resp.Body = aheadBody{bufio.NewReaderSize(resp.Body, watchBuffer), resp.Body}
	}
	return resp, err
}

// isWatch reports whether a request is for a watch.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, by which client-go finds the connection below.
func (t readsAhead) WrappedRoundTripper() http.RoundTripper { return t.next }

// aheadBody is the answer to a watch. A read takes what has arrived and does not wait for more. Close may be called
// during a read, which then ends.
type aheadBody struct {
	*bufio.Reader
	io.Closer
}
