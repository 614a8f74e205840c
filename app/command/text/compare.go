// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/compare"
)

// Comparison writes the difference of two sides; limit is the number of functions, 0 for all.
func Comparison(w io.Writer, c *compare.Comparison, limit int, wide bool) error {
	p := &page{w: w, wide: wide}
	for _, side := range []struct {
		name string
		side compare.Side
	}{{"A", c.A}, {"B", c.B}} {
		of := strings.TrimSpace(side.side.Scheduler + " " + side.side.Program)
		p.printf("%s:      %s (%s), %s bound\n", side.name, strings.Join(side.side.Files, ", "), of,
			count(side.side.Pods, "pod"))
	}
	p.printf("Pods:   %d in all recordings, %d only in A, %d only in B\n", c.Matched, c.OnlyA, c.OnlyB)
	var why []string
	p.compared("PODS", slices.Concat(c.Pods, c.Phases), 0, &why)
	p.compared("WHOLE RECORDING", c.Totals, 0, &why)
	p.compared("CPU PER POD, BY LANE", c.Lanes, 0, &why)
	p.compared("CPU PER POD, BY PLUGIN", c.Plugins, 0, &why)
	p.compared("CPU PER POD, BY FUNCTION", c.Functions, limit, &why)
	if len(why) > 0 {
		p.section("Not observed:")
		for _, text := range why {
			p.printf("  %s\n", text)
		}
	}
	if len(c.Notes) > 0 {
		p.section("Notes:")
		for _, note := range c.Notes {
			p.printf("  %s\n", note)
		}
	}
	return p.err
}

// compared writes a table. Reasons of missing values are collected, each once with the rows that it is for.
func (p *page) compared(title string, list []compare.Row, limit int, why *[]string) {
	if len(list) == 0 {
		return
	}
	more := 0
	if limit > 0 && len(list) > limit {
		list, more = list[:limit], len(list)-limit
	}
	rows := [][]string{{title, "A", "B", "DIFFERENCE", "95% INTERVAL", "BY"}}
	for i := range list {
		r := &list[i]
		interval, by := "-", "-"
		if r.Interval != nil {
			interval = fmt.Sprintf("%s to %s", signed(r.Interval.Low, r.Unit), signed(r.Interval.High, r.Unit))
			by = string(r.Interval.Kind)
		}
		diff := "-"
		if r.Diff != nil {
			diff = signed(*r.Diff, r.Unit)
			if *r.A != 0 {
				diff += fmt.Sprintf(" (%+.0f%%)", 100**r.Diff / *r.A)
			}
		}
		rows = append(rows, []string{p.function(r.Name), amountOf(r.A, r.Unit), amountOf(r.B, r.Unit), diff, interval,
			by})
		if r.Why != "" && !slices.Contains(*why, r.Why) {
			*why = append(*why, r.Why)
		}
	}
	p.section("")
	p.table(rows)
	if more > 0 {
		p.printf("%d more functions; --limit 0 shows all\n", more)
	}
}

// amountOf writes a value in its unit.
func amountOf(v *float64, unit compare.Unit) string {
	if v == nil {
		return "-"
	}
	switch unit {
	case compare.Nanoseconds:
		return timeSpan(time.Duration(*v))
	case compare.Bytes:
		return bytes(int64(*v))
	case compare.PerSecond:
		return fmt.Sprintf("%.1f/s", *v)
	}
	return fmt.Sprintf("%.0f", *v)
}

// signed writes a difference with its sign.
func signed(v float64, unit compare.Unit) string {
	if v < 0 {
		v = -v
		return "-" + amountOf(&v, unit)
	}
	return "+" + amountOf(&v, unit)
}
