// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// trialWith is a run with a throughput, of which another process used a share of the machine.
func trialWith(perSecond, others float64) report.Trial {
	return report.Trial{Bound: 100, Pods: 100, PodsPerSecond: perSecond, SchedulerCPU: 0.5, Attempts: 150, Others: others,
		Latency: report.Latency{P99: 2}, Calls: report.Calls{"POST pods/binding 409": 5, "PATCH pods 409": 1,
			"POST pods/binding 201": 100}}
}

// swept is a sweep of two schedulers and four values in two rounds: kube-scheduler's throughput follows Amdahl's law with
// a serial share of a quarter, kumiki's does not change.
func swept() *Sweep {
	s := &Sweep{Workload: "spread/<small>", Setting: testbed.Parallelism, Machine: report.Machine{CPUs: 2}}
	var turns []sweepTurn
	var trials []report.Trial
	for round := range 2 {
		for _, n := range []int{1, 16, 4, 2} { // in any order
			for _, name := range []string{report.Upstream, report.Kumiki} {
				x := 1000.0
				if name == report.Upstream {
					x = 100 * float64(n) / (1 + 0.25*float64(n-1))
				}
				turns = append(turns, sweepTurn{round + 1, testbed.Setting{Name: testbed.Parallelism, Value: n}, name})
				trials = append(trials, trialWith(x*(1+0.002*float64(round)), 0.01))
			}
		}
	}
	s.Runs = len(turns)
	s.fill(turns, trials)
	return s
}

// TestASweepOfTwoSchedulers: points by scheduler and value, with the medians of the runs, and the fits of each.
func TestASweepOfTwoSchedulers(t *testing.T) {
	s := swept()
	var values []int
	for _, p := range s.Points[:4] {
		values = append(values, p.Value)
		if p.Scheduler != report.Upstream || p.Runs != 2 || p.Conflicts != 0.06 || p.Attempts != 1.5 || p.P99 != 2 ||
			p.CPUPerPod.Median != 0.005 {
			t.Errorf("point %+v", p)
		}
	}
	if len(s.Points) != 8 || values[0] != 1 || values[3] != 16 || s.Failed != 0 {
		t.Errorf("%d points, values %v, %d failed", len(s.Points), values, s.Failed)
	}
	if f := s.Fits[0].Amdahl; f.Why != "" || math.Abs(f.Sigma.Value-0.25) > 0.01 || f.Limit == nil {
		t.Errorf("the fit of kube-scheduler is %+v", f)
	}
	if f := s.Fits[1].Amdahl; f.Why != "" || math.Abs(f.Sigma.Value-1) > 0.01 {
		t.Errorf("the fit of kumiki is %+v", f)
	}
	for _, want := range []string{"accepts parallelism without effect", "the machine has 2 CPUs"} {
		if !strings.Contains(strings.Join(s.Notes, "\n"), want) {
			t.Errorf("notes %q, want %q", s.Notes, want)
		}
	}
}

// TestFormatsOfASweep: the table for people, the same data as JSON and YAML, and a plot in which names are escaped.
func TestFormatsOfASweep(t *testing.T) {
	s := swept()
	text := map[string]string{}
	for _, format := range sweepFormats {
		var out bytes.Buffer
		if err := s.Write(&out, format); err != nil {
			t.Fatal(err)
		}
		text[format] = out.String()
	}
	for _, want := range []string{"SCHEDULER", "parallelism", "kube-scheduler   16", "kube-scheduler, Amdahl: λ 100 [",
		"no more than 4.0 times the throughput of one", "kube-scheduler, USL: ", "Notes:"} {
		if !strings.Contains(text["table"], want) {
			t.Errorf("no %q in\n%s", want, text["table"])
		}
	}
	var a, b Sweep
	if err := json.Unmarshal([]byte(text["json"]), &a); err != nil || len(a.Points) != 8 || a.Fits[0].Amdahl.Sigma == nil {
		t.Errorf("%v in %s", err, text["json"])
	}
	if err := yaml.Unmarshal([]byte(text["yaml"]), &b); err != nil || b.Points[3].Each[1] != a.Points[3].Each[1] {
		t.Errorf("%v in %s", err, text["yaml"])
	}
	plot := s.Plot()
	circles := 0
	for d := xml.NewDecoder(strings.NewReader(plot)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is not XML: %v in %s", err, plot)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 16 || strings.Contains(plot, "NaN") || !strings.Contains(plot, "spread/&lt;small&gt;") {
		t.Errorf("%d runs in the plot %s", circles, plot)
	}
}

