// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPhasesHaveNames: each phase has a name of its own, which JSON keeps.
func TestPhasesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for p := range Phase(Phases) {
		text, err := json.Marshal(p)
		var back Phase
		if err != nil || json.Unmarshal(text, &back) != nil || back != p || seen[p.String()] || p.String() == "" {
			t.Errorf("phase %d is %q, %s in JSON (%v), and %d when read", p, p, text, err, back)
		}
		seen[p.String()] = true
	}
	if text, err := json.Marshal(Phase(Phases)); err == nil {
		t.Errorf("a phase that does not exist is written as %s", text)
	}
	var p Phase
	if err := json.Unmarshal([]byte(`"resting"`), &p); err == nil {
		t.Error("a phase that does not exist is read")
	}
}

// TestJourneyCheck: a gap, an overlap or a wrong end is an error, and nothing is computed from it.
func TestJourneyCheck(t *testing.T) {
	good := func() Journey {
		return Journey{Began: 100, Ended: 160, End: EndBound, Spans: []PhaseSpan{
			{Phase: PhaseInbox, Start: 100, Took: 10}, {Phase: PhaseActive, Start: 110, Took: 30},
			{Phase: PhaseSent, Start: 140, Took: 20}}}
	}
	j := good()
	if err := j.Check(); err != nil || j.Total() != 60 || j.Per()[PhaseActive] != 30 {
		t.Errorf("check %v, total %d, active %d", err, j.Total(), j.Per()[PhaseActive])
	}
	for name, c := range map[string]struct {
		spoil func(*Journey)
		want  string
	}{
		"gap":            {func(j *Journey) { j.Spans[1].Took = 29 }, "begins 1 ns after"},
		"overlap":        {func(j *Journey) { j.Spans[1].Took = 31 }, "begins -1 ns after"},
		"late start":     {func(j *Journey) { j.Spans = j.Spans[1:] }, "begins 10 ns after"},
		"early end":      {func(j *Journey) { j.Ended = 161 }, "end 1 ns before the pod was observed as bound"},
		"negative":       {func(j *Journey) { j.Spans[0].Took, j.Spans[1].Took = -10, 50 }, "negative"},
		"overflow":       {func(j *Journey) { j.Spans[2].Took = 1<<63 - 1 }, "out of range"},
		"reversed":       {func(j *Journey) { j.Ended = 99; j.Spans = nil }, "before it begins"},
		"unknown phase":  {func(j *Journey) { j.Spans[1].Phase = 200 }, "phase 200 does not exist"},
		"no spans":       {func(j *Journey) { j.Spans = nil }, "the phases end 60 ns before"},
		"lost in middle": {func(j *Journey) { j.LostSpans, j.Spans[2].Start = 1, 141 }, "begins 1 ns after"},
	} {
		j := good()
		c.spoil(&j)
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	lost := good()
	lost.Spans, lost.LostSpans = lost.Spans[1:], 1
	if err := lost.Check(); err != nil {
		t.Errorf("with a lost span at the beginning: %v", err)
	}
	lost.Spans, lost.LostSpans = nil, 3
	if err := lost.Check(); err != nil {
		t.Errorf("with all spans lost: %v", err)
	}
}
