// SPDX-License-Identifier: Apache-2.0

// Command quality measures placements on published traces, and prints the tables of docs/quality.md. Without a section
// it prints all of them. Progress goes to standard error.
//
//	go run ./internal/quality --traces DIR
//	go run ./internal/quality --traces DIR --seeds 42-51 --rows default --columns binpack openb
//
// A whole run takes an hour or more. With --results, each measurement is kept as soon as it is made, and a run that was
// cut, or ended by --limit, continues where it was; cells without a result are marked. Results of an older scheduler
// are not noticed: --again measures what was chosen anew.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr, sections); err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	traces        string
	seeds         []int64
	seedRange     string
	rows, columns []string // what is measured; empty for all
	sections      []string // empty for all
	page          bool
	again         bool
	upstream      string // the program with kube-scheduler; empty for none
	upstreamSeeds int
	optimum       string // the program that compares with optima; empty for none
}

// section is one table, with the text above it in the page.
type section struct {
	name, title, text string
	run               func(b *bench) error
}

var sections = []section{
	{"protocol", "The protocol of the FGD paper", protocolText, protocol},
	{"openb", "openb: GPU shares", openbText, openb},
	{"churn", "openb with pods that end", churnText, churn},
	{"guard", "openb with other seeds and shapes", guardText, guard},
	{"philly", "Philly: jobs with gangs", phillyText, philly},
	{"vectorpack", "Vectorpack: known optima", vectorpackText, vectorpack},
	{"preemption", "Preemption", preemptionText, preemption},
	{"spread", "Bursts of equal pods", spreadText, spread},
	{"optimum", "Small clusters and their optimum", optimumText, smallClusters},
	{"decision", "CPU time of a decision", decisionText, decision},
}

func run(args []string, out, progress io.Writer, sections []section) (err error) {
	b := &bench{out: out, progress: progress, made: map[quality.Cell]bool{}}
	f := flag.NewFlagSet("quality", flag.ContinueOnError)
	f.SetOutput(progress)
	f.StringVar(&b.traces, "traces", os.Getenv("KUMIKI_TRACES"), "directory of the traces")
	f.StringVar(&b.seedRange, "seeds", "42-51", "seeds, as 42-51")
	f.IntVar(&b.upstreamSeeds, "upstream-seeds", 1, "how many of the seeds kube-scheduler runs with")
	rows := f.String("rows", "", "rows of the tables to measure, joined by commas; default all")
	columns := f.String("columns", "", "columns of the tables to measure, joined by commas; default all")
	f.BoolVar(&b.page, "page", false, "print the page, with all rows, and not only the tables that were chosen")
	results := f.String("results", "", "file of results: what it has is not measured again, new results are appended")
	f.BoolVar(&b.again, "again", false, "measure also what the file of results has")
	limit := f.Duration("limit", 0, "begin no measurement after so long; default none")
	f.StringVar(&b.upstream, "upstream", "", "program of conformance/cmd/standalone, for kube-scheduler")
	f.StringVar(&b.optimum, "optimum", "", "test binary of conformance/optimum, for small clusters")
	if err := f.Parse(args); err != nil {
		return err
	}
	if b.seeds, err = readSeeds(b.seedRange); err != nil {
		return err
	}
	if b.traces == "" {
		return errors.New("--traces, or the variable KUMIKI_TRACES, must name the directory of the traces")
	}
	b.rows, b.columns, b.sections = list(*rows), list(*columns), f.Args()
	for _, name := range b.sections {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("there is no section %q", name)
		}
	}
	var file io.Closer
	if b.results, file, err = openResults(*results); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if b.results.Unreadable > 0 {
		fmt.Fprintf(progress, "%d lines of %s are no results\n", b.results.Unreadable, *results)
	}
	if err := b.count(sections); err != nil {
		return err
	}
	if *limit > 0 {
		b.until = time.Now().Add(*limit)
	}
	return b.print(sections)
}

// count counts what is left to measure.
func (b *bench) count(sections []section) error {
	out := b.out
	b.out, b.counting = io.Discard, true
	defer func() { b.out, b.counting, b.missing = out, false, 0 }()
	return b.tables(sections)
}

// print measures and prints. The head of the page is printed after the tables were measured, because it says when and
// where they were.
func (b *bench) print(sections []section) error {
	out, body := b.out, &bytes.Buffer{}
	if b.page {
		b.out = body
	}
	err := b.tables(sections)
	fmt.Fprintf(b.progress, "%d of %d measurements made; %d cells are without\n", len(b.made), b.todo, b.missing)
	if err != nil || !b.page {
		return err
	}
	when := notMeasured
	if n := len(b.dates); n > 0 {
		when = b.dates[0]
		if n > 1 {
			when = fmt.Sprintf("from %s to %s", b.dates[0], b.dates[n-1])
		}
	}
	_, err = fmt.Fprintf(out, pageHead+"%s\n", when, strings.Join(b.machines, "; "), b.seedRange,
		strings.TrimSpace(body.String()))
	return err
}

// tables prints the sections that were chosen, or all of them for the page.
func (b *bench) tables(sections []section) error {
	for _, s := range sections {
		if !b.page && len(b.sections) > 0 && !slices.Contains(b.sections, s.name) {
			continue
		}
		b.section, b.cpu = s.name, map[string][]float64{}
		if b.page {
			fmt.Fprintf(b.out, "## %s\n\n%s\n\n", s.title, strings.TrimSpace(s.text))
		}
		if err := s.run(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintln(b.out)
	}
	return nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// readSeeds reads FIRST-LAST.
func readSeeds(text string) (seeds []int64, err error) {
	from, to, is := strings.Cut(text, "-")
	if !is {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err := errors.Join(err1, err2); err != nil || last < first {
		return nil, fmt.Errorf("--seeds must be FIRST-LAST, got %q", text)
	}
	for seed := first; seed <= last; seed++ {
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

// mean returns the mean of a number that each value has.
func mean[T any](all []T, of func(T) float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += of(v)
	}
	return sum / float64(len(all))
}
