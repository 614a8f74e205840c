// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// bench is a run of the command: what it measures, and what it knows already.
type bench struct {
	options
	out      io.Writer
	progress io.Writer
	results  *quality.Results
	until    time.Time // no measurement begins after it; zero for no limit
	section  string    // that is printed now
	// counting is on in a first pass that measures nothing, and counts what is left to measure.
	counting bool
	todo     int                   // measurements that are left at the beginning
	made     map[quality.Cell]bool // cell -> it was measured by this process
	missing  int                   // cells that were asked for and are not known
	dates    []string              // of the results that were printed
	machines []string              // that measured them
	cpu      map[string][]float64  // column -> seconds of CPU of its cells, of the section that is printed now
}

// openResults reads the results in a file, to which new ones are appended. An empty name keeps none.
func openResults(name string) (*quality.Results, io.Closer, error) {
	if name == "" {
		r, err := quality.ReadResults(bytes.NewReader(nil), nil)
		return r, io.NopCloser(nil), err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, nil, fmt.Errorf("--results: %w", err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("--results: %w", err)
	}
	r, err := quality.ReadResults(f, f)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--results %s: %w", name, err), f.Close())
	}
	return r, f, nil
}

// measured returns what a cell of the section has for a seed: an earlier result, or that of run if the cell was chosen
// and there is time; a nil run cannot be called. known is false if it has neither.
func measured[T any](b *bench, row, column string, seed int64, run func() (T, error)) (value T, known bool, err error) {
	cell := quality.Cell{Section: b.section, Row: row, Column: column, Seed: seed}
	old, known := b.results.Get(cell)
	chosen := run != nil && b.chosen(row, column)
	switch {
	case chosen && (!known || b.again && !b.made[cell]):
	case known && b.counting:
		return value, true, json.Unmarshal(old.Value, &value)
	case known:
		b.note(old)
		return value, true, json.Unmarshal(old.Value, &value)
	default:
		b.missing++
		return value, false, nil
	}
	if b.counting {
		b.todo++
		return value, false, nil
	}
	if !b.until.IsZero() && time.Now().After(b.until) {
		b.missing++
		return value, false, nil
	}
	began, cpu := time.Now(), cpuMicros()
	if value, err = run(); err != nil {
		return value, false, fmt.Errorf("%s: %w", describe(cell), err)
	}
	one := quality.Result{Cell: cell, Date: began.UTC().Format(time.DateOnly), Machine: machine(),
		Seconds: time.Since(began).Seconds(), CPU: (cpuMicros() - cpu) / 1e6}
	if one.Value, err = json.Marshal(value); err != nil {
		return value, false, fmt.Errorf("%s: %w", describe(cell), err)
	}
	if err := b.results.Add(one); err != nil {
		return value, false, err
	}
	b.made[cell] = true
	b.note(one)
	fmt.Fprintf(b.progress, "%d of %d: %s: %.1f s\n", len(b.made), b.todo, describe(cell), one.Seconds)
	return value, true, nil
}

// overSeeds returns what a cell has for seeds, as far as it is known.
func overSeeds[T any](b *bench, row, column string, seeds []int64,
	run func(seed int64) (T, error)) (all []T, err error) {
	for _, seed := range seeds {
		value, known, err := measured(b, row, column, seed, func() (T, error) { return run(seed) })
		if err != nil {
			return nil, err
		}
		if known {
			all = append(all, value)
		}
	}
	return all, nil
}

// describe returns a cell in words.
func describe(c quality.Cell) string {
	parts := slices.DeleteFunc([]string{c.Section, c.Row, c.Column}, func(s string) bool { return s == "" })
	return fmt.Sprintf("%s, seed %d", strings.Join(parts, ", "), c.Seed)
}

// note keeps when and where a result was measured, and how long it took.
func (b *bench) note(r quality.Result) {
	add := func(list *[]string, what string) {
		if at, found := slices.BinarySearch(*list, what); !found {
			*list = slices.Insert(*list, at, what)
		}
	}
	add(&b.dates, r.Date)
	add(&b.machines, r.Machine)
	b.cpu[r.Column] = append(b.cpu[r.Column], r.CPU)
}

// cost returns the CPU time of the cells of a column so far: the median and the most.
func (b *bench) cost(column string) string {
	all := slices.Sorted(slices.Values(b.cpu[column]))
	if len(all) == 0 {
		return notMeasured
	}
	return fmt.Sprintf("%.1f s (at most %.1f)", all[len(all)/2], all[len(all)-1])
}

// notMeasured is the text of a cell without results.
const notMeasured = "not measured"

// cell returns the text of a cell, which has results for some of the seeds.
func cell(text func() string, have, seeds int) string {
	switch {
	case have == 0:
		return notMeasured
	case have < seeds:
		return fmt.Sprintf("%s (%d of %d seeds)", text(), have, seeds)
	}
	return text()
}

// chosen reports whether the options ask for a cell of the section.
func (b *bench) chosen(row, column string) bool {
	among := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	if b.upstream == "" && (row == upstream || column == upstream) {
		return false
	}
	return among(b.sections, b.section) && among(b.rows, row) && (column == "" || among(b.columns, column))
}

// prints reports whether a row is in the output: without --page only those that were chosen.
func (b *bench) prints(row string) bool {
	return b.page || len(b.rows) == 0 || slices.Contains(b.rows, row)
}

// shown returns the columns in the output.
func (b *bench) shown(columns ...string) []string {
	return slices.DeleteFunc(columns, func(name string) bool {
		return !b.page && (b.upstream == "" && name == upstream ||
			len(b.columns) > 0 && !slices.Contains(b.columns, name))
	})
}

// shownRows returns the rows in the output, if they are names of schedulers.
func (b *bench) shownRows(rows ...string) []string {
	return slices.DeleteFunc(rows, func(name string) bool {
		return !b.prints(name) || !b.page && b.upstream == "" && name == upstream
	})
}

// seedsOf returns the seeds of a scheduler: fewer for kube-scheduler, which takes more than a minute for one.
func (b *bench) seedsOf(name string) []int64 {
	if name == upstream {
		return b.seeds[:min(b.upstreamSeeds, len(b.seeds))]
	}
	return b.seeds
}

// titled returns a scheduler with its seeds, if they are not those of the others.
func (b *bench) titled(name string) string {
	if seeds := b.seedsOf(name); len(seeds) != len(b.seeds) {
		return fmt.Sprintf("%s (%s)", name, seedText(seeds))
	}
	return name
}

// seedText returns seeds in words.
func seedText(seeds []int64) string {
	if len(seeds) == 1 {
		return fmt.Sprint("seed ", seeds[0])
	}
	return fmt.Sprintf("seeds %d-%d", seeds[0], seeds[len(seeds)-1])
}

// machine describes where the command runs.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil { // Linux only
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = cmp.Or(strings.TrimSpace(value), model)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), model)
}

// tableRow prints a line of a Markdown table.
func (b *bench) tableRow(cells ...string) { fmt.Fprintln(b.out, "| "+strings.Join(cells, " | ")+" |") }

// head prints the first two lines of a Markdown table.
func (b *bench) head(cells ...string) {
	b.tableRow(cells...)
	fmt.Fprintln(b.out, "|"+strings.Repeat("---|", len(cells)))
}

// say prints a paragraph.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.out, "\n"+format+"\n", args...) }
