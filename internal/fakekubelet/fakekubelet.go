// SPDX-License-Identifier: Apache-2.0

// Package fakekubelet owns a kubelet that only forwards ports of pods, for tests: the nodes of local clusters have
// none. It implements the protocol portforward.k8s.io over SPDY, the side that an API server connects to.
package fakekubelet

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Kubelet is the handler. It connects every port of every pod to one address.
type Kubelet struct {
	// Address returns host:port to connect to.
	Address func() string

	requests atomic.Int32
}

// Requests returns the number of requests to forward ports.
func (k *Kubelet) Requests() int { return int(k.requests.Load()) }

// ServeHTTP takes one request to forward ports, which carries any number of connections: each is a stream of errors and
// a stream of data, which belong together by their request ID.
func (k *Kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.requests.Add(1)
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream)
	ended := make(chan struct{})
	defer close(ended)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		select {
		case streams <- s:
		case <-ended:
		}
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	failures := map[string]httpstream.Stream{} // request ID -> stream of errors
	for {
		select {
		case <-conn.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(v1.PortForwardRequestIDHeader)
			if s.Headers().Get(v1.StreamType) == v1.StreamTypeError {
				failures[id] = s
				continue
			}
			go k.connect(s, failures[id])
		}
	}
}

// connect copies data in both directions until one side ends, or reports why there is no connection.
func (k *Kubelet) connect(data, failure httpstream.Stream) {
	defer data.Close()
	defer failure.Close()
	conn, err := net.Dial("tcp", k.Address())
	if err != nil {
		fmt.Fprintf(failure, "dial tcp4 127.0.0.1:%s: connect: connection refused", data.Headers().Get(v1.PortHeader))
		return
	}
	defer conn.Close()
	var both sync.WaitGroup
	both.Go(func() { io.Copy(conn, data); conn.Close() })
	both.Go(func() { io.Copy(data, conn); data.Reset() })
	both.Wait()
}
