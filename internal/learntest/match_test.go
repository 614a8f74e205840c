// SPDX-License-Identifier: Apache-2.0

package learntest

import "testing"

func TestWhatMayDifferFromRunToRunDoesNotMatter(t *testing.T) {
	for _, c := range []struct {
		shown, line string
		same        bool
	}{
		{"pod a  waits 3s", "pod a waits 4m59s", true},
		{"21:54:08.719 default/a", "07:00:00.001   default/a", true},
		{"on 10.0.0.1", "on 10.128.3.7", true},
		{"cpu 100m", "cpu 200m", false},
		{"in 5m", "in 4m", false},
		{"12 pods", "13 pods", false},
		{"pod … waits", "pod default/a waits", true},
		{"pod … waits", "pod default/a runs", false},
		{"a…b…c", "a b b c", true},
		{"a…b…c", "a c b", false},
		{"a", "a b", false},
	} {
		if got := SameLine(c.shown, c.line); got != c.same {
			t.Errorf("SameLine(%q, %q) = %v", c.shown, c.line, got)
		}
	}
}

func TestMatchTakesTheFewestLinesAndMatchAllTakesEveryLine(t *testing.T) {
	lines := []string{"one", "two", "three", "two", "four"}
	for _, c := range []struct {
		shown []string
		takes int
		all   bool
	}{
		{[]string{"one", "two"}, 2, false},
		{[]string{"two"}, -1, false},
		{[]string{"…", "two"}, 2, false},
		{[]string{"…", "two", "four"}, 5, true},
		{[]string{"…"}, 0, true},
		{[]string{"one", "…", "four"}, 5, true},
		{[]string{"one", "…", "five"}, -1, false},
		{nil, 0, false},
	} {
		if got := Match(c.shown, lines); got != c.takes {
			t.Errorf("Match(%q) = %d, want %d", c.shown, got, c.takes)
		}
		if got := MatchAll(c.shown, lines); got != c.all {
			t.Errorf("MatchAll(%q) = %v", c.shown, got)
		}
	}
}
