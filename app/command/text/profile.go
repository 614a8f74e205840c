// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
)

// Profile writes the lanes and functions of a profile; limit is the number of functions, 0 for all. The wide form has
// groups of goroutines too, and names with their whole path.
func Profile(w io.Writer, r *apm.Profile, limit int, wide bool) error {
	p := &page{w: w, wide: wide}
	p.profileHead(r)
	p.section("")
	p.table(laneRows(r))
	p.section("")
	p.functionRows(r.Functions, limit)
	if len(r.Plugins) > 0 {
		p.section("")
		p.table(pluginRows(r.Plugins))
	}
	p.work(r.Work, limit)
	p.profileRegret(r.Regret)
	if wide && len(r.Goroutines) > 0 {
		p.section("")
		p.table(goroutineRows(r.Goroutines))
	}
	p.profileEnd(r)
	return p.err
}

// profileHead writes what was recorded, and the totals.
func (p *page) profileHead(r *apm.Profile) {
	program := strings.TrimSpace(r.Program + " " + r.GoVersion)
	if program != "" {
		program = " (" + program + ")"
	}
	p.printf("Scheduler:  %s%s\n", r.Scheduler, program)
	traced := "-"
	if r.Traced != nil {
		traced = fmt.Sprintf("%s from %s, on %s", timeSpan(*r.Traced), r.Began.UTC().Format(time.DateTime+" UTC"),
			count(r.Processors, "processor"))
	}
	p.printf("Traced:     %s\n", traced)
	p.printf("CPU:        process %s, lanes %s, unattributed %s (%s), %s", maybe(r.CPU.Process), maybe(lanesCPU(r)),
		maybe(r.CPU.Unattributed), shareOf(r.CPU.Unattributed, r.CPU.Process), count(r.CPU.Samples, "sample"))
	if r.CPU.Corrected != nil {
		p.printf(" corrected by %s (%s)", maybe(r.CPU.Corrected), shareOf(r.CPU.Corrected, r.CPU.Process))
	}
	p.printf("\n")
	if c := r.Cycles; c != nil {
		p.printf("Cycles:     %d placed a pod in %s (median %s, p99 %s; algorithm alone, by its own metric: %s); the "+
			"loop waited for pods %s, other %s\n", c.Placed, timeSpan(c.Total), timeSpan(c.Median), timeSpan(c.P99),
			maybe(c.Algorithm), timeSpan(c.Idle), timeSpan(c.Elsewhere))
	} else {
		p.printf("Cycles:     -\n")
	}
	var attempts []string
	for _, a := range r.Attempts {
		attempts = append(attempts, fmt.Sprintf("%s %d", a.Result, a.Count))
	}
	p.printf("Attempts:   %s\n", dash(strings.Join(attempts, ", ")))
}

// lanesCPU is the sum of the lanes; nil if it is not known.
func lanesCPU(r *apm.Profile) *time.Duration {
	if r.CPU.Factor == nil || len(r.Lanes) == 0 {
		return nil
	}
	sum := time.Duration(0)
	for _, l := range r.Lanes {
		sum += *l.CPU
	}
	return &sum
}

// waitHead and waitCells are the columns of times in which goroutines did not run.
var waitHead = []string{"RUNNABLE", "SYNC", "CHAN", "SELECT", "NETWORK", "SYSCALL", "OTHER"}

func waitCells(r apm.Row) []string {
	other := r.Blocked[apm.Sleep] + r.Blocked[apm.GC] + r.Blocked[apm.Other]
	return []string{timeSpan(r.Runnable), timeSpan(r.Blocked[apm.Sync]), timeSpan(r.Blocked[apm.Chan]),
		timeSpan(r.Blocked[apm.Select]), timeSpan(r.Blocked[apm.Network]), timeSpan(r.BlockedSyscall), timeSpan(other)}
}

// blockedCells are the columns of waits in the narrow form: the time, and the component with most of it.
func blockedCells(r apm.Row) []string {
	blocked := r.Wait() - r.Runnable
	by, most := "-", time.Duration(0)
	for _, c := range []apm.Component{apm.Sync, apm.Chan, apm.Select, apm.Network, apm.Sleep, apm.GC, apm.Other} {
		if d := r.Blocked[c]; d > most {
			by, most = string(c), d
		}
	}
	if r.BlockedSyscall > most {
		by = "syscall"
	}
	return []string{timeSpan(r.Runnable), timeSpan(blocked), by}
}

