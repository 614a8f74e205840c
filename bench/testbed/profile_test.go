// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// profiled is a scheduler that serves a handler.
func profiled(t *testing.T, name string, handler http.HandlerFunc) *Scheduler {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return &Scheduler{Name: name, Port: port, tls: &tls.Config{InsecureSkipVerify: true}}
}

// Catches: a profile that lasts until its request ends, that is lost when it is ended early, or that one scheduler
// overwrites for another; and an error of the scheduler that is written as a profile.
func TestAProfileEndsWhenItIsStopped(t *testing.T) {
	dir := t.TempDir()
	stop, err := profiled(t, "/bin/other", pprof.Profile).StartProfile(t.Context(), dir, "deep/cpu.pprof")
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "deep", "bin_other-cpu.pprof"))
	if err != nil || !strings.HasPrefix(string(text), "\x1f\x8b") {
		t.Errorf("the profile begins with %.4q, error %v; want gzip", text, err)
	}
	refuses := profiled(t, "other", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "in use", http.StatusInternalServerError) })
	if stop, err = refuses.StartProfile(t.Context(), dir, "cpu.pprof"); err == nil {
		err = stop(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a profile that is refused gives %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other-cpu.pprof")); err == nil {
		t.Error("the answer of a scheduler that refuses is written as a profile")
	}
	if stop, err = (&Scheduler{}).StartProfile(t.Context(), dir, "cpu.pprof"); err != nil || stop(t.Context()) != nil {
		t.Errorf("a scheduler that serves nothing: %v", err)
	}
}

// TestATraceThatLastsUntilItIsEnded: its first bytes come while it lasts, and it is whole when it is ended. A refusal is
// an error.
func TestATraceThatLastsUntilItIsEnded(t *testing.T) {
	s := profiled(t, "other", pprof.Trace)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: s.tls.Clone()}}
	answer, err := s.Start(t.Context(), "/debug/pprof/trace?seconds=3600")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(answer, first); err != nil || string(first) != "go 1" {
		t.Fatalf("the trace begins with %q: %v", first, err)
	}
	if err := answer.End(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answer); err != nil || len(rest) < 100 {
		t.Errorf("the rest of the trace has %d bytes: %v", len(rest), err)
	}
	refuses := profiled(t, "other", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "in use", 500) })
	refuses.client = s.client
	if denied, err := refuses.Start(t.Context(), "/x"); err != nil {
		t.Error(err)
	} else if _, err := denied.Read(first); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a refusal gives %v", err)
	}
	if _, err := refuses.Fetch(t.Context(), "/x"); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a refusal gives %v", err)
	}
}