// TestFailedRunsOfASweep: they are no measurements, and the result names them; so do runs that were not made.
func TestFailedRunsOfASweep(t *testing.T) {
	s := &Sweep{Setting: testbed.Procs}
	turns := []sweepTurn{{1, testbed.Setting{Name: testbed.Procs, Value: 1}, report.Kumiki},
		{1, testbed.Setting{Name: testbed.Procs, Value: 2}, report.Kumiki},
		{1, testbed.Setting{Name: testbed.Procs, Value: 4}, report.Kumiki}}
	s.fill(turns, []report.Trial{trialWith(100, 0.5), {Failure: "it ended"}})
	if len(s.Points) != 1 || s.Failed != 2 || !strings.Contains(s.Fits[0].Amdahl.Why, "1 different values") {
		t.Errorf("%d points, %d failed, fit %+v", len(s.Points), s.Failed, s.Fits[0].Amdahl)
	}
	notes := strings.Join(s.Notes, "\n")
	for _, want := range []string{"GOMAXPROCS=2, round 1 failed: it ended", "other processes used up to 50 %"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
	if plot := s.Plot(); !strings.Contains(plot, "</svg>") {
		t.Error("one value has no plot")
	}
}

// TestMistakesOfASweep: each is found before a cluster is started.
func TestMistakesOfASweep(t *testing.T) {
	for line, want := range map[string]string{
		"--workload basic":                                          "the setting must be one of parallelism",
		"--workload basic --set speed=1":                            "the setting must be one of parallelism",
		"--workload basic --set parallelism=0":                      `a value must be from 1 to 65536, got "0"`,
		"--workload basic --set parallelism=1,x":                    `got "x"`,
		"--workload basic --set parallelism=2,2":                    "2 is there twice",
		"--set parallelism=1":                                       "no workload is selected",
		"--workload basic --match . --set parallelism=1":            "sweep takes one workload",
		"--match ^basic/small$ --set parallelism=1 -o html":         `output "html" is unknown`,
		"--match ^basic/small$ --set parallelism=1 --runs 0":        "runs must be at least 1",
		"--match ^basic/small$ --set inFlightBinds=1":               "a setting of kumiki alone",
		"--match ^basic/small$ --set GOMAXPROCS=1 extra":            "sweep takes no arguments",
		"--match ^basic/small$ --set GOMAXPROCS=1 --scheduler null": "has no such setting",
	} {
		cmd := NewSweepCommand()
		cmd.SetArgs(strings.Fields(line))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestAnInterruptedSweep: what was measured until then is in the result, and the command fails. The progress names the
// end.
func TestAnInterruptedSweep(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	launched := 0
	var progress bytes.Buffer
	o := testbed.Options{Rounds: 2, Schedulers: []string{report.Kumiki}, QPS: 1, Burst: 1, Timeout: time.Minute,
		Progress: &progress, Launch: func(context.Context, testcluster.Options) (*testcluster.Cluster, error) {
			if launched++; launched == 3 {
				interrupt()
			}
			return nil, errors.New("no capacity")
		}}
	settings, err := testbed.ParseSettings("GOMAXPROCS=1,2")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sweep(ctx, o, &workload.Plan{Name: "a/1"}, settings)
	if err == nil || err.Error() != "interrupted: 2 of 4 runs were over" || s == nil || s.Failed != 4 {
		t.Errorf("%v, %+v", err, s)
	}
	if want := "run 2 of 4: GOMAXPROCS=2, kumiki, round 1; about "; !strings.Contains(progress.String(), want) {
		t.Errorf("progress %q, want %q", progress.String(), want)
	}
}
