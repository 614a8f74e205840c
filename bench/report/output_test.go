// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// someTrials are three rounds of three schedulers through two workloads: kumiki keeps up with null, kube-scheduler does
// not and leaves a pod unbound in the last round of the second one, where null was held up by something.
func someTrials() *Comparison {
	c := &Comparison{Limits: GoLimits{Procs: 2, GCPercent: 100}, Date: "2026-11-21T05:00:00Z", Go: "go1.26.8", CPUs: 2, QPS: 5000, Burst: 5000,
		Machine: Machine{CPUs: 2, Processor: "Some CPU", MemoryBytes: 24 << 30, Kernel: "linux 6.18.44 amd64"}}
	plans := []workload.Plan{
		{Name: "Basic/50Nodes", Labels: []string{"upstream=SchedulingBasic"}, Params: map[string]any{"seed": 7},
			Ops: []workload.Op{&workload.CreateNodes{Count: 50}, &workload.CreatePods{Count: 20}, &workload.CreatePods{Count: 100}}, Threshold: 60, Selector: workload.MetricSelector{Name: workload.Throughput, Bucket: "Average"}},
		{Name: "Gangs/8", Threshold: 0.3, Selector: workload.MetricSelector{
			Name: "scheduler_podgroup_seconds", Labels: map[string]string{"result": "scheduled"}, Bucket: "Perc99", ExpectLower: true}},
	}
	// scheduler -> pods/s by round
	speeds := map[string][]float64{Kumiki: {90, 100, 80}, Upstream: {50, 60, 40}, Null: {100, 100, 80}}
	for w, p := range plans {
		for round := 1; round <= 3; round++ {
			for _, name := range []string{Kumiki, Upstream, Null} {
				speed := speeds[name][round-1]
				t := Trial{Workload: p.Name, Scheduler: name, Round: round, Pods: 100, Bound: 100, PodsPerSecond: speed,
					BindSeconds: Seconds(100 / speed), SettleSeconds: Seconds(110 / speed), Latency: LatencyOf([]float64{0.02, 0.04, 10 / speed}),
					Attempts: 100, Events: 100, SchedulerCPU: 10 / speed, ServersCPU: 1, BenchCPU: 0.5, PeakRSS: 96 << 20, SteadyRSS: 64 << 20,
					Idle: 0.01 + 0.2*float64(w), Others: 0.02, Calls: Calls{"POST pods 201": 100, "POST pods/binding 201": 100},
					Items: []DataItem{{Data: Buckets([]float64{speed, speed}), Unit: "pods/s", Labels: map[string]string{"Metric": workload.Throughput}}}}
				for s := range 2 {
					t.Timeline = append(t.Timeline, Moment{At: s + 1, Asked: 50, Bound: int(speed) / 2, Slowest: Seconds(0.1 * float64(s+1)), RSS: int64(60+s) << 20, CPU: 0.4})
				}
				t.Spectrum = SpectrumOf([]float64{0.02, 0.04, 10 / speed})
				if w == 1 {
					gangs := LatencyOf([]float64{0.2, 0.3})
					t.Gangs = &gangs
					if name != Null {
						t.Items = append(t.Items, DataItem{Data: map[string]float64{"Average": 0.1, "Perc99": 0.3}, Unit: "ms",
							Labels: map[string]string{"Metric": "scheduler_podgroup_seconds", "result": "scheduled"}})
					}
				}
				if w == 1 && name == Upstream && round == 3 {
					t.Failure, t.Bound, t.Latency = "1 of 100 pods are not Scheduled", 99, LatencyOf([]float64{0.02, 0.04, math.Inf(1)})
				}
				c.Trials = append(c.Trials, t)
			}
		}
	}
	c.MakeRows(Spec{Plans: plans, Schedulers: []string{Kumiki, Upstream, Null}})
	return c
}

// Every output, word for word. Catches: a column or a label that gets lost, a figure in another unit, an unbound pod
// that is left out of the percentiles, a map whose order reaches the output.
func TestOutputsAreThoseOfTheGoldenFiles(t *testing.T) {
	for _, format := range Formats {
		var got bytes.Buffer
		if err := someTrials().Write(&got, format); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		golden := filepath.Join("testdata", "comparison."+format)
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs from %s (go test ./bench -run Golden -update rewrites it):\n%s", format, golden, got.String())
		}
	}
}

// Catches: the infinite time of an unbound pod, or a row without figures, that JSON cannot write or gives back as 0.
func TestJSONGivesBackWhatWasMeasured(t *testing.T) {
	c := someTrials()
	c.Trials = append(c.Trials, Trial{Workload: "None", Scheduler: Kumiki, Round: 1, Failure: "it ended"})
	c.MakeRows(Spec{Plans: []workload.Plan{{Name: "None"}}, Schedulers: []string{Kumiki}})
	var text bytes.Buffer
	if err := c.Write(&text, "json"); err != nil {
		t.Fatal(err)
	}
	var back Comparison
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	unbound := back.TrialsOf("Gangs/8", Upstream)[2].Latency
	if !math.IsInf(float64(unbound.Max), 1) || unbound.P50 != 0.04 {
		t.Errorf("the pod that was never bound came back as %+v", unbound)
	}
	if none := back.Row("None", Kumiki); !math.IsNaN(none.PodsPerSecond.Median) || none.Failed != 1 {
		t.Errorf("the row of a run that failed came back as %+v", none)
	}
}