// laneRows returns a row for each lane, and the residual and the process below them.
func laneRows(r *apm.Profile) [][]string {
	rows := [][]string{slices.Concat([]string{"LANE", "IN LOOP", "AT ONCE", "MEAN", "STARTED", "CPU", "SHARE",
		"ASSIST"}, waitHead)}
	for _, l := range r.Lanes {
		started := "-"
		if l.Calls != nil {
			started = strconv.FormatInt(*l.Calls, 10)
		}
		rows = append(rows, slices.Concat([]string{l.Name, yes(l.InLoop), strconv.Itoa(l.AtOnce),
			fmt.Sprintf("%.1f", l.Parallelism), started, maybe(l.CPU), shareOf(l.CPU, r.CPU.Process),
			timeSpan(l.Assist)}, waitCells(l)))
	}
	rows = append(rows,
		[]string{"unattributed", "", "", "", "", maybe(r.CPU.Unattributed), shareOf(r.CPU.Unattributed, r.CPU.Process)},
		[]string{"process", "", "", "", "", maybe(r.CPU.Process), shareOf(r.CPU.Process, r.CPU.Process)})
	return rows
}

// functionRows writes the table of functions.
func (p *page) functionRows(list []apm.Row, limit int) {
	more := 0
	if limit > 0 && len(list) > limit {
		list, more = list[:limit], len(list)-limit
	}
	head, waits := []string{"RUNNABLE", "BLOCKED", "MOSTLY BY"}, blockedCells
	if p.wide {
		head, waits = waitHead, waitCells
	}
	rows := [][]string{slices.Concat([]string{"FUNCTION", "LANE", "IN LOOP", "AT ONCE", "CALLS", "OWN CPU", "CUM CPU",
		"SAMPLES", "ALLOCATED"}, head)}
	for _, f := range list {
		calls, allocated := "-", "-"
		if f.Calls != nil {
			calls = strconv.FormatInt(*f.Calls, 10)
		}
		if f.Allocated != nil {
			allocated = bytes(*f.Allocated)
		}
		lane := string(f.Lane)
		if n := len(f.Lanes); n > 1 {
			lane = fmt.Sprintf("%s +%d", lane, n-1)
		}
		rows = append(rows, slices.Concat([]string{p.function(f.Name), lane, yes(f.InLoop), strconv.Itoa(f.AtOnce),
			calls, maybe(f.CPU), maybe(f.CumulativeCPU), strconv.Itoa(f.Samples), allocated}, waits(f)))
	}
	p.table(rows)
	if more > 0 {
		p.printf("%d more functions; --limit 0 shows all\n", more)
	}
}

func pluginRows(list []apm.Row) [][]string {
	rows := [][]string{{"PLUGIN", "LANE", "IN LOOP", "AT ONCE", "CPU", "SAMPLES"}}
	for _, f := range list {
		if f.Samples > 0 {
			rows = append(rows, []string{f.Name, string(f.Lane), yes(f.InLoop), strconv.Itoa(f.AtOnce), maybe(f.CPU),
				strconv.Itoa(f.Samples)})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

func goroutineRows(list []apm.Row) [][]string {
	rows := [][]string{slices.Concat([]string{"GOROUTINES THAT START WITH", "LANE", "AT ONCE", "STARTED", "CPU",
		"RUNNING", "ASSIST"}, waitHead)}
	for _, g := range list {
		rows = append(rows, slices.Concat([]string{g.Name, string(g.Lane), strconv.Itoa(g.AtOnce),
			strconv.FormatInt(*g.Calls, 10), maybe(g.CPU), timeSpan(g.Running), timeSpan(g.Assist)}, waitCells(g)))
	}
	return rows
}

// profileEnd writes why values are missing, and what a reader must know.
func (p *page) profileEnd(r *apm.Profile) {
	if len(r.Unknown) > 0 {
		p.section("Not observed:")
		names := make([]string, 0, len(r.Unknown))
		for name := range r.Unknown {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			p.printf("  %s: %s\n", name, r.Unknown[name])
		}
	}
	if len(r.Notes) > 0 {
		p.section("Notes:")
		for _, note := range r.Notes {
			p.printf("  %s\n", note)
		}
	}
}

// function shortens the path of a function's package to its last two elements, except in the wide form.
func (p *page) function(name string) string {
	if p.wide {
		return name
	}
	dir := name
	if receiver := strings.IndexByte(dir, '('); receiver > 0 {
		dir = dir[:receiver]
	}
	last := strings.LastIndexByte(dir, '/')
	if last < 0 {
		return name
	}
	return name[strings.LastIndexByte(dir[:last], '/')+1:]
}

// timeSpan writes a duration with three digits.
func timeSpan(d time.Duration) string {
	switch abs := max(d, -d); {
	case abs >= time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case abs >= time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case abs >= time.Microsecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	}
	if d == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

func maybe(d *time.Duration) string {
	if d == nil {
		return "-"
	}
	return timeSpan(*d)
}

// shareOf writes a part of a whole in percent.
func shareOf(part, whole *time.Duration) string {
	if part == nil || whole == nil || *whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(*part)/float64(*whole))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
