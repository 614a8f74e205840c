// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestResultsAfterACut: a process that was killed while it wrote leaves a part of a line. The results before it are
// known, the one that was cut is not, and those that are appended later can be read.
func TestResultsAfterACut(t *testing.T) {
	var log bytes.Buffer
	r, err := ReadResults(strings.NewReader(""), &log)
	if err != nil {
		t.Fatal(err)
	}
	cells := []Cell{{"openb", "default", "fgd", 42}, {"openb", "default", "fgd", 43}, {"churn", "fgd", "load 90", 42}}
	for i, c := range cells {
		one := Result{Cell: c, Date: "2026-11-24", Machine: "2 cores", Value: json.RawMessage{byte('0' + i)}}
		if err := r.Add(one); err != nil {
			t.Fatal(err)
		}
		if got, known := r.Get(c); !known || got.Date != one.Date {
			t.Errorf("the result of %v is %v (known: %v) after it was added", c, got, known)
		}
	}
	log.Truncate(log.Len() - 20)
	r, err = ReadResults(bytes.NewReader(log.Bytes()), &log)
	if err != nil {
		t.Fatal(err)
	}
	if _, known := r.Get(cells[2]); known || r.Unreadable != 1 {
		t.Errorf("the result that was cut is known: %v; %d unreadable lines, want 1", known, r.Unreadable)
	}
	if err := r.Add(Result{Cell: cells[2], Value: json.RawMessage("7")}); err != nil {
		t.Fatal(err)
	}
	if r, err = ReadResults(bytes.NewReader(log.Bytes()), nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0", "1", "7"} {
		if got, known := r.Get(cells[i]); !known || string(got.Value) != want {
			t.Errorf("the result of %v is %s (known: %v), want %s", cells[i], got.Value, known, want)
		}
	}
}

// TestLaterResultsReplaceEarlierOnes: a cell that was measured again has its last result.
func TestLaterResultsReplaceEarlierOnes(t *testing.T) {
	log := `{"Section":"openb","Row":"default","Column":"fgd","Seed":42,"Value":1}
{"Section":"openb","Row":"default","Column":"fgd","Seed":42,"Value":2}`
	r, err := ReadResults(strings.NewReader(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Get(Cell{"openb", "default", "fgd", 42}); string(got.Value) != "2" {
		t.Errorf("result %s, want the last one, 2", got.Value)
	}
}
