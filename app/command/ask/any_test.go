// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// fetched returns the answer of the scheduler to a path that the test's scheduler serves.
func fetched(t *testing.T, c *Client) (string, error) {
	t.Helper()
	answer, err := c.Fetch(t.Context(), "/kumiki/v1/queue")
	if err != nil {
		return "", err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	return string(text), err
}

// TestAnyScheduler: kube-scheduler, whose lease has no address, is found by its pod: that of kubeadm, of the holder of
// its lease, or the named one.
func TestAnyScheduler(t *testing.T) {
	kubeadm := map[string]string{"component": "kube-scheduler"}
	for name, tt := range map[string]struct {
		pod    string
		labels map[string]string
		change func(*world)
		where  Where
	}{
		"holder of the lease": {"kube-scheduler-host", nil, func(w *world) { w.lease.Annotations = nil }, Default()},
		"no lease":            {"any", kubeadm, func(w *world) { w.lease = nil }, Default()},
		"named": {"any", nil, func(w *world) { w.lease.Annotations = nil },
			Where{Namespace: "kube-system", Pod: "kube-system/any"}},
		"kumiki": {"host", nil, func(*world) {}, Default()},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := forwarded(t, tt.pod, tt.labels)
			tt.change(w)
			tt.where.Any = true
			c, err := w.findIn(t, tt.where)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := fetched(t, c); err != nil || !strings.Contains(text, "7") {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestEndpointWithACertificate: the address and the certificate of a scheduler without a lease are given. Another server
// on the address gets no request, unless the user asks for no verification.
func TestEndpointWithACertificate(t *testing.T) {
	w := newWorld(t)
	w.lease = nil
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.scheduler.Certificate().Raw})
	at := Where{Any: true, Endpoint: w.scheduler.Listener.Addr().String(), CA: certificate}
	c, err := w.findIn(t, at)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fetched(t, c); err != nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
	var asked atomic.Int32
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	other.TLS = selfSigned(t)
	other.StartTLS()
	t.Cleanup(other.Close)
	at.Endpoint = other.Listener.Addr().String()
	for _, insecure := range []bool{false, true} {
		at.Insecure = insecure
		if insecure {
			at.CA = nil
		}
		c, err := w.findIn(t, at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fetched(t, c)
		if got := asked.Load() > 0; got != insecure || (err == nil) != insecure {
			t.Errorf("insecure %v: the other server was asked: %v, error %v", insecure, got, err)
		}
	}
}

// TestDenialsOfAnyScheduler: each status has its own reason.
func TestDenialsOfAnyScheduler(t *testing.T) {
	w := newWorld(t)
	for user, want := range map[string]string{"": "does not accept your credentials (401)",
		"unauthorized": "you need get on the nonResourceURL /debug/pprof/trace", token: "enableProfiling: false"} {
		w.cfg.BearerToken = user
		c, err := w.find(t)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Fetch(t.Context(), "/debug/pprof/trace?seconds=1")
		var status *StatusError
		if !errors.As(err, &status) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", user, err, want)
		}
	}
}