// Catches: a page that loads something, that needs a script, that is not well formed, or that has one colour scheme.
func TestThePageStandsAlone(t *testing.T) {
	var text bytes.Buffer
	if err := someTrials().Write(&text, "html"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "src=", `href="h`, `href="/`, "url(", "@import", "http:", "https:", "NaN", "Inf,"} {
		if strings.Contains(text.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "color-scheme: light dark", "<polyline class=\"s1\" points=\"", "1.00 [0.90, 1.00]", `<a href="#w1">Gangs/8</a>`, "Latency by share of pods"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	// HTML closes no <meta>; all else is written as XML is.
	xmlText := regexp.MustCompile(`<!doctype html>|<meta [^>]*>|<br>`).ReplaceAllString(text.String(), "")
	for d := xml.NewDecoder(strings.NewReader(xmlText)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Catches: a ratio to a null that was idle itself, one of a machine on which others were at work, or that was never
// measured, reported as if it counted.
func TestARowCountsOnlyWhenNullWasBusy(t *testing.T) {
	c := someTrials()
	if r := c.Row("Basic/50Nodes", Kumiki); !r.Counts || r.OfNull == nil || r.OfNull.Estimate != 1 {
		t.Errorf("null left 1 %% idle, the row is %+v", r)
	}
	if r := c.Row("Gangs/8", Kumiki); r.Counts || r.Why != "null left 21% of the machine idle" {
		t.Errorf("null left 21 %% idle, counts is %v: %s", r.Counts, r.Why)
	}
	quiet, busy := []Trial{{Idle: 0.04, Others: 0.04}}, []Trial{{Idle: 0.04, Others: 0.05}}
	for _, c := range []struct {
		binder, of []Trial
		why        string
	}{{quiet, quiet, ""}, {busy, quiet, "others took 5% of the machine beside null"}, {quiet, busy, "others took 5% of the machine"}} {
		if counts, why := counts(c.binder, c.of); counts != (c.why == "") || why != c.why {
			t.Errorf("null %+v, scheduler %+v: %v, %s, want %q", c.binder, c.of, counts, why, c.why)
		}
	}
	if counts, why := counts([]Trial{{Failure: "ended", Idle: 0.01}}, quiet); counts || why != "null was not measured: ended" {
		t.Errorf("a null that failed counts: %v, %s", counts, why)
	}
}

// Catches: a figure equal to its threshold that passes (upstream fails it), the direction of expectLower turned
// round, and a figure without a measurement taken for one that was reached.
func TestThresholds(t *testing.T) {
	items := []DataItem{{Data: map[string]float64{"Average": 60}, Labels: map[string]string{"Metric": "M", "result": "ok"}}}
	for _, c := range []struct {
		want   float64
		lower  bool
		bucket string
		missed bool
	}{
		{59, false, "Average", false}, {60, false, "Average", true}, {61, false, "Average", true},
		{61, true, "Average", false}, {60, true, "Average", true}, {1, false, "Perc99", true},
	} {
		got := thresholdOf(workload.MetricSelector{Name: "M", Labels: map[string]string{"result": "ok"}, Bucket: c.bucket, ExpectLower: c.lower}, c.want, items)
		if got.Missed != c.missed {
			t.Errorf("60 against %+v: %+v", c, got)
		}
	}
	if got := thresholdOf(workload.MetricSelector{Name: "M", Labels: map[string]string{"result": "error"}, Bucket: "Average"}, 1, items); !got.Missed || got.Got != nil {
		t.Errorf("a figure with other labels was taken: %+v", got)
	}
}

// Catches: a missed threshold, or a run that failed, that ends with 0.
func TestWhatAComparisonEndsWith(t *testing.T) {
	c := someTrials()
	if err := c.Verdict(); err == nil || err.Error() != "1 runs failed or promised nodes more than they have\n3 thresholds were missed" {
		t.Errorf("with a run that failed and three rows below their thresholds: %v", err)
	}
	c.Trials = c.Trials[:9]
	c.Rows = c.Rows[:1]
	if err := c.Verdict(); err != nil {
		t.Errorf("all is well: %v", err)
	}
}

// Catches: the threshold of one figure that stands in the perf-dash report beside others of the same metric.
func TestAThresholdStandsAtTheFigureThatItIsAbout(t *testing.T) {
	of := func(result string) DataItem {
		return DataItem{Data: map[string]float64{"Perc99": 1}, Unit: "ms", Labels: map[string]string{"Metric": "m", "result": result}}
	}
	c := &Comparison{Rows: []WorkloadRow{{Workload: "a/1", Scheduler: Kumiki, Items: []DataItem{of("scheduled"), of("error")},
		Threshold: thresholdOf(workload.MetricSelector{Name: "m", Labels: map[string]string{"result": "error"}, Bucket: "Perc99"}, 2, []DataItem{of("scheduled"), of("error")})}}}
	for _, item := range c.perfdash().DataItems {
		if _, has := item.Data["Perc99Threshold"]; has != (item.Labels["result"] == "error") {
			t.Errorf("result %s has a threshold: %v", item.Labels["result"], has)
		}
	}
}
