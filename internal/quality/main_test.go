// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ran is the measurements that a toy section made.
type ran struct {
	list []string
	fail string // the measurement that fails
}

// toy returns a section with a table of two rows and two columns, one of which is kube-scheduler.
func (r *ran) toy() []section {
	return []section{{"toy", "A toy", "What it is.", func(b *bench) error {
		columns := b.shown("fgd", upstream)
		b.head("row", b.titled(columns[0]), b.titled(columns[len(columns)-1]))
		for _, row := range b.shownRows("a", "b") {
			cells := []string{row}
			for _, name := range columns {
				all, err := overSeeds(b, row, name, b.seedsOf(name), func(seed int64) (float64, error) {
					r.list = append(r.list, fmt.Sprint(row, name[:1], seed))
					if r.list[len(r.list)-1] == r.fail {
						return 0, errors.New("cut")
					}
					return float64(seed), nil
				})
				if err != nil {
					return err
				}
				cells = append(cells, cell(func() string {
					return fmt.Sprint(mean(all, func(v float64) float64 { return v }))
				}, len(all), len(b.seedsOf(name))))
			}
			b.tableRow(cells...)
		}
		return nil
	}}}
}

// call runs the command, and returns what it printed and measured.
func (r *ran) call(t *testing.T, args ...string) (page, progress string, err error) {
	t.Helper()
	r.list = nil
	var out, told bytes.Buffer
	err = run(append([]string{"--traces", "."}, args...), &out, &told, r.toy())
	return out.String(), told.String(), err
}

// TestACutRunContinues: a run that ends at the third measurement, one of one row, and one of the rest make each
// measurement once, and each page has what is known by then.
func TestACutRunContinues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out", "results.jsonl")
	always := []string{"--page", "--results", file, "--seeds", "42-43", "--upstream", "program"}
	r := &ran{fail: "ak42"}
	if _, _, err := r.call(t, always...); err == nil || !strings.Contains(err.Error(), "toy, a, kube-scheduler") {
		t.Fatalf("error %v, want that of the measurement that failed", err)
	}
	r.fail = ""
	page, progress, err := r.call(t, append(always, "--rows", "b", "--columns", "fgd")...)
	if want := []string{"bf42", "bf43"}; err != nil || !slices.Equal(r.list, want) {
		t.Errorf("a run of one cell measured %v, want %v (%v)", r.list, want, err)
	}
	if !strings.Contains(progress, "2 of 2: toy, b, fgd, seed 43") {
		t.Errorf("the progress has no line of the second measurement:\n%s", progress)
	}
	for _, want := range []string{"| row | fgd | kube-scheduler 1.37.1 (seed 42) |", "| a | 42.5 | not measured |",
		"| b | 42.5 | not measured |", "## A toy", "Seeds: 42-43", machine()} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	page, _, err = r.call(t, always...)
	if want := []string{"ak42", "bk42"}; err != nil || !slices.Equal(r.list, want) {
		t.Errorf("the last run measured %v, want %v (%v)", r.list, want, err)
	}
	if !strings.Contains(page, "| a | 42.5 | 42 |") || strings.Contains(page, "| "+notMeasured) {
		t.Errorf("the page of the last run lacks results:\n%s", page)
	}
	if _, _, err = r.call(t, append(always, "--again", "--rows", "a", "--columns", "fgd")...); err != nil ||
		!slices.Equal(r.list, []string{"af42", "af43"}) {
		t.Errorf("with --again, the cell is measured anew: %v (%v)", r.list, err)
	}
}

// TestMissingSeedsAreStated: a cell with a result for one of two seeds says so.
func TestMissingSeedsAreStated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	r := &ran{}
	if _, _, err := r.call(t, "--results", file, "--seeds", "42"); err != nil {
		t.Fatal(err)
	}
	page, _, err := r.call(t, "--page", "--results", file, "--seeds", "42-43", "--limit", "1ns")
	if err != nil || len(r.list) > 0 {
		t.Fatalf("after the limit, %v was measured (%v)", r.list, err)
	}
	if !strings.Contains(page, "| a | 42 (1 of 2 seeds) | not measured |") {
		t.Errorf("the page does not state that a seed is missing:\n%s", page)
	}
}

// TestTablesOfARow: without --page, the output has only what was chosen, and nothing of a scheduler without a program.
func TestTablesOfARow(t *testing.T) {
	r := &ran{}
	out, _, err := r.call(t, "--seeds", "42", "--rows", "b")
	if want := []string{"bf42"}; err != nil || !slices.Equal(r.list, want) {
		t.Errorf("measured %v, want %v (%v)", r.list, want, err)
	}
	if strings.Contains(out, "| a |") || strings.Contains(out, "kube-scheduler") ||
		!strings.Contains(out, "| b | 42 |") {
		t.Errorf("the output is\n%s", out)
	}
	if _, _, err := r.call(t, "tpy"); err == nil {
		t.Error("a section that does not exist was accepted")
	}
}
