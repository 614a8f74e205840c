// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Calls one after another use one connection, also if the answer is so long that it comes in chunks. Fault: the end of
// an answer is not read, and each call makes a connection, over HTTPS with a handshake.
func TestConnectionsAreUsedAgain(t *testing.T) {
	var nodes []string
	f := newFixture(t)
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("node-%05d", i))
	}
	var made atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: &nodes})
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	x := f.with(filters(s))
	for range 5 {
		if rejected, err := x.Filter(f.pod("p"), nodes); err != nil || len(rejected) > 0 {
			t.Fatalf("rejected %v: %v", rejected, err)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("%d connections for 5 calls, want 1", n)
	}
}
