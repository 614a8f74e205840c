// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/sim/report"
)

const manyNodes = `
name: packing
until: 30m
nodes: [{name: n, count: 10, capacity: {cpu: 8, memory: 32Gi, pods: 110}}]
workloads:
- {name: w, count: 20, every: exponential 10s, work: uniform 5m 10m, requests: {cpu: 1, memory: 1Gi}}
`

// TestSimulatePresets: a preset is named in place of a file, beside the default configuration. It gives what its text
// gives as a file, and binpack needs fewer node hours.
func TestSimulatePresets(t *testing.T) {
	text, err := config.Preset("binpack")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "of-a-file.yaml", string(text))
	code, out, errs := simulate(write(t, "s.yaml", manyNodes), "--profile", "default", "--profile", "binpack", "--profile", file,
		"-o", "json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Profiles, " "); got != "default binpack of-a-file" {
		t.Errorf("profiles %s", got)
	}
	for _, row := range r.Rows {
		d := row.Cells[1].Difference
		if other := row.Cells[2].Difference; d != nil && other != nil && *d != *other {
			t.Errorf("%s: the preset differs by %v from the default, its text by %v", row.Name, *d, *other)
		}
		if row.Name == "nodeHours" && (d == nil || *d >= 0) {
			t.Errorf("node hours: %+v", row)
		}
	}
}

// TestSimulatePresetsInJobs: the pods of a Job have the preset themselves, so that only its name is in their command.
func TestSimulatePresetsInJobs(t *testing.T) {
	path := write(t, "s.yaml", manyNodes)
	code, out, errs := simulate(path, "--profile", "fgd", "--job", "2", "--image", "i", "--claim", "c")
	if code != exitOK || !strings.Contains(out, "- --profile\n        - fgd\n") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	code, _, errs = simulate(path, "--profile", "fgd", "--shard", "0/2", "--to", path+".json")
	if code != exitOK {
		t.Errorf("a shard: exit %d: %s", code, errs)
	}
	for _, shard := range []string{"", "0/2"} {
		line := []string{path, "--profile", "binpak"}
		if shard != "" {
			line = append(line, "--shard", shard)
		}
		code, _, errs = simulate(line...)
		if code != exitUsage || !strings.Contains(errs, "neither a file nor one of default, binpack, fgd, spread") {
			t.Errorf("a misspelled preset: exit %d: %s", code, errs)
		}
	}
}
