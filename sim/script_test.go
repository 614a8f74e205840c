// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// recorder is an engine whose events and effects are kept.
type recorder struct {
	*engine.Engine
	events  []engine.Event
	effects []string
	// resumeAt is the event before which states is taken, 0 for never.
	resumeAt int
	state    *engine.State
}

func (r *recorder) Step(ev engine.Event) []engine.Effect {
	if r.resumeAt > 0 && len(r.events) == r.resumeAt {
		st := r.State()
		r.state = &st
	}
	effects := r.Engine.Step(ev)
	r.events, r.effects = append(r.events, ev), append(r.effects, printed(effects))
	return effects
}

// printed is the form in which effects are compared. The path of a decision depends on what is cached.
func printed(effects []engine.Effect) (out string) {
	for _, f := range effects {
		if d, is := f.(engine.Decided); is {
			d.Decision.Path = ""
			f = d
		}
		text, err := json.Marshal(f)
		if err != nil {
			panic(err)
		}
		out += fmt.Sprintf("%T%s\n", f, text)
	}
	return out
}

// crowded runs pods, a gang, jobs with priority and a drain on too few nodes with lost and failed calls, and returns
// the recording of the scheduler.
func crowded(t *testing.T, seed uint64, resumeAt int) *recorder {
	t.Helper()
	rec := &recorder{Engine: engine.New(configuration()), resumeAt: resumeAt}
	model := DefaultModel()
	model.Failed, model.Lost = 0.1, 0.1
	s := newStage(seed, model, 5, Scheduler{Name: "a", Make: func() Stepper { return rec }})
	s.load(&Workload{Name: "web", Kind: ReplicaSet, Pod: asking("1", 0), Size: 12})
	s.load(&Workload{Name: "batch", Kind: Job, Pod: asking("2", 10), Size: 3, Count: 3, First: 10 * time.Second,
		Every: Always(20 * time.Second), Work: Always(30 * time.Second)})
	s.load(&Workload{Name: "train", Kind: Gang, Pod: asking("3", 5), Size: 3, Count: 2, First: 30 * time.Second,
		Every: Always(time.Minute), Work: Always(40 * time.Second)})
	s.load(&Workload{Name: "big", Pod: asking("9", 0), First: 15 * time.Second})
	s.w.At(2*time.Minute, func() { s.w.Drain(s.w.Nodes()[0]) })
	s.w.At(3*time.Minute, func() { s.w.Remove(s.w.Nodes()[1]) })
	s.w.At(4*time.Minute, func() { s.w.AddNode(node("new", "4")) })
	s.run(20 * time.Minute)
	return rec
}

// play gives events to a Script of a new engine, and returns the first event with other effects, -1 for none.
func (r *recorder) play(t *testing.T, from int) (ScriptReport, int) {
	t.Helper()
	e, err := engine.New(configuration()), error(nil)
	if r.state != nil && from > 0 {
		if e, err = engine.Resume(configuration(), *r.state); err != nil {
			t.Fatal(err)
		}
	}
	s := NewScript(e, r.state)
	for i, ev := range r.events[from:] {
		if got := printed(s.Step(ev)); got != r.effects[from+i] {
			t.Logf("event %d, %T%+v:\nrecorded  %s\nsimulated %s", from+i, ev, ev, r.effects[from+i], got)
			return s.Report(), from + i
		}
	}
	return s.Report(), -1
}

// TestRecordedRunGivesTheSameDecisions: the recording of a run with failed and lost calls, evictions, gangs and a drain
// is played with its outcomes. Every effect is as recorded, and the World explains every change by a call.
func TestRecordedRunGivesTheSameDecisions(t *testing.T) {
	for seed := range uint64(5) {
		rec := crowded(t, seed, 0)
		got, different := rec.play(t, 0)
		if different >= 0 || got.UnexplainedCount > 0 || got.Foreign+got.Before+got.Overcommits > 0 {
			t.Errorf("seed %d: event %d differs, %+v", seed, different, got)
		}
		if got.Binds < 20 || got.Evictions == 0 || got.Statuses == 0 || got.Decisions < 30 {
			t.Errorf("seed %d tests too little: %+v", seed, got)
		}
	}
}

// TestRecordedRunFromAState: a recording that begins in the middle is played from the State of its engine, with calls
// that are under way.
func TestRecordedRunFromAState(t *testing.T) {
	whole := len(crowded(t, 1, 0).events)
	for at := 50; at < whole; at += 37 {
		rec := crowded(t, 1, at)
		got, different := rec.play(t, at)
		if different >= 0 || got.UnexplainedCount > 0 {
			t.Errorf("from event %d: event %d differs, %+v", at, different, got)
		}
	}
}

// TestScriptReportsWhatItCannotExplain: a recorded bind that no call explains, an answer that contradicts the cluster,
// and another scheduler's bind.
func TestScriptReportsWhatItCannotExplain(t *testing.T) {
	rec := crowded(t, 1, 0)
	for _, c := range []struct {
		name   string
		change func(engine.Event) (engine.Event, bool)
		want   func(ScriptReport) bool
	}{
		{"bound to another node than asked", func(ev engine.Event) (engine.Event, bool) {
			set, is := ev.(engine.PodSet)
			if !is || set.Pod.NodeName != "n1" {
				return ev, false
			}
			p := *set.Pod
			p.NodeName = "n2"
			return engine.PodSet{Pod: &p}, true
		}, func(r ScriptReport) bool { return r.UnexplainedCount > 0 }},
		{"a condition that no call wrote", func(ev engine.Event) (engine.Event, bool) {
			set, is := ev.(engine.PodSet)
			if !is || set.Pod.Condition.Message == "" {
				return ev, false
			}
			p := *set.Pod
			p.Condition.Reason = v1.PodReasonSchedulingGated
			return engine.PodSet{Pod: &p}, true
		}, func(r ScriptReport) bool { return r.UnexplainedCount > 0 }},
		{"bound elsewhere, by the answer", func(ev engine.Event) (engine.Event, bool) {
			done, is := ev.(engine.BindDone)
			if !is || done.Outcome != engine.BindFailed {
				return ev, false
			}
			done.Outcome, done.Node = engine.BoundElsewhere, "n4"
			return done, true
		}, func(r ScriptReport) bool { return r.Foreign == 1 }},
	} {
		s := NewScript(engine.New(configuration()), nil)
		changed := false
		for _, ev := range rec.events {
			if !changed {
				ev, changed = c.change(ev)
			}
			s.Step(ev)
			if changed {
				break
			}
		}
		if got := s.Report(); !changed || !c.want(got) {
			t.Errorf("%s: changed: %v, %+v", c.name, changed, got)
		}
	}
}
