// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// scripted is what stands between a recording and its engine in kumiki simulate --as-recorded.
type scripted struct {
	script *sim.Script
	total  sim.ScriptReport // of the scripts before
}

// Begin begins a new simulated cluster.
func (s *scripted) Begin(e *engine.Engine, st *engine.State) {
	s.total = s.report()
	s.script = sim.NewScript(e, st)
}

// Step gives an event to the simulated cluster.
func (s *scripted) Step(ev engine.Event) []engine.Effect { return s.script.Step(ev) }

// report returns the sums of all scripts.
func (s *scripted) report() sim.ScriptReport {
	if s.script == nil {
		return s.total
	}
	return s.total.Plus(s.script.Report())
}

// recordedRun is the result of kumiki simulate --as-recorded.
type recordedRun struct {
	// Different counts the events with other effects than recorded, and First is the first of them.
	Different int    `json:"different"`
	First     int    `json:"firstDifference,omitempty"`
	Then      string `json:"recordedEffects,omitempty"`
	Now       string `json:"simulatedEffects,omitempty"`
	sim.ScriptReport
}

// runRecorded plays a recording against the simulated API server.
func (s *simulation) runRecorded(a []string) error {
	switch {
	case s.from == "":
		return usageError{fmt.Errorf("--as-recorded needs --from")}
	case len(a) > 0 || len(s.profiles) > 0 || s.change != "" || len(s.asserts) > 0 || s.seeds != "":
		return usageError{fmt.Errorf("--as-recorded has the decisions of the recording: a scenario, --profile, " +
			"--change, --seeds and --assert do not go with it")}
	case s.format != "table" && s.format != "json":
		return usageError{fmt.Errorf("--as-recorded: output must be table or json")}
	}
	names, err := tape.Files(s.from)
	if err != nil {
		return usageError{fmt.Errorf("--from: %w", err)}
	}
	var between scripted
	var out recordedRun
	note := func(text string) { fmt.Fprintln(s.io.Err, "note: "+text) }
	err = tape.PlayThrough(names, s.plugins, &between, note, func(_ *engine.Engine, step tape.Step) error {
		if !step.Differs() {
			return nil
		}
		if out.Different++; out.Different == 1 {
			out.First, out.Then, out.Now = step.Number, joined(step.Then), joined(step.Now)
		}
		return nil
	})
	if err != nil {
		return usageError{fmt.Errorf("--from %w", err)}
	}
	out.ScriptReport = between.report()
	if err := s.printRecorded(&out); err != nil {
		return err
	}
	if out.Different > 0 {
		return fmt.Errorf("simulate: %d of %d events have other effects than recorded, the first is event %d",
			out.Different, out.Events, out.First)
	}
	if out.UnexplainedCount > 0 {
		return fmt.Errorf("simulate: %d changes are not those of the simulated API server", out.UnexplainedCount)
	}
	return nil
}

func (s *simulation) printRecorded(r *recordedRun) error {
	if s.format == "json" {
		to := json.NewEncoder(s.io.Out)
		to.SetIndent("", "  ")
		return to.Encode(r)
	}
	fmt.Fprintf(s.io.Out, "%d events, %d decisions; %d events have other effects than recorded\n", r.Events,
		r.Decisions, r.Different)
	fmt.Fprintf(s.io.Out, "simulated API server: %d binds, %d evictions, %d status patches, %d overcommits\n", r.Binds,
		r.Evictions, r.Statuses, r.Overcommits)
	fmt.Fprintf(s.io.Out, "not of these calls: %d binds by others, %d changes requested before the recording\n",
		r.Foreign, r.Before)
	if r.Different > 0 {
		fmt.Fprintf(s.io.Out, "event %d:\n  recorded:  %s\n  simulated: %s\n", r.First, r.Then, r.Now)
	}
	for _, u := range r.Unexplained {
		fmt.Fprintf(s.io.Out, "not explained, event %d, %s: %s\n", u.Event, u.Object, u.What)
	}
	if more := r.UnexplainedCount - len(r.Unexplained); more > 0 {
		fmt.Fprintf(s.io.Out, "and %d more that are not explained\n", more)
	}
	return nil
}
