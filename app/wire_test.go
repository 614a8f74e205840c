// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/kube/wire"
)

// TestBothWaysBind: a pod is bound with prepared requests, which are the default, and with the typed clients if the
// configuration says so.
func TestBothWaysBind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		change   func(*Options)
		prepared bool
	}{
		{"default", func(*Options) {}, true},
		{"typed clients", func(o *Options) { o.Config.Kumiki.Wire = config.TypedClients }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			api.serve(t, "1.37", false)
			api.node(t, "n1")
			api.pod(t, "p", "")
			r := startWith(t, api, c.change)
			r.binds(t, api, "p")
			binds, events := r.writes()
			_, bindsPrepared := binds.(*wire.Prepared)
			if _, eventsPrepared := events.(*wire.Prepared); bindsPrepared != c.prepared || eventsPrepared != c.prepared {
				t.Errorf("binds are sent by %T, events by %T", binds, events)
			}
		})
	}
}
