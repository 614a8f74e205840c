// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

var (
	mine   = record.PodRef{Namespace: "shop", Name: "web"}
	theirs = record.PodRef{Namespace: "shop", Name: "db"}
)

// Mutants: a step of the pod that is left out, and a step of another that is shown.
func TestOfOnePodTheStepsThatMeanSomethingForItAreShown(t *testing.T) {
	moved := func(p record.PodRef) []engine.Effect {
		return []engine.Effect{engine.Moved{Move: record.QueueMove{Pod: p}}}
	}
	for _, c := range []struct {
		name string
		step tape.Step
		pod  string
		want bool
	}{
		{"it goes", tape.Step{Event: engine.PodGone{Pod: mine}}, "shop/web", true},
		{"another goes and wakes it", tape.Step{Event: engine.PodGone{Pod: theirs}, Effects: moved(mine)}, "shop/web",
			true},
		{"another goes", tape.Step{Event: engine.PodGone{Pod: theirs}, Effects: moved(theirs)}, "shop/web", false},
		{"its bind", tape.Step{Event: engine.BindDone{Pod: mine}}, "shop/web", true},
		{"its decision", tape.Step{Event: engine.Cycle{},
			Effects: []engine.Effect{engine.Decided{Decision: record.Decision{Pod: mine}}}}, "shop/web", true},
		{"a tick", tape.Step{Event: engine.Tick{}}, "shop/web", false},
		{"an idle tick, of all", tape.Step{Event: engine.Tick{}}, "", false},
		{"an idle cycle, of all", tape.Step{Event: engine.Cycle{}}, "", false},
		{"a tick that moves, of all", tape.Step{Event: engine.Tick{}, Effects: moved(mine)}, "", true},
		{"a node, of all", tape.Step{Event: engine.NodeGone{Name: "n"}}, "", true},
	} {
		if got := shown(c.step, c.pod); got != c.want {
			t.Errorf("%s: shown is %v", c.name, got)
		}
	}
}

func TestAStepIsShownInWords(t *testing.T) {
	var out bytes.Buffer
	err := show(&out, tape.Step{Number: 7, Event: engine.BindDone{Pod: mine, Node: "n1", Outcome: engine.BindFailed,
		Message: "refused"}, Effects: []engine.Effect{
		engine.Moved{Move: record.QueueMove{Pod: mine, From: record.Gone, To: record.Backoff,
			Event: "ScheduleAttemptFailure", Cause: "it failed"}},
		engine.WriteEvent{Pod: mine, Type: "Warning", Reason: "FailedScheduling"},
		engine.Condition{Pod: mine, Reason: "SchedulerError"},
		engine.Wake{At: 2 * record.Second},
	}}, record.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := `
event 7 at 00:00:01.000: pod shop/web is not bound to n1: refused
  move pod shop/web: gone -> backoff, ScheduleAttemptFailure (it failed)
  write event about pod shop/web: Warning FailedScheduling
  set condition of pod shop/web: PodScheduled=False, SchedulerError
  wake at 00:00:02.000
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", strings.TrimSpace(out.String()), want)
	}
}
