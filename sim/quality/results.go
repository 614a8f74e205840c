// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Cell names what is measured: a cell of a table, for one seed.
type Cell struct {
	Section, Row, Column string
	Seed                 int64
}

// Result is what was measured for a Cell.
type Result struct {
	Cell
	Date    string // as 2006-01-02, in UTC
	Machine string
	Seconds float64 // of wall clock
	CPU     float64 // seconds of this process
	Value   json.RawMessage
}

// Results are measurements that outlive the process which made them: each is a line of a log as soon as it is known, so
// that a run that was cut continues where it was.
type Results struct {
	known map[Cell]Result // cell -> the last result
	log   io.Writer
	// Unreadable is the number of lines that are no results, such as one that was cut.
	Unreadable int
}

// ReadResults reads a log. New results are appended to log; nil for nowhere.
func ReadResults(in io.Reader, log io.Writer) (*Results, error) {
	r := &Results{known: map[Cell]Result{}, log: log}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var one Result
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			r.Unreadable++
			continue
		}
		r.known[one.Cell] = one
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	return r, nil
}

// Get returns the result of a cell, and whether there is one.
func (r *Results) Get(c Cell) (Result, bool) {
	one, known := r.known[c]
	return one, known
}

// Add keeps a result, instead of an older one of the same cell. The line begins with the end of the one before, which
// may have been cut.
func (r *Results) Add(one Result) error {
	text, err := json.Marshal(one)
	if err == nil && r.log != nil {
		_, err = fmt.Fprintf(r.log, "\n%s\n", text)
	}
	if err != nil {
		return fmt.Errorf("keeping the result of %s, %s, %s: %w", one.Section, one.Row, one.Column, err)
	}
	r.known[one.Cell] = one
	return nil
}
