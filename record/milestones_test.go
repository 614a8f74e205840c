// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"
)

// spanWords writes phases in short.
func spanWords(spans []MilestoneSpan) string {
	var out []string
	for _, s := range spans {
		took := fmt.Sprint(s.Took)
		if s.Open {
			took = "…"
		}
		out = append(out, fmt.Sprintf("%s@%d+%s", s.Phase, s.Start, took))
	}
	return strings.Join(out, " ")
}

// TestPhasesOfGangsAndEvictions: phases follow each other; a milestone that was passed over is that of the next, and what
// goes on is open.
func TestPhasesOfGangsAndEvictions(t *testing.T) {
	eviction := func(e EvictionTiming) []MilestoneSpan { return e.Phases() }
	gang := func(g GangTiming) []MilestoneSpan { return g.Phases() }
	for i, c := range []struct {
		got  []MilestoneSpan
		want string
	}{
		{gang(GangTiming{FirstMember: 5, Quorum: 30, Placed: 60, FirstBound: 82, Whole: 92}), "gathering@5+25 waiting@30+30 binding@60+22 completing@82+10"},
		{gang(GangTiming{FirstMember: 5, Quorum: 30, Placed: 30, FirstBound: 82, Whole: 82}), "gathering@5+25 binding@30+52"},
		{gang(GangTiming{FirstMember: 5, Quorum: 30}), "gathering@5+25 waiting@30+…"},
		{gang(GangTiming{FirstMember: 5, FirstBound: 9}), "gathering@5+4 completing@9+…"},
		{eviction(EvictionTiming{Requested: 1, Sent: 3, Terminating: 6, Gone: 16}), "decided@1+2 sent@3+3 terminating@6+10"},
		{eviction(EvictionTiming{Requested: 1, Gone: 16}), "decided@1+15"},
		{eviction(EvictionTiming{Requested: 1, Sent: 3}), "decided@1+2 sent@3+…"},
		{eviction(EvictionTiming{Requested: 1, Sent: 3, Failed: "denied", FailedAt: 5}), "decided@1+2 sent@3+2"},
	} {
		if got := spanWords(c.got); got != c.want {
			t.Errorf("%d: got  %s\nwant %s", i, got, c.want)
		}
	}
	e := EvictionTiming{Requested: 1, Failed: "denied", FailedAt: 9, Pods: []VictimTiming{{Sent: 2, Terminating: 4, Gone: 7}, {Sent: 3}}}
	if got := spanWords(e.PhasesOf(&e.Pods[0])) + ", " + spanWords(e.PhasesOf(&e.Pods[1])); got != "decided@1+1 sent@2+2 terminating@4+3, decided@1+2 sent@3+6" {
		t.Errorf("the victims: %s", got)
	}
}

// TestMilestonesCheck: milestones that decrease are an error, and nothing is computed from them.
func TestMilestonesCheck(t *testing.T) {
	good := func() EvictionTiming {
		return EvictionTiming{Requested: 1, Sent: 3, Terminating: 6, Gone: 16, Deleted: 4, Victims: 1,
			Pods: []VictimTiming{{Sent: 3, Terminating: 6, Gone: 16}}}
	}
	if e := good(); e.Check() != nil {
		t.Error(e.Check())
	}
	for name, c := range map[string]struct {
		spoil func(*EvictionTiming)
		want  string
	}{
		"sent early":       {func(e *EvictionTiming) { e.Sent = 0; e.Requested = 7 }, "milestone 2 is 1 ns before"},
		"gone early":       {func(e *EvictionTiming) { e.Gone = 5 }, "milestone 3 is 1 ns before"},
		"victim":           {func(e *EvictionTiming) { e.Pods[0].Terminating = 2 }, "milestone 2 is 1 ns before"},
		"victim at end":    {func(e *EvictionTiming) { e.Pods[0].Gone = 0; e.FailedAt = 2; e.Gone = 16 }, "milestone 3 is 4 ns before"},
		"more than listed": {func(e *EvictionTiming) { e.Victims = 0 }, "it has 0 victims and lists 1"},
		"overflow":         {func(e *EvictionTiming) { e.Requested, e.Sent = -1<<63, 3 }, "out of range"},
	} {
		e := good()
		c.spoil(&e)
		if err := e.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if g := (GangTiming{Gang: "ml/a", FirstMember: 9, Whole: 8}); g.Check() == nil || !strings.Contains(g.Check().Error(), "gang ml/a") {
		t.Error(g.Check())
	}
}
