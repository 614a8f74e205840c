// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"time"

	"golang.org/x/exp/trace"
)

// activity is what a goroutine does at a moment. Exactly one applies from its first appearance to its end.
type activity uint8

const (
	running activity = iota
	runnable
	inSyscall      // in a system call, with a processor
	blockedSyscall // in a system call that lost its processor
	waiting
	activities // their number
)

// interval is a time in which a goroutine executed.
type interval struct{ from, to trace.Time }

// goroutine is the state of one goroutine of the trace.
type goroutine struct {
	id     trace.GoID
	start  string  // start function; empty until a stack shows it
	origin stackID // stack that created it
	first  trace.Time
	since  trace.Time // begin of the current activity
	act    activity
	reason Component // while waiting
	at     stackID   // where it stopped executing
	// processor is the one that it has in a system call.
	processor trace.ProcID
	// executing is the begin of the current interval of execution; it spans running and system calls.
	executing trace.Time
	assisting bool // in a GC assist
	assist    trace.Time
	spent     [activities]time.Duration
	// sum is shared by the goroutines of a group once the lane is known; before that it is the goroutine's own.
	sum  *sums
	lane Lane // empty until known
	// tried is the last stack that did not show the lane.
	tried stackID
	// states are its activities, one after the other, if the tracker keeps them.
	states *[]stateSpan
}

// cell are the values of one stack in a group.
type cell struct {
	samples  int
	runnable time.Duration
	syscall  time.Duration // blocked in system calls
	blocked  Blocked
}

// sums are the values of a group of goroutines: those with one lane and one start function.
type sums struct {
	count, created int
	samples        int
	spent          [activities]time.Duration
	assist         time.Duration
	blocked        Blocked
	stacks         map[stackID]*cell
	executed       []interval
}

func newSums() *sums { return &sums{blocked: Blocked{}, stacks: map[stackID]*cell{}} }

func (s *sums) cell(id stackID) *cell {
	c := s.stacks[id]
	if c == nil {
		c = &cell{}
		s.stacks[id] = c
	}
	return c
}

// add adds the values of another group.
func (s *sums) add(o *sums) {
	s.count, s.created, s.samples = s.count+o.count, s.created+o.created, s.samples+o.samples
	for a := range s.spent {
		s.spent[a] += o.spent[a]
	}
	s.assist += o.assist
	s.blocked.add(o.blocked)
	s.executed = append(s.executed, o.executed...)
	for id, c := range o.stacks { // order: sums
		to := s.cell(id)
		to.samples, to.runnable, to.syscall = to.samples+c.samples, to.runnable+c.runnable, to.syscall+c.syscall
		for component, d := range c.blocked { // order: sums
			to.block(component, d)
		}
	}
}

func (b Blocked) add(o Blocked) {
	for component, d := range o { // order: sums
		b[component] += d
	}
}

func (c *cell) block(component Component, d time.Duration) {
	if c.blocked == nil {
		c.blocked = Blocked{}
	}
	c.blocked[component] += d
}

// activityOf returns the activity of a state. A goroutine in a system call has a processor unless it is known not to.
func activityOf(s trace.GoState) activity {
	switch s {
	case trace.GoRunning:
		return running
	case trace.GoRunnable:
		return runnable
	case trace.GoSyscall:
		return inSyscall
	}
	return waiting
}

// executes reports whether an activity uses a processor.
func (a activity) executes() bool { return a == running || a == inSyscall }

// leave ends the current activity at a time.
func (g *goroutine) leave(now trace.Time) {
	d := now.Sub(g.since)
	if g.states != nil && d > 0 {
		*g.states = append(*g.states, stateSpan{g.act, g.reason, g.at, g.since, now})
	}
	g.spent[g.act] += d
	g.sum.spent[g.act] += d
	switch g.act {
	case runnable:
		g.sum.cell(g.at).runnable += d
	case waiting:
		g.sum.blocked[g.reason] += d
		g.sum.cell(g.at).block(g.reason, d)
	case blockedSyscall:
		g.sum.cell(g.at).syscall += d
	}
	g.since = now
}

// enter begins an activity; leave has ended the one before.
func (g *goroutine) enter(next activity, now trace.Time) {
	if g.act.executes() && !next.executes() {
		g.sum.executed = append(g.sum.executed, interval{g.executing, now})
		g.endAssist(now)
	}
	if !g.act.executes() && next.executes() {
		g.executing, g.assist = now, now
	}
	g.act = next
}

// endAssist adds the executing part of a GC assist.
func (g *goroutine) endAssist(now trace.Time) {
	if g.assisting {
		g.sum.assist += now.Sub(g.assist)
		g.assist = now
	}
}

// life is the time from the first appearance of the goroutine to a time.
func (g *goroutine) life(now trace.Time) time.Duration { return now.Sub(g.first) }
