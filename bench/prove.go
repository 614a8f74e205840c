// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pipeline"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Proof is a bottleneck, and what its removal changed.
type Proof struct {
	Workload  string             `json:"workload"`
	Scheduler string             `json:"scheduler"`
	Verdict   bottleneck.Verdict `json:"verdict"`
	// Change is the setting that was changed; empty for none, for the reason in Unchanged.
	Change    string `json:"change,omitempty"`
	Unchanged string `json:"unchanged,omitempty"`
	// Before and After are the pods/s of each run, without and with the change. Predicted is what the finder expects; 0
	// if that is not known: as many pods came as were placed, so they bounded the rate of the profiled run.
	Before    []float64 `json:"before"`
	After     []float64 `json:"after,omitempty"`
	Predicted float64   `json:"predicted,omitempty"`
	AtLeast   bool      `json:"atLeast,omitempty"`
}

// Ratio is the measured gain divided by the predicted one, and false if one of them is not known.
func (p *Proof) Ratio() (float64, bool) {
	if len(p.Before) == 0 || len(p.After) == 0 || p.Predicted == 0 {
		return 0, false
	}
	before, after := report.Median(p.Before), report.Median(p.After)
	if p.Predicted <= before {
		return 0, false
	}
	return (after - before) / (p.Predicted - before), true
}

// highInFlight is the limit on binds in flight that is tried if the default one is reached.
const highInFlight = 400

// change changes the setting that a verdict names, and returns what it changed, or why it did not.
func change(v *bottleneck.Verdict, o *testbed.Options) (changed, unchanged string) {
	if !v.Known {
		return "", "the bottleneck is not known: " + v.NotKnown
	}
	switch first := &v.Findings[0]; first.Cause {
	case bottleneck.InFlightLimit:
		o.Set = testbed.Setting{Name: testbed.InFlight, Value: highInFlight}
		if first.Gain.PerSecond > v.Placed {
			o.Set.Value = defaultInFlight
		}
		return fmt.Sprintf("%s=%d", o.Set.Name, o.Set.Value), ""
	case bottleneck.ClientLimit:
		was := o.QPS
		o.QPS, o.Burst = testbed.DefaultQPS, testbed.DefaultBurst
		if was >= o.QPS {
			return "", fmt.Sprintf("qps is %g already", was)
		}
		return fmt.Sprintf("qps=%g, burst=%d", o.QPS, o.Burst), ""
	default:
		return "", fmt.Sprintf("bench cannot change the setting for %s: %s", first.Cause, first.Setting)
	}
}

// defaultInFlight is the default limit on binds in flight (config.DefaultInFlightBinds).
const defaultInFlight = 100

// runProof is what bench --prove does: it measures with a profile, finds the bottleneck, changes its setting and
// measures again.
func (f *fileFlags) runProof(cmd *cobra.Command, o testbed.Options) error {
	plans, err := f.plans()
	switch {
	case err != nil:
		return err
	case f.format != "table" && f.format != "json" && f.format != "yaml":
		return usage.Errorf("--prove writes table, json or yaml, not %q", f.format)
	case len(plans) != 1:
		return usage.Errorf("--prove takes one workload, and %d are selected: give --match", len(plans))
	case len(o.Schedulers) != 1 || o.Schedulers[0] == report.Null || o.Schedulers[0] == report.CreateOnly:
		return usage.Errorf("--prove takes one scheduler that can be profiled, not %q", o.Schedulers)
	}
	o.Progress = cmd.ErrOrStderr()
	p, err := prove(cmd.Context(), o, &plans[0], f.rate)
	if p == nil {
		return err
	}
	return errors.Join(p.Write(cmd.OutOrStdout(), f.format), err)
}

