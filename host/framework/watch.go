// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/config"
)

// watch observes the call for which the scheduling loop waits. Calls cost it no reading of a clock: a goroutine looks
// from time to time whether the same call is still running. So it also names a call that never returns.
type watch struct {
	limits config.Hosted

	mu      sync.Mutex
	running                   // zero while no call runs
	calls   uint64            // begun and ended so far
	cancel  func(cause error) // ends the context of the call; nil without a timeout
	looked  uint64            // calls at the last look
	since   time.Time         // of the first look at the call
	told    bool              // it was reported as slow
	late    bool              // it has taken longer than the timeout
	report  func(p Problem)
	context func() context.Context // of calls
}

// running is a call in progress.
type running struct {
	plugin *hosted
	at     config.Point
}

// begin notes a call and returns its context, and the call in which it is made.
func (w *watch) begin(h *hosted, at config.Point) (ctx context.Context, outer running) {
	ctx = w.context()
	var cancel context.CancelCauseFunc
	if w.limits.PluginTimeout > 0 {
		ctx, cancel = context.WithCancelCause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	outer, w.running = w.running, running{h, at}
	w.cancel, w.late = cancel, false
	w.calls++
	return ctx, outer
}

// end notes the end of a call. It reports whether the call took too long.
func (w *watch) end(outer running) (late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel(nil)
	}
	late = w.late
	w.running, w.cancel, w.late = outer, nil, false
	w.calls++
	return late
}

// look looks at the call in progress.
func (w *watch) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.plugin == nil || w.looked != w.calls {
		w.looked, w.since, w.told = w.calls, now, false
		return
	}
	took := now.Sub(w.since)
	if limit := w.limits.SlowCall; limit > 0 && took >= limit && !w.told {
		w.told = true
		w.report(Problem{w.plugin.name, w.at, fmt.Errorf("plugin %q at %s: the scheduling loop has waited for a call "+
			"for %v and more", w.plugin.name, w.at, took), Slow})
	}
	if limit := w.limits.PluginTimeout; limit > 0 && took >= limit && !w.late {
		w.late = true
		if w.cancel != nil {
			w.cancel(w.tooLong())
		}
	}
}

// tooLong is the error of a call that takes longer than the timeout.
func (w *watch) tooLong() error {
	return fmt.Errorf("the call took longer than pluginTimeout, %v", w.limits.PluginTimeout)
}

// The period of the looks is a part of the shorter limit.
const (
	looksPerLimit = 4
	shortestLook  = 5 * time.Millisecond
)

// Watch looks at calls in progress until the context ends: it reports slow ones, and ends the contexts of those that
// take longer than the timeout. It returns at once if neither is configured.
func (h *Host) Watch(ctx context.Context) {
	period := h.watch.limits.SlowCall
	if t := h.watch.limits.PluginTimeout; t > 0 && (period == 0 || t < period) {
		period = t
	}
	if period == 0 {
		return
	}
	ticker := time.NewTicker(max(period/looksPerLimit, shortestLook))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			h.watch.look(now)
		}
	}
}
