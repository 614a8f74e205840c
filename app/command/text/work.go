// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/record"
)

// work writes amounts of work, the exact CPU time of Steps, and waste.
func (p *page) work(w *record.WorkReport, limit int) {
	if w == nil {
		return
	}
	p.section("")
	p.table(stepRows(w))
	p.section("")
	p.table(workRows(w))
	if len(w.Plugins) > 0 {
		p.section("")
		p.table(exactPluginRows(w, limit))
	}
	if e := w.Exact; e != nil {
		p.printf("The CPU clock was read %d times at the boundaries of plugins, in %d cycles; the readings took %s "+
			"more.\n", e.Readings, e.Cycles, timeSpan(e.CPU))
	}
	p.section("")
	p.printf("Waste:      flushed %d, recalled binds %d, useless evictions %d, decisions by full scan %d of %d\n",
		w.Waste.Flushed, w.Waste.RecalledBinds, w.Waste.UselessEvictions, w.Waste.FullScans, w.Waste.Decisions)
	if len(w.Waste.WakeUps) > 0 {
		p.section("")
		p.table(wakeUpRows(w.Waste.WakeUps, limit))
	}
}

// stepRows has a row for each lane of Steps.
func stepRows(w *record.WorkReport) [][]string {
	rows := [][]string{{"STEPS", "COUNT", "MEASURED", "DISTURBED", "CPU", "CPU PER STEP", "WALL PER STEP"}}
	for _, lane := range slices.Sorted(maps.Keys(w.Steps)) {
		s := w.Steps[lane]
		cpu, wall := "-", "-"
		if s.Measured > 0 {
			cpu, wall = timeSpan(s.CPU/time.Duration(s.Measured)), timeSpan(s.Wall/time.Duration(s.Measured))
		}
		rows = append(rows, []string{lane, number(s.Steps), number(s.Measured), number(s.Disturbed),
			maybe(apm.StepsCPU(s)), cpu, wall})
	}
	return rows
}

// workRows has a row for each kind of work: the amount, per second and cycle, and the CPU time of all Steps per unit.
func workRows(w *record.WorkReport) [][]string {
	rows := [][]string{{"WORK", "AMOUNT", "PER SECOND", "PER CYCLE", "CPU PER UNIT"}}
	cycles, cpu, known := w.Steps["cycles"].Steps, time.Duration(0), len(w.Steps) > 0
	for _, s := range w.Steps { // order: a sum
		if all := apm.StepsCPU(s); all != nil {
			cpu += *all
		} else {
			known = known && s.Steps == 0
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(w.Work)) {
		n := w.Work[kind]
		unit := "-"
		if known && n > 0 {
			unit = timeSpan(cpu / time.Duration(n))
		}
		rows = append(rows, []string{kind, number(n), ratio(float64(n), w.Interval.Seconds()),
			ratio(float64(n), float64(cycles)), unit})
	}
	return rows
}

// exactPluginRows has a row for each plugin and extension point.
func exactPluginRows(w *record.WorkReport, limit int) [][]string {
	rows := [][]string{{"PLUGIN (EXACT)", "POINT", "CYCLES", "CPU", "CPU PER CYCLE"}}
	for i, e := range w.Plugins {
		if limit > 0 && i == limit {
			break
		}
		name, each := e.Plugin, "-"
		switch {
		case name == "" && e.Point == "":
			name = "(no extension point)"
		case name == "":
			name = "(several at once)"
		}
		if e.Cycles > 0 {
			each = timeSpan(e.CPU / time.Duration(e.Cycles))
		}
		rows = append(rows, []string{name, dash(e.Point), number(e.Cycles), timeSpan(e.CPU), each})
	}
	return rows
}

func wakeUpRows(list []record.EventWakeUps, limit int) [][]string {
	rows := [][]string{{"WOKEN BY", "EVENT", "WAKE-UPS", "USELESS", "SHARE", "CPU OF USELESS"}}
	for i, u := range list {
		if limit > 0 && i == limit {
			break
		}
		cpu := "-"
		if u.Measured > 0 {
			cpu = timeSpan(time.Duration(float64(u.CPU) / float64(u.Measured) * float64(u.Useless)))
		}
		share := "-"
		if u.Woken > 0 {
			share = fmt.Sprintf("%.0f%%", 100*float64(u.Useless)/float64(u.Woken))
		}
		rows = append(rows, []string{dash(u.Plugin), u.Event, number(u.Woken), number(u.Useless), share, cpu})
	}
	return rows
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// ratio writes a quotient; a dash for one by 0.
func ratio(a, b float64) string {
	if b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", a/b)
}
