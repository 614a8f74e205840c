// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// Catches: an exit code that says all is well after a loss or a missed threshold, and one that says otherwise when it is.
func TestCompareCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, c *report.Comparison) string {
		for i := range c.Rows {
			if name != "missed" && c.Rows[i].Threshold != nil {
				c.Rows[i].Threshold.Missed = false
			}
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := file("before", someReport(t))
	for name, c := range map[string]struct {
		after string
		err   string
		says  string
	}{
		"same":       {file("same", someReport(t)), "", "no difference"},
		"lost":       {file("lost", slowerReport(t)), errWorse.Error(), "LOST"},
		"missed":     {file("missed", someReport(t)), errWorse.Error(), "threshold missed"},
		"no report":  {file("empty", &report.Comparison{}), "a report without rows", ""},
		"nothing":    {filepath.Join(dir, "none.json"), "no such file", ""},
		"not shared": {file("other", otherReport(t)), "have no workload with the same scheduler in common", ""},
	} {
		var out strings.Builder
		cmd := &cobra.Command{Use: "bench", SilenceErrors: true, SilenceUsage: true}
		cmd.AddCommand(compareCommand())
		cmd.SetArgs([]string{"compare", before, c.after})
		cmd.SetOut(&out)
		err := cmd.Execute()
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", name, err, c.err)
		}
		if !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: the table does not say %q:\n%s", name, c.says, out.String())
		}
	}
}

// someReport reads a report of two workloads, three schedulers and three rounds.
func someReport(t *testing.T) *report.Comparison {
	t.Helper()
	c, err := report.Read("report/testdata/comparison.json")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// slowerReport is someReport with half the throughput of kumiki.
func slowerReport(t *testing.T) *report.Comparison {
	c := someReport(t)
	for i := range c.Trials {
		if c.Trials[i].Scheduler == report.Kumiki {
			c.Trials[i].PodsPerSecond *= 0.5
		}
	}
	return c
}

// otherReport has no workload in common with someReport.
func otherReport(t *testing.T) *report.Comparison {
	c := someReport(t)
	c.Rows = c.Rows[:1]
	c.Rows[0].Workload = "Other"
	return c
}
