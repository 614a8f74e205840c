// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Formats are the values of -o.
var Formats = []string{"table", "json", "csv", "html"}

// Write writes a report in a format of Formats.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return err
	case "csv":
		return r.csv(w)
	case "html":
		return r.html(w)
	}
	return r.table(w)
}

// Number writes a value with at most six digits.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// table writes a metric in each line, with all profiles, and what differs.
func (r *Report) table(w io.Writer) error {
	seeds := strconv.Itoa(len(r.Seeds)) + " seeds"
	if len(r.Seeds) == 1 {
		seeds = "seed " + strconv.FormatUint(r.Seeds[0], 10)
	}
	fmt.Fprintf(w, "Scenario %s, %s\n", r.Scenario, seeds)
	for p, name := range r.Profiles {
		run := r.Results[p*len(r.Seeds)]
		fmt.Fprintf(w, "  %s: ended after %s s of virtual time, because %s\n", name, Number(run.Seconds), run.Reason)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := append([]string{"METRIC"}, r.Profiles...)
	for _, name := range r.Profiles[1:] {
		head = append(head, name+" LESS "+r.Profiles[0])
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, row := range r.Rows {
		if !row.shown() {
			continue
		}
		line := []string{row.Name}
		for _, c := range row.Cells {
			line = append(line, c.text(row.Unit, len(r.Seeds)))
		}
		for _, c := range row.Cells[1:] {
			line = append(line, c.difference())
		}
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Failed {
		if _, err := fmt.Fprintf(w, "\nFAILED in %s, seed %d: %s\n", f.Profile, f.Seed, f.What); err != nil {
			return err
		}
	}
	return nil
}

// shown reports whether a row stands in a table: some profile has a value, and some value is not 0.
func (r Row) shown() bool {
	for _, c := range r.Cells {
		if c.Mean != nil && *c.Mean != 0 {
			return true
		}
	}
	return false
}

func (c Cell) text(unit string, seeds int) string {
	if c.Mean == nil {
		return "-"
	}
	text := Number(*c.Mean)
	if unit != "" {
		text += " " + unit
	}
	if c.Runs < seeds {
		text += fmt.Sprintf(" (%d of %d runs)", c.Runs, seeds)
	}
	return text
}

func (c Cell) difference() string {
	switch {
	case c.Difference == nil:
		return "-"
	case c.Half == nil:
		return fmt.Sprintf("%+.6g", *c.Difference)
	}
	return fmt.Sprintf("%+.6g ± %.3g", *c.Difference, *c.Half)
}

// csv writes a line for each profile, seed and metric.
func (r *Report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"scenario", "profile", "seed", "metric", "unit", "value"}); err != nil {
		return err
	}
	for _, run := range r.Results {
		for _, m := range run.Metrics {
			value := ""
			if m.Value != nil {
				value = strconv.FormatFloat(*m.Value, 'g', -1, 64)
			}
			if err := out.Write([]string{r.Scenario, run.Profile, strconv.FormatUint(run.Seed, 10), m.Name, m.Unit,
				value}); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
