// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/exp/trace"
)

// groupKey identifies a group of goroutines.
type groupKey struct {
	lane  Lane
	start string
}

// tracker follows the goroutines of a trace.
type tracker struct {
	stacks     *stacks
	alive      map[trace.GoID]*goroutine
	groups     map[groupKey]*sums
	inSyscall  map[trace.ProcID]*goroutine // processor -> goroutine that has it in a system call
	noGo       *sums                       // samples without a goroutine
	loop       *cycleTracker
	first      trace.Time // of the trace
	generation trace.Time // begin of the current generation
	last       trace.Time
	processors int
	program    string
	samples    int
	// ended, if set, gets each goroutine at its end or at the end of the trace.
	ended func(g *goroutine, at trace.Time)
	// keepStates makes goroutines keep their activities.
	keepStates bool
	// clock is the first reading of the clocks; nil if the trace has none.
	clock *trace.ClockSnapshot
}

func newTracker() *tracker {
	return &tracker{stacks: newStacks(), alive: map[trace.GoID]*goroutine{}, groups: map[groupKey]*sums{},
		inSyscall: map[trace.ProcID]*goroutine{}, noGo: newSums(), loop: &cycleTracker{}}
}

// readTrace follows a trace to its end. The parser panics on some damaged traces, which becomes an error here.
func (t *tracker) readTrace(r io.Reader) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the trace is damaged: %v", cause)
		}
	}()
	events, err := trace.NewReader(r)
	if err != nil {
		return fmt.Errorf("the trace cannot be read, its Go version may be too new: %w", err)
	}
	for {
		e, err := events.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the trace is damaged or truncated: %w", err)
		}
		t.event(&e)
	}
	if len(t.alive) == 0 && len(t.groups) == 0 {
		return errors.New("the trace has no goroutines")
	}
	for _, g := range t.alive { // order: sums
		t.end(g, t.last)
	}
	t.loop.finish(t.first, t.last)
	return nil
}

func (t *tracker) event(e *trace.Event) {
	now := e.Time()
	if t.first == 0 {
		t.first, t.generation = now, now
	}
	t.last = now
	switch e.Kind() {
	case trace.EventSync:
		if s := e.Sync(); t.clock == nil {
			t.clock = s.ClockSnapshot
		}
		t.generation = now
		t.stacks.nextGeneration()
	case trace.EventMetric:
		if m := e.Metric(); m.Name == "/sched/gomaxprocs:threads" && m.Value.Kind() == trace.ValueUint64 {
			t.processors = int(m.Value.Uint64())
		}
	case trace.EventStackSample:
		t.sample(e)
	case trace.EventRangeBegin, trace.EventRangeActive, trace.EventRangeEnd:
		t.assist(e)
	case trace.EventStateTransition:
		switch st := e.StateTransition(); st.Resource.Kind {
		case trace.ResourceGoroutine:
			t.transition(e, st)
		case trace.ResourceProc:
			t.processorChange(st, now)
		}
	}
}

// transition handles a change of a goroutine's state.
func (t *tracker) transition(e *trace.Event, st trace.StateTransition) {
	id, now := st.Resource.Goroutine(), e.Time()
	from, to := st.Goroutine()
	if from == to {
		return
	}
	stack := t.stacks.id(st.Stack)
	g := t.alive[id]
	if g == nil {
		if g = t.begin(e, st, stack); g == nil {
			return
		}
	} else {
		g.leave(now)
		delete(t.inSyscall, g.processor)
		g.processor = trace.NoProc
	}
	if to == trace.GoNotExist {
		t.end(g, now)
		return
	}
	if stack != noStack {
		g.at = stack
		t.identify(g, stack, false)
	}
	if to == trace.GoSyscall {
		g.processor = e.Proc()
		if from == trace.GoUndetermined && g.processor == trace.NoProc {
			g.enter(blockedSyscall, now)
		} else {
			t.inSyscall[g.processor] = g
			g.enter(inSyscall, now)
		}
	} else {
		g.reason = t.reasonOf(st.Reason, g.at)
		g.enter(activityOf(to), now)
	}
	t.loop.changed(t, g, now)
	if from == trace.GoNotExist {
		t.loop.started(g, t.alive[e.Goroutine()], now)
	}
}

// reasonOf returns what a goroutine waits for, by the reason in the trace, or else by its stack.
func (t *tracker) reasonOf(text string, at stackID) Component {
	if c, known := componentOf[text]; known {
		return c
	}
	if text != "" {
		return Other
	}
	for _, f := range t.stacks.names(at) {
		for _, c := range componentOfFunction {
			if strings.HasPrefix(f, c.prefix) {
				return c.component
			}
		}
	}
	return Other
}

