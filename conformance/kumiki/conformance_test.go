// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
)

// regressions is the directory of scenarios in which a difference was found once. They are
// played in each run.
const regressions = "../testdata/regressions"

// defaultCases is the number of cases that the oracle compares in a run of the tests.
const defaultCases = 10_000

func upstream(t *testing.T) diff.Upstream {
	t.Helper()
	o := oracle.New()
	t.Cleanup(o.Close)
	return diff.Upstream{Oracle: o}
}

// TestConformanceOracle asks upstream's framework and kumiki the same questions.
// It detects faults of core/plugins (make mutants-conformance).
func TestConformanceOracle(t *testing.T) {
	up, want := upstream(t), sampling.Cases(t, defaultCases)
	step := max(want/20, 1)
	shown := 0
	r, err := diff.Run(up, Subject{}, diff.Options{
		Seed: sampling.Seed(t), Cases: want, Sizes: gen.DefaultSizes, MaxFailures: 4,
		Progress: func(r *diff.Report) {
			if r.Cases/step > shown || r.Cases == want {
				shown = r.Cases / step
				fmt.Fprintf(os.Stderr, "oracle: %d of %d cases, %d clusters, %d differences\n", r.Cases, want, r.Clusters, len(r.Failures))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Print(os.Stdout)
	for i, f := range r.Failures {
		small := diff.Shrink(up, Subject{}, f.Scenario)
		small.Name = f.Scenario.Name + ": " + f.Difference
		path := filepath.Join(regressions, fmt.Sprintf("found-seed-%d-%d.yaml", r.Options.Seed, i))
		if err := small.Save(path); err != nil {
			t.Error(err)
		}
		t.Errorf("%s: %s\nshrunk to %s: %s", f.Scenario.Name, f.Difference, path, diff.Replay(up, Subject{}, small))
	}
	if want >= 200 {
		for _, s := range r.Shortfalls(want >= 5000) {
			t.Error(s)
		}
	}
}

// TestConformanceQueue plays the same histories on both queues.
// It detects faults of core/queue (make mutants-conformance FAULTS=core/queue).
func TestConformanceQueue(t *testing.T) {
	histories := max(sampling.Cases(t, defaultCases)/60, 1)
	step := max(histories/20, 1)
	r := queue.Run(NewQueue, queue.Options{
		Seed: sampling.Seed(t), Histories: histories, Steps: 300,
		Progress: func(r *queue.Report) {
			if r.Histories%step == 0 {
				fmt.Fprintf(os.Stderr, "queue: %d of %d histories, %d steps\n", r.Histories, histories, r.Steps)
			}
		},
	})
	r.Print(os.Stdout)
	if r.Failure != nil {
		path := filepath.Join(regressions, fmt.Sprintf("queue-found-seed-%d.yaml", r.Options.Seed))
		if err := r.Failure.Save(path); err != nil {
			t.Error(err)
		}
		t.Errorf("%s: %s\nshrunk to %d steps in %s", r.Failure.Name, r.Difference, len(r.Failure.Ops), path)
	}
}

// TestConformanceRegressions plays every kept difference again.
func TestConformanceRegressions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(regressions, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no files in %s", regressions)
	}
	up := upstream(t)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			if d := replayFile(t, up, path); d != "" {
				t.Error(d)
			}
		})
	}
}
