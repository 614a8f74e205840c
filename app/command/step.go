// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// clock formats a time of a recording, in UTC, so that the output is the same everywhere.
func clock(t record.Time) string { return time.Unix(0, int64(t)).UTC().Format("15:04:05.000") }

// shown reports whether a step is displayed: it concerns the pod, or, without a pod, it has an effect.
func shown(s tape.Step, pod string) bool {
	if pod == "" {
		_, tick := s.Event.(engine.Tick)
		_, cycle := s.Event.(engine.Cycle)
		return !tick && !cycle || len(s.Effects) > 0
	}
	switch e := s.Event.(type) {
	case engine.PodSet:
		if e.Pod.Key() == pod {
			return true
		}
	case engine.PodGone:
		if e.Pod.Key() == pod {
			return true
		}
	case engine.BindDone:
		if e.Pod.Key() == pod {
			return true
		}
	}
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case engine.Moved:
			if e.Move.Pod.Key() == pod {
				return true
			}
		case engine.Decided:
			if e.Decision.Pod.Key() == pod {
				return true
			}
		}
	}
	return false
}

// show prints an event and its effects.
func show(w io.Writer, s tape.Step, now record.Time) error {
	fmt.Fprintf(w, "\nevent %d at %s: %s\n", s.Number, clock(now), eventText(s))
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case engine.Moved:
			m := e.Move
			fmt.Fprintf(w, "  move pod %s: %s -> %s, %s (%s)\n", m.Pod.Key(), m.From, m.To, m.Event, m.Cause)
		case engine.Decided:
			if err := text.Decision(w, e.Decision); err != nil {
				return err
			}
		case engine.Bind:
			fmt.Fprintf(w, "  bind pod %s to %s\n", e.Pod.Key(), e.Node)
		case engine.Condition:
			fmt.Fprintf(w, "  set condition of pod %s: PodScheduled=False, %s\n", e.Pod.Key(), e.Reason)
		case engine.WriteEvent:
			fmt.Fprintf(w, "  write event about pod %s: %s %s\n", e.Pod.Key(), e.Type, e.Reason)
		case engine.Wake:
			fmt.Fprintf(w, "  wake at %s\n", clock(e.At))
		default:
			fmt.Fprintf(w, "  engine.%s %+v\n", reflect.TypeOf(e).Name(), e)
		}
	}
	return nil
}

// eventText returns the content of an event in words. The recording has all of it.
func eventText(s tape.Step) string {
	switch e := s.Event.(type) {
	case engine.NodeSet:
		return "node " + e.Node.Name + " is there or has changed"
	case engine.NodeGone:
		return "node " + e.Name + " is gone"
	case engine.PodSet:
		state := "pending"
		if e.Pod.NodeName != "" {
			state = "on " + e.Pod.NodeName
		}
		if e.Pod.Terminating {
			state += ", terminating"
		}
		return fmt.Sprintf("pod %s is there or has changed (%s)", e.Pod.Key(), state)
	case engine.PodGone:
		return "pod " + e.Pod.Key() + " is gone"
	case engine.BindDone:
		if e.Outcome == engine.Bound {
			return fmt.Sprintf("pod %s is bound to %s", e.Pod.Key(), e.Node)
		}
		return fmt.Sprintf("pod %s is not bound to %s: %s", e.Pod.Key(), e.Node, e.Message)
	case engine.Tick:
		return "tick"
	case engine.Synced:
		return "the initial lists are complete"
	case engine.Cycle:
		return "cycle"
	}
	return string(s.EventLine)
}