// begin adds a goroutine that appears for the first time. One that existed before was in the same state since the begin
// of the generation.
func (t *tracker) begin(e *trace.Event, st trace.StateTransition, at stackID) *goroutine {
	from, to := st.Goroutine()
	if to == trace.GoNotExist {
		return nil
	}
	g := &goroutine{id: st.Resource.Goroutine(), first: e.Time(), processor: trace.NoProc, at: at, sum: newSums()}
	g.sum.count = 1
	if t.keepStates {
		g.states = new([]stateSpan)
	}
	t.alive[g.id] = g
	if from == trace.GoNotExist {
		g.sum.created = 1
		g.origin = t.stacks.id(e.Stack())
		g.since, g.act = g.first, waiting
		return g
	}
	g.first = t.generation
	g.since, g.executing, g.assist = g.first, g.first, g.first
	g.act, g.reason = activityOf(to), t.reasonOf(st.Reason, at)
	if to == trace.GoSyscall && e.Proc() == trace.NoProc {
		g.act = blockedSyscall
	}
	g.leave(e.Time())
	return g
}

// processorChange notes that a goroutine in a system call has lost its processor.
func (t *tracker) processorChange(st trace.StateTransition, now trace.Time) {
	from, to := st.Proc()
	g := t.inSyscall[st.Resource.Proc()]
	if from == to || to != trace.ProcIdle || g == nil {
		return
	}
	delete(t.inSyscall, st.Resource.Proc())
	g.processor = trace.NoProc
	g.leave(now)
	g.enter(blockedSyscall, now)
}

// assist follows the GC assists of goroutines.
func (t *tracker) assist(e *trace.Event) {
	r := e.Range()
	if r.Scope.Kind != trace.ResourceGoroutine || r.Name != "GC mark assist" {
		return
	}
	g := t.alive[r.Scope.Goroutine()]
	if g == nil {
		return
	}
	if g.act.executes() {
		g.endAssist(e.Time())
	}
	g.assisting, g.assist = e.Kind() != trace.EventRangeEnd, e.Time()
}

// sample counts a CPU sample.
func (t *tracker) sample(e *trace.Event) {
	stack := t.stacks.id(e.Stack())
	t.samples++
	sum := t.noGo
	if g := t.alive[e.Goroutine()]; g != nil {
		t.identify(g, stack, true)
		sum = g.sum
	}
	sum.samples++
	sum.cell(stack).samples++
}

// maxSampled is below the depth at which Go cuts off the stacks of CPU samples.
const maxSampled = 60

// identify sets the start function and the lane of a goroutine by one of its stacks. The stack of a CPU sample may be
// cut off or begin in the runtime; then it does not show the start function.
func (t *tracker) identify(g *goroutine, stack stackID, sampled bool) {
	if g.lane != "" || stack == noStack || stack == g.tried {
		return
	}
	g.tried = stack
	root := t.stacks.root(stack)
	if g.start == "" && (!sampled || len(t.stacks.frames[stack]) < maxSampled && !strings.HasPrefix(root, "runtime.")) {
		g.start = root
	}
	if g.start == "" {
		return
	}
	names := t.stacks.names(stack)
	lane, sure := laneOf(g.start, names, t.stacks.names(g.origin))
	if !sure {
		return
	}
	t.join(g, lane)
	for _, f := range names {
		if p := programOf(f); p != "" && lane == Loop {
			t.program = p
		}
	}
}

// join moves the values of a goroutine to its group.
func (t *tracker) join(g *goroutine, lane Lane) {
	key := groupKey{lane, g.start}
	group := t.groups[key]
	if group == nil {
		group = newSums()
		t.groups[key] = group
	}
	group.add(g.sum)
	g.lane, g.sum = lane, group
}

// end ends a goroutine at its end or at the end of the trace.
func (t *tracker) end(g *goroutine, now trace.Time) {
	g.leave(now)
	g.enter(waiting, now)
	if g.lane == "" {
		lane, _ := laneOf(g.start, t.stacks.names(g.at), t.stacks.names(g.origin))
		t.join(g, lane)
	}
	if t.ended != nil {
		t.ended(g, now)
	}
	delete(t.alive, g.id)
}

// window is the time that the trace covers.
func (t *tracker) window() time.Duration { return t.last.Sub(t.first) }
