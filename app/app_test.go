// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"go.uber.org/goleak"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// unreachableOptions returns options with an API server that is down.
func unreachableOptions(t *testing.T) Options {
	t.Helper()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	o := DefaultOptions()
	o.Rest = &rest.Config{Host: closed.Addr().String(), QPS: -1}
	o.Serve.Secure.BindPort = 0
	return o
}

// TestAnAPIServerThatIsDownIsWaitedFor: nothing ends, and the end leaves nothing behind.
func TestAnAPIServerThatIsDownIsWaitedFor(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := unreachableOptions(t)
	for _, elect := range []bool{true, false} {
		o.Config.LeaderElection.Enabled = elect
		s, err := NewScheduler(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		asked := false
		if err := s.Ask(t.Context(), func(e *engine.Engine) { asked = !e.Ready() }); err != nil || !asked {
			t.Errorf("asking: %v; asked %v", err, asked)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("with election %v the end was %v", elect, err)
		}
	}
}

func TestAnUnreadableKubeconfigIsAClearError(t *testing.T) {
	o := DefaultOptions()
	o.Kubeconfig = filepath.Join(t.TempDir(), "missing")
	if _, err := NewScheduler(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Kubeconfig) {
		t.Errorf("got %v", err)
	}
}
