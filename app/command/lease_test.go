// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseServer is an API server that has one lease and nothing else.
type leaseServer struct {
	mu    sync.Mutex
	lease *coordinationv1.Lease
	// writes counts requests that wrote the lease.
	writes int
	down   bool
}

// failRequest answers a request as an API server refuses it.
func failRequest(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: "Failure", Code: int32(code), Reason: reason})
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch ours := strings.Contains(r.URL.Path, "/namespaces/kube-system/leases"); {
	case s.down:
		failRequest(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case !ours || r.Method == http.MethodGet && s.lease == nil:
		failRequest(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	default:
		if r.Method != http.MethodGet {
			s.lease = &coordinationv1.Lease{}
			json.NewDecoder(r.Body).Decode(s.lease)
			s.lease.ResourceVersion += "1"
			s.writes++
		}
		json.NewEncoder(w).Encode(s.lease)
	}
}

func (s *leaseServer) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// TestHowALeaderEnds: a leader that is stopped releases the lease and exits with 0; one that loses it exits with 1,
// so that it is restarted (upstream: cmd/kube-scheduler/app/server.go, OnStoppedLeading). A standby that is stopped
// exits with 0. Fails for a process that continues without the lease, and for one that exits with 0 although it lost
// it.
func TestHowALeaderEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		standby bool
		end     func(s *leaseServer, p *os.Process)
		code    int
		says    string
		left    string // the holder afterwards; * for the one before
	}{
		"told": {end: func(_ *leaseServer, p *os.Process) { p.Signal(syscall.SIGTERM) }, says: "Handing over: done"},
		"lost": {end: func(s *leaseServer, _ *os.Process) { s.mu.Lock(); s.down = true; s.mu.Unlock() }, code: 1,
			says: "leader election lost", left: "*"},
		"standby": {standby: true, end: func(_ *leaseServer, p *os.Process) { p.Signal(syscall.SIGTERM) }, left: "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &leaseServer{}
			if other, seconds, now := "other", int32(3600), metav1.NowMicro(); tt.standby {
				s.lease = &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1",
					Kind: "Lease"},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds,
						RenewTime: &now}}
			}
			server := httptest.NewServer(s)
			defer server.Close()
			c := program("kube-scheduler", "--kubeconfig="+kubeconfigAt(t, server.URL), "--secure-port=0",
				"--kube-api-content-type=application/json",
				"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
				"--leader-elect-retry-period=200ms")
			var errs bytes.Buffer
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan error, 1)
			go func() { gone <- c.Wait() }()
			// A process that is stopped between its first write of the lease and its first decision has nothing to hand
			// over. A leader that renewed the lease twice is past that. The test's time limit is the only one.
			for s.holder() == "" || !tt.standby && s.written() < 3 {
				time.Sleep(10 * time.Millisecond)
			}
			before := s.holder()
			if tt.standby {
				time.Sleep(time.Second) // it looks at the lease meanwhile
			}
			tt.end(s, c.Process)
			code, err := 0, <-gone
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			if code != tt.code || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("it ended with %d, want %d and %q:\n%s", code, tt.code, tt.says, errs.String())
			}
			if left := s.holder(); left != strings.ReplaceAll(tt.left, "*", before) {
				t.Errorf("the lease is held by %q afterwards", left)
			}
		})
	}
}
