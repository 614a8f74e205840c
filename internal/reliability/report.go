// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Write writes the results as table, json or markdown.
func Write(w io.Writer, format string, results []Result) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(results)
	case "markdown":
		return writeMarkdown(w, results)
	case "table":
		return writeTable(w, results)
	}
	return fmt.Errorf("output format %q is unknown; there are table, json and markdown", format)
}

// cell is all runs of one case with one scheduler.
type cell struct {
	outcome               Outcome
	why                   string
	held, runs            int
	seconds               []float64
	deaths, lost, doubled int
}

// row is one case.
type row struct {
	id, what string
	cells    map[string]*cell // scheduler -> its runs
}

// rows are the cases in order of appearance, and the schedulers in theirs.
func rows(results []Result) (out []*row, schedulers []string) {
	byID := map[string]*row{}
	for _, r := range results {
		one := byID[r.Case]
		if one == nil {
			one = &row{id: r.Case, what: r.What, cells: map[string]*cell{}}
			byID[r.Case] = one
			out = append(out, one)
		}
		c := one.cells[r.Scheduler]
		if c == nil {
			c = &cell{outcome: Held}
			one.cells[r.Scheduler] = c
		}
		if !slices.Contains(schedulers, r.Scheduler) {
			schedulers = append(schedulers, r.Scheduler)
		}
		c.add(r)
	}
	return out, schedulers
}

// add keeps the worst outcome and the first reason for it.
func (c *cell) add(r Result) {
	rank := map[Outcome]int{Held: 0, NotRun: 1, Broke: 2}
	if rank[r.Outcome] > rank[c.outcome] {
		c.outcome, c.why = r.Outcome, r.Why
	}
	if r.Outcome == NotRun {
		return
	}
	c.runs++
	if r.Outcome == Held {
		c.held++
	}
	c.seconds = append(c.seconds, r.Seconds)
	c.deaths += r.Deaths
	c.lost += r.BindsLost
	c.doubled += r.BindsDouble
}

func (c *cell) median() float64 {
	if len(c.seconds) == 0 {
		return 0
	}
	s := slices.Clone(c.seconds)
	slices.Sort(s)
	return s[len(s)/2]
}

// String is the outcome in short: held, broke 2 of 3, not run.
func (c *cell) String() string {
	if c == nil {
		return ""
	}
	text := string(c.outcome)
	if c.outcome == Broke && c.runs > 1 {
		text += fmt.Sprintf(" %d of %d", c.runs-c.held, c.runs)
	}
	return text
}

func writeTable(w io.Writer, results []Result) error {
	all, schedulers := rows(results)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "CASE\tWHAT")
	for _, s := range schedulers {
		fmt.Fprintf(t, "\t%s\tSECONDS", strings.ToUpper(s))
	}
	fmt.Fprintln(t)
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%s", r.id, r.what)
		for _, s := range schedulers {
			c := r.cells[s]
			fmt.Fprintf(t, "\t%s\t%s", c, seconds(c))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range schedulers {
		fmt.Fprintf(w, "\n%s: %s\n", s, summary(results, s))
		for _, r := range all {
			if c := r.cells[s]; c != nil && c.why != "" {
				fmt.Fprintf(w, "  %s %s: %s\n", r.id, c.outcome, c.why)
			}
		}
	}
	return nil
}

func seconds(c *cell) string {
	if c == nil || c.runs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", c.median())
}

func writeMarkdown(w io.Writer, results []Result) error {
	all, schedulers := rows(results)
	fmt.Fprint(w, "| case | what |")
	for _, s := range schedulers {
		fmt.Fprintf(w, " %s | s |", s)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|---|", len(schedulers)))
	for _, r := range all {
		fmt.Fprintf(w, "| %s | %s |", r.id, r.what)
		for _, s := range schedulers {
			c := r.cells[s]
			text := c.String()
			if c != nil && c.why != "" {
				text = "**" + text + "**: " + strings.ReplaceAll(cut(c.why, 300), "|", "\\|")
			}
			fmt.Fprintf(w, " %s | %s |", text, seconds(c))
		}
		fmt.Fprintln(w)
	}
	for _, s := range schedulers {
		fmt.Fprintf(w, "\n%s: %s\n", s, summary(results, s))
	}
	return nil
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// summary counts what one scheduler did.
func summary(results []Result, scheduler string) string {
	count := map[Outcome]int{}
	deaths, lost, doubled := 0, 0, 0
	var took []float64
	for _, r := range results {
		if r.Scheduler != scheduler {
			continue
		}
		count[r.Outcome]++
		deaths, lost, doubled = deaths+r.Deaths, lost+r.BindsLost, doubled+r.BindsDouble
		if r.Outcome == Held {
			took = append(took, r.Seconds)
		}
	}
	slices.SortFunc(took, cmp.Compare)
	text := fmt.Sprintf("%d held, %d broke, %d not run; died %d times, %d binds lost, %d double", count[Held], count[Broke], count[NotRun], deaths, lost, doubled)
	if len(took) > 0 {
		text += fmt.Sprintf("; %.1f s to quiescence in the median of those that held", took[len(took)/2])
	}
	return text
}
