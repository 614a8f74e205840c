// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// Timeout bounds one call to the API server. After a write that ended so, the object is read again.
	Timeout = 30 * time.Second
	// RereadTimeout bounds one read that finds out what became of a write. Such reads are repeated until one succeeds.
	RereadTimeout = 10 * time.Second
)

// Sleep waits for d, and reports whether ctx is still alive.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil // of two that are ready, a select takes any
	case <-ctx.Done():
		return false
	}
}

// Expired returns a context that has ended: no time to wait.
func Expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// PodName is a pod as log lines name it.
func PodName(p record.PodRef) klog.ObjectRef { return klog.KRef(p.Namespace, p.Name) }
