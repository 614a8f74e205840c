// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// What kumiki is to reach: this share of null, and no less than kube-scheduler.
const goalOfNull = 0.9

// Markdown writes the comparison table for a document: what was measured where, throughput and ratios, then what it
// cost.
func (c *Comparison) Markdown(w io.Writer) error {
	names := c.schedulers()
	var b strings.Builder
	first, last := c.span()
	fmt.Fprintf(&b, "%s, %s. %s; %g calls per second and client; kube-scheduler is %s.\n", days(first, last),
		c.Machine.text(), c.Go, c.QPS, c.release())
	b.WriteString("API server, etcd, scheduler and the program that measures share the CPUs.\n")
	b.WriteString("Pods bound per second: median (min..max) of the runs; ratios are the medians of those of the same round, with their 95 % interval.\n")
	b.WriteString("A row counts when null leaves less than 5 % of the machine idle, and others than those that are measured use less than 5 % of it.\n\n")
	for _, line := range c.summary() {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n### Throughput\n\n")
	head := append([]string{"workload", "nodes", "pods", "measured", "runs"}, names...)
	head = append(head, "kumiki of null", "kumiki of kube-scheduler", "kube-scheduler of null", "counts")
	markdownHead(&b, head)
	for _, name := range c.workloads() {
		markdownRow(&b, c.throughputCells(name, names))
	}
	b.WriteString("\n### What it took\n\n")
	b.WriteString("Latency runs from the create call to the bind; CPU and memory are those of the scheduler's process.\n\n")
	markdownHead(&b, []string{"workload", "scheduler", "p50", "p99", "p99.9", "max", "gang p99", "attempts per pod", "CPU", "peak memory", "oversold", "null idle"})
	for _, name := range c.workloads() {
		for _, r := range c.rowsOf(name) {
			if r.Scheduler != CreateOnly && r.Scheduler != Null {
				markdownRow(&b, []string{name, r.Scheduler, r.Latency.P50.Text(), r.Latency.P99.Text(), r.Latency.P999.Text(), r.Latency.Max.Text(), r.gangP99(), number("%.2f", r.Attempts.Median),
					number("%.1f s", r.CPU.Median), number("%.0f MiB", r.PeakRSS.Median/(1<<20)), fmt.Sprint(r.Oversold), c.idleOfNull(name)})
			}
		}
	}
	if differ := c.writesOf(Kumiki); len(differ) > 0 {
		b.WriteString("\n### What kumiki writes otherwise\n\nPer pod, where it is more or less than kube-scheduler by a twentieth and more.\n\n")
		for _, line := range differ {
			b.WriteString("- " + line + "\n")
		}
	}
	if failures := c.allFailures(); len(failures) > 0 {
		b.WriteString("\n### What failed\n\n")
		for _, line := range failures {
			b.WriteString("- " + line + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// schedulers are all that have a row, in the order of the rows.
func (c *Comparison) schedulers() []string {
	var names []string
	for _, r := range c.Rows {
		if !slices.Contains(names, r.Scheduler) {
			names = append(names, r.Scheduler)
		}
	}
	return names
}

// span is the first and the last date of a trial.
func (c *Comparison) span() (first, last string) {
	first, last = c.Date, c.Date
	for _, t := range c.Trials {
		if t.Date != "" {
			first, last = min(first, t.Date), max(last, t.Date)
		}
	}
	return first, last
}

// days says when; times are RFC 3339.
func days(first, last string) string {
	day := func(s string) string { return s[:min(len(s), len("2006-01-02"))] }
	if day(first) == day(last) {
		return day(first)
	}
	return day(first) + " to " + day(last)
}

func markdownHead(b *strings.Builder, cells []string) {
	markdownRow(b, cells)
	b.WriteString("|" + strings.Repeat(" --- |", len(cells)) + "\n")
}

func markdownRow(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func (c *Comparison) throughputCells(name string, schedulers []string) []string {
	rows := c.rowsOf(name)
	shown := name
	size := WorkloadSize{}
	for _, s := range c.Workloads {
		if s.Name == name {
			size = s
		}
	}
	if size.Upstream != "" {
		shown += " (" + size.Upstream + ")"
	}
	if size.Seed != nil {
		shown += ", seed " + size.SeedText()
	}
	runs := 0
	for _, r := range rows {
		runs = max(runs, r.Rounds+r.Failed)
	}
	cells := []string{shown, fmt.Sprint(size.Nodes), fmt.Sprint(size.Pods), fmt.Sprint(podsOf(rows)), fmt.Sprint(runs)}
	for _, s := range schedulers {
		cell := "-"
		if r := c.Row(name, s); r != nil {
			cell = spreadText("%.0f", r.PodsPerSecond)
			if r.Failed > 0 {
				cell += fmt.Sprintf(", %d failed", r.Failed)
			}
		}
		cells = append(cells, cell)
	}
	ofNull, ofUpstream, upstreamOfNull := "-", "-", "-"
	if r := c.Row(name, Kumiki); r != nil {
		ofNull, ofUpstream = r.ofNull(), r.ofUpstream()
	}
	if r := c.Row(name, Upstream); r != nil {
		upstreamOfNull = r.ofNull()
	}
	counts := "yes"
	if len(rows) > 0 && !rows[0].Counts {
		counts = "no: " + rows[0].Why
	}
	return append(cells, ofNull, ofUpstream, upstreamOfNull, counts)
}

func (c *Comparison) idleOfNull(name string) string {
	if r := c.Row(name, Null); r != nil {
		return number("%.0f %%", 100*r.Idle.Median)
	}
	return "-"
}

// writesOf says for each workload what a scheduler writes otherwise than kube-scheduler.
func (c *Comparison) writesOf(scheduler string) []string {
	var out []string
	for _, name := range c.workloads() {
		if r := c.Row(name, scheduler); r != nil {
			if differ := writesDiffer(c.rowsOf(name), r); len(differ) > 0 {
				out = append(out, name+": "+strings.Join(differ, ", "))
			}
		}
	}
	return out
}

func (c *Comparison) allFailures() []string {
	var out []string
	for _, name := range c.workloads() {
		for _, line := range c.Failures(name) {
			line, _, _ = strings.Cut(line, "\n")
			if said := name + ": " + line; !slices.Contains(out, said) {
				out = append(out, said)
			}
		}
	}
	return out
}

// summary counts rows that reach what kumiki is to reach, and names those that do not.
func (c *Comparison) summary() []string {
	var below, slower, idle []string
	count, compared := 0, 0
	for _, name := range c.workloads() {
		r := c.Row(name, Kumiki)
		if r == nil {
			continue
		}
		switch {
		case !r.Counts:
			idle = append(idle, name)
		case r.OfNull == nil || r.OfNull.Estimate < goalOfNull:
			below = append(below, name)
			count++
		default:
			count++
		}
		if r.OfUpstream != nil {
			compared++
			if r.OfUpstream.Estimate < 1 {
				slower = append(slower, name)
			}
		}
	}
	return []string{
		fmt.Sprintf("- %d of the %d rows that count have kumiki at %g of null or more%s.", count-len(below), count, goalOfNull, named("; less", below)),
		fmt.Sprintf("- %d of %d rows have kumiki no slower than kube-scheduler%s.", compared-len(slower), compared, named("; slower", slower)),
		fmt.Sprintf("- %d rows do not count%s.", len(idle), named("", idle)),
	}
}

func named(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return what + ": " + strings.Join(names, ", ")
}
