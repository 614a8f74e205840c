// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// preBinding is the bind of a pod, which can be cancelled: by plugins until PreBind is over, and by the host until the
// bind is over.
type preBinding struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil before the bind
	bound  bool                    // PreBind is over
	why    error                   // why it was cancelled; nil if it was not
}

var _ fwk.PodInPreBind = (*preBinding)(nil)

func (b *preBinding) begin(cancel context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel, b.bound = cancel, false
	if b.why != nil { // before it began
		cancel(b.why)
	}
}

// end ends PreBind and returns why the bind was cancelled.
func (b *preBinding) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = true
	return b.why
}

// stop cancels the bind, also one that has not begun.
func (b *preBinding) stop(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.why = why
	if b.cancel != nil {
		b.cancel(why)
	}
}

// CancelPod cancels the bind unless PreBind is over. It reports whether it did.
func (b *preBinding) CancelPod(reason string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound || b.cancel == nil {
		return false
	}
	b.why = errors.New(reason)
	b.cancel(b.why)
	return true
}

// MarkPrebound makes the bind impossible to cancel. It reports whether it was not cancelled.
func (b *preBinding) MarkPrebound() bool { return b.end() == nil }

// runs reports whether PreBind is in progress.
func (b *preBinding) runs() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancel != nil && !b.bound
}

// GetPodInPreBind returns a pod whose PreBind is in progress, nil if it is not.
func (h *handle) GetPodInPreBind(uid types.UID) fwk.PodInPreBind {
	if f := h.p.host.flightOf(cluster.UID(uid)); f != nil && f.p == h.p && f.preBinding.runs() {
		return &f.preBinding
	}
	return nil
}