// prove measures without and with the change, as many runs each as are asked for. The first run is profiled.
func prove(ctx context.Context, o testbed.Options, plan *workload.Plan, rate float64) (*Proof, error) {
	p := &Proof{Workload: plan.Name, Scheduler: o.Schedulers[0]}
	dir := o.Bundles
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "kumiki-prove-"); err != nil {
			return nil, fmt.Errorf("creating a directory for the profile: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	runs := o.Rounds
	o.Rounds = 1
	measure := func(o testbed.Options, sampled bool) (*report.Trial, error) {
		o.Schedulers = slices.Clone(o.Schedulers) // their names are completed in place
		if o.Bundles = ""; sampled {
			o.Bundles = dir
		}
		m := &matrix{Options: o, plans: []workload.Plan{*plan}, rate: rate, sampled: sampled,
			tell: newTeller(o.Progress)}
		c, err := m.start(ctx)
		if err != nil {
			return nil, err
		}
		if len(c.Trials) != 1 || !c.Trials[0].Good() {
			return nil, fmt.Errorf("a run failed: %s", c.Trials[0].Failure)
		}
		return &c.Trials[0], nil
	}
	first, err := measure(o, true)
	if err != nil {
		return nil, err
	}
	p.Scheduler = first.Scheduler
	if p.Verdict, err = verdictOf(filepath.Join(dir, bundleName(first, 0))); err != nil {
		return nil, err
	}
	with := o
	p.Change, p.Unchanged = change(&p.Verdict, &with)
	for range runs {
		t, err := measure(o, false)
		if err != nil {
			return p, err
		}
		p.Before = append(p.Before, t.PodsPerSecond)
		if p.Change == "" {
			continue
		}
		if t, err = measure(with, false); err != nil {
			return p, err
		}
		p.After = append(p.After, t.PodsPerSecond)
	}
	p.predict()
	return p, nil
}

// predict sets the predicted rate. The profiled run was slower, so the factor counts.
func (p *Proof) predict() {
	if !p.Verdict.Known || p.Verdict.Placed <= 0 || len(p.Before) == 0 {
		return
	}
	if gain := p.Verdict.Findings[0].Gain; gain.PerSecond > p.Verdict.Placed {
		p.Predicted = report.Median(p.Before) * gain.PerSecond / p.Verdict.Placed
		p.AtLeast = gain.AtLeast
	}
}

func verdictOf(name string) (bottleneck.Verdict, error) {
	b, err := bundle.Open(name)
	if err != nil {
		return bottleneck.Verdict{}, err
	}
	defer b.Close()
	return pipeline.Why(b)
}

// Write writes a proof.
func (p *Proof) Write(w io.Writer, format string) error {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(p, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(p)
	default:
		text = []byte(p.table())
	}
	if err != nil {
		return fmt.Errorf("writing the proof: %w", err)
	}
	_, err = w.Write(text)
	return err
}

func (p *Proof) table() string {
	cause := "not known: " + p.Verdict.NotKnown
	if p.Verdict.Known {
		first := &p.Verdict.Findings[0]
		cause = fmt.Sprintf("%s (%s), %.0f %% of the waiting", first.Cause, first.What, 100*first.Share)
	}
	text := fmt.Sprintf("Workload:    %s with %s\nBottleneck:  %s\n", p.Workload, p.Scheduler, cause)
	if len(p.Before) > 0 {
		text += fmt.Sprintf("Before:      %.0f pods/s\n", report.Median(p.Before))
	}
	if p.Change == "" {
		return text + "Change:      none: " + p.Unchanged + "\n"
	}
	text += fmt.Sprintf("Change:      %s\n", p.Change)
	switch {
	case p.Predicted == 0:
		text += "Predicted:   not known: as many pods came as were placed\n"
	case p.AtLeast:
		text += fmt.Sprintf("Predicted:   at least %.0f pods/s\n", p.Predicted)
	default:
		text += fmt.Sprintf("Predicted:   %.0f pods/s\n", p.Predicted)
	}
	if len(p.After) > 0 {
		text += fmt.Sprintf("After:       %.0f pods/s\n", report.Median(p.After))
	}
	if ratio, known := p.Ratio(); known {
		text += fmt.Sprintf("Gain:        %.2f of the prediction\n", ratio)
	}
	return text
}
