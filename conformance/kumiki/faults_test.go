// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
)

// TestFaultIsDetected compares with upstream in little time, and fails at the first difference. It serves
// `make mutants`, which runs it with faults put into kumiki and counts how many this comparison detects;
// without a fault `make conformance` compares more.
func TestFaultIsDetected(t *testing.T) {
	cases := 200
	if fault := os.Getenv("KUMIKI_FAULT"); fault != "" {
		t.Log("fault:", fault)
		cases = 5000
	}
	up := upstream(t)
	for _, check := range []struct {
		name string
		find func() string // returns the difference it finds
	}{
		{"hints", inHints},
		{"oracle", func() string { return inOracle(up, cases) }},
		{"kept files", func() string { return inRegressions(t, up) }},
		{"queue", inHistories},
		{"engine", func() string { return engineRuns(up.Oracle, 1, 60, &EngineRun{}) }},
	} {
		if d := check.find(); d != "" {
			t.Fatalf("%s: %s", check.name, d)
		}
	}
}

// inOracle compares up to so many generated cases.
func inOracle(up diff.Upstream, cases int) string {
	r, err := diff.Run(up, Subject{}, diff.Options{Seed: 1, Cases: cases, Sizes: gen.Sizes{Pods: 12}})
	if err != nil {
		return err.Error()
	}
	if len(r.Failures) == 0 {
		return ""
	}
	return fmt.Sprintf("after %d cases: %s", r.Cases, r.Failures[0].Difference)
}

// inRegressions replays the kept files.
func inRegressions(t *testing.T, up diff.Upstream) string {
	files, err := filepath.Glob(filepath.Join(regressions, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if d := replayFile(t, up, path); d != "" {
			return filepath.Base(path) + ": " + d
		}
	}
	return ""
}

// inHistories plays up to 60 histories of the queue; the difference is not shrunk.
func inHistories() string {
	for n := range 60 {
		if d := queue.Play(NewQueue, 1, n, 300); d != "" {
			return fmt.Sprintf("in history %d: %s", n, d)
		}
	}
	return ""
}

// inHints compares hints about changes in up to 150 clusters.
func inHints() string { return hints(1, 150, map[string]int{}) }
