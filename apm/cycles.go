// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/exp/trace"
)

// cycleTracker follows the scheduling loop of kube-scheduler. A cycle that places a pod ends when the loop starts the
// goroutine that binds it; the next one begins there, or when a wait for a pod ends.
type cycleTracker struct {
	loop      *goroutine // nil until it is known
	idle      bool       // the loop waits for a pod
	idleSince trace.Time
	idleFor   time.Duration
	begin     trace.Time // of the current cycle; 0 if it began before the trace
	placed    int
	measured  []time.Duration
	window    time.Duration
	idleStack map[stackID]bool // stack -> is one of the loop that waits for a pod
}

// waitsForPod reports whether a stack is that of the loop while the queue has no pod.
func (c *cycleTracker) waitsForPod(t *tracker, id stackID) bool {
	is, known := c.idleStack[id]
	if known {
		return is
	}
	queue, wait := false, false
	for _, f := range t.stacks.names(id) {
		queue = queue || strings.HasPrefix(f, "k8s.io/kubernetes/pkg/scheduler/backend/queue.")
		wait = wait || f == "sync.(*Cond).Wait"
	}
	if c.idleStack == nil {
		c.idleStack = map[stackID]bool{}
	}
	c.idleStack[id] = queue && wait
	return queue && wait
}

// changed is called after each change of a goroutine's state.
func (c *cycleTracker) changed(t *tracker, g *goroutine, now trace.Time) {
	if c.loop == nil && g.lane == Loop {
		c.loop = g
		if g.act == waiting && c.waitsForPod(t, g.at) {
			c.idle, c.idleSince = true, g.first
		}
	}
	switch {
	case g != c.loop:
	case c.idle && g.act == running:
		c.idle, c.begin = false, now
		c.idleFor += now.Sub(c.idleSince)
	case !c.idle && g.act == waiting && c.waitsForPod(t, g.at):
		c.idle, c.idleSince, c.begin = true, now, 0
	}
}

// started is called for each new goroutine with the one that started it, which may be nil.
func (c *cycleTracker) started(g, by *goroutine, now trace.Time) {
	if c.loop == nil || by != c.loop || !strings.HasPrefix(g.start, scheduler+"runBindingCycle") {
		return
	}
	c.placed++
	if c.begin != 0 {
		c.measured = append(c.measured, now.Sub(c.begin))
	}
	c.begin = now
}

// finish ends the trace.
func (c *cycleTracker) finish(first, last trace.Time) {
	if c.idle {
		c.idleFor += last.Sub(c.idleSince)
	}
	c.window = last.Sub(first)
}

// result returns the cycles, and nil if the trace has no loop of kube-scheduler.
func (c *cycleTracker) result(program string) *Cycles {
	if c.loop == nil || program != "kube-scheduler" {
		return nil
	}
	r := &Cycles{Placed: c.placed, Measured: len(c.measured), Idle: c.idleFor}
	slices.Sort(c.measured)
	for _, d := range c.measured {
		r.Total += d
	}
	if n := len(c.measured); n > 0 {
		r.Median, r.P99 = c.measured[n/2], c.measured[min(n*99/100, n-1)]
	}
	r.Elsewhere = c.window - r.Idle - r.Total
	return r
}
