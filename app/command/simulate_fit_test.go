// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulateFitAndCheck: a model that was fitted to a recording gives its figures; one with slow calls does not, and
// one of another size warns.
func TestSimulateFitAndCheck(t *testing.T) {
	whole, _, _ := recordRun(t)
	model := filepath.Join(t.TempDir(), "model.yaml")
	code, out, errs := simulate("fit", whole, "--to", model)
	if code != exitOK || !strings.Contains(out, "bind, at most ") {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	text := readFile(t, model)
	if !strings.Contains(text, "nodes: 6") || !strings.Contains(text, "watch: quantiles") {
		t.Errorf("the model:\n%s", text)
	}
	if code, out, errs = simulate("check", model, whole); code != exitOK || !strings.Contains(out, "wait, p99") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	if code, _, errs = simulate(write(t, "s.yaml", small), "--model", model, "--assert", "binds == 2"); code != exitOK {
		t.Errorf("--model: exit %d, %s", code, errs)
	}
	slow := write(t, "slow.yaml", "model: {nodes: 500, call: 5s, watch: 2s}\n")
	code, out, errs = simulate("check", slow, whole)
	if code != exitNegative || !strings.Contains(errs, "too far from the recording") ||
		!strings.Contains(errs, "fitted to 500 nodes, the recording has 6") {
		t.Errorf("slow calls: exit %d\n%s\n%s", code, out, errs)
	}
}

// TestSimulateFitBadInput: mistakes are named.
func TestSimulateFitBadInput(t *testing.T) {
	empty, exists := write(t, "empty", ""), write(t, "exists", "")
	few := filepath.Join(t.TempDir(), "few.tape")
	if err := os.Rename(shop(t), few); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"fit"}, exitUsage, "requires at least 1 arg"},
		{[]string{"fit", empty}, exitUsage, "not a recording"},
		{[]string{"fit", few, "--to", exists}, exitUsage, "exists"},
		{[]string{"fit", few}, exitNegative, "too few decisions"},
		{[]string{"check", empty + "x", few}, exitUsage, "no such file"},
		{[]string{"check", write(t, "m.yaml", "model: {call: soon}"), few}, exitUsage, "line 1, column 15: model.call"},
		{[]string{"check", write(t, "m.yaml", small), few}, exitUsage, "a model has the field model alone"},
		{[]string{"check", write(t, "m.yaml", "model: {calls: [{inFlight: 0}]}"), few}, exitUsage, "inFlight must be at least 1"},
		{[]string{"check", write(t, "m.yaml", "model: {loads: [{sent: 0}]}"), few}, exitUsage, "sent must be at least 1"},
		{[]string{"check", write(t, "m.yaml", "model: {call: 1s}"), empty}, exitUsage, "not a recording"},
		{[]string{"check", write(t, "m.yaml", "model: {call: 1s}"), few}, exitNegative, "no pod was bound"},
	} {
		if code, _, errs := simulate(c.args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %d with %s\n%s", c.args, code, c.code, c.says, errs)
		}
	}
}
