// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// taped is an engine with a recording, its segments and a flight recorder.
type taped struct {
	*engine.Engine
	to     []*tape.Recorder
	flight *incident.Flight
	events int
	// cut is what the flight recorder keeps after the event cutAt.
	cutAt int
	cut   *incident.Cut
}

func (x *taped) Step(ev engine.Event) []engine.Effect {
	x.flight.Before(ev)
	effects := x.Engine.Step(ev)
	x.flight.After(ev, effects)
	for _, r := range x.to {
		r.Observe(ev, effects)
	}
	if x.events++; x.events%200 == 0 {
		time.Sleep(time.Millisecond) // the files are written meanwhile
	}
	if x.events == x.cutAt {
		cut := x.flight.Cut()
		x.cut = &cut
	}
	return effects
}

const busy = `
until: 20m
nodes: [{name: n, count: 6, capacity: {cpu: 4, memory: 16Gi, pods: 110}}]
workloads:
- {name: web, kind: replicaSet, size: 10, requests: {cpu: 1}}
- {name: job, kind: job, size: 3, count: 60, every: exponential 10s, work: 40s, requests: {cpu: 1}, priority: 5}
- {name: train, kind: gang, size: 3, count: 10, every: 1m, work: 30s, requests: {cpu: 2}, priority: 3}
events: [{at: 5m, removeNodes: {count: 1}}, {at: 8m, addNodes: {group: n, count: 1}}]
`

// recordRun runs a scenario and returns a recording, the name of its segments, and the bundle of an incident in it.
func recordRun(t *testing.T) (whole, segments, incidentBundle string) {
	t.Helper()
	const timeout = 5 * time.Minute
	cfg, err := app.Plugins{}.EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(timeout)
	x := &taped{Engine: engine.New(cfg), cutAt: 3000}
	x.flight = incident.NewFlight(x.State, incident.DefaultLimits, func() incident.Server { return incident.Server{} })
	dir := t.TempDir()
	whole, segments, incidentBundle = filepath.Join(dir, "whole"), filepath.Join(dir, "part"), filepath.Join(dir, "b.kumiki")
	for name, o := range map[string]tape.Options{whole: {MaxBytes: tape.DefaultMaxBytes}, // order: each by itself
		segments: {MaxBytes: 200_000, Segments: 100, State: x.State}} {
		r, err := tape.Start(name, config.Default(), timeout, o)
		if err != nil {
			t.Fatal(err)
		}
		x.to = append(x.to, r)
	}
	f, err := scenario.Read([]byte(busy))
	if err != nil {
		t.Fatal(err)
	}
	run, err := f.Start(1, []sim.Scheduler{{Name: "a", Make: func() sim.Stepper { return x }}})
	if err != nil {
		t.Fatal(err)
	}
	run.Finish(nil)
	for _, r := range x.to {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	writeBundle(t, incidentBundle, x.cut)
	return whole, segments, incidentBundle
}

func writeBundle(t *testing.T, name string, cut *incident.Cut) {
	t.Helper()
	if cut == nil {
		t.Fatal("the run was too short for a cut")
	}
	var events, digests, out bytes.Buffer
	if err := tape.WriteCut(&events, config.Default(), 5*time.Minute, nil, cut); err != nil {
		t.Fatal(err)
	}
	if err := tape.WriteDigests(&digests, cut); err != nil {
		t.Fatal(err)
	}
	w := bundle.NewWriter(&out)
	for kind, text := range map[bundle.Kind]*bytes.Buffer{bundle.Recording: &events, bundle.Digests: &digests} { // order: each by itself
		if err := w.Add(bundle.Part{Kind: kind, Source: "test"}, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSimulateAsRecorded: a recording, its segments together and by themselves, and a bundle give the same decisions;
// each is also the beginning of a simulation with decisions made anew.
func TestSimulateAsRecorded(t *testing.T) {
	whole, segments, incidentBundle := recordRun(t)
	parts, err := tape.Files(segments)
	if err != nil || len(parts) < 3 {
		t.Fatalf("%d segments, %v", len(parts), err)
	}
	var all recordedRun
	for _, from := range []string{whole, segments, parts[len(parts)/2], incidentBundle} {
		code, out, errs := simulate("--from", from, "--as-recorded", "-o", "json")
		var r recordedRun
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Different > 0 || r.UnexplainedCount > 0 ||
			r.Binds == 0 || r.Decisions == 0 {
			t.Errorf("%s: exit %d, %v\n%s\n%s", from, code, err, errs, out)
		}
		switch from {
		case whole:
			all = r
		case segments:
			if r.Events != all.Events || r.Decisions != all.Decisions {
				t.Errorf("the segments have %d events, the recording %d", r.Events, all.Events)
			}
		}
		code, out, errs = simulate("--from", from, "--assert", "binds > 10", "--assert", "troubles == 0")
		if code != exitOK {
			t.Errorf("%s, decided anew: exit %d\n%s\n%s", from, code, errs, out)
		}
	}
	if all.Evictions == 0 || all.Statuses == 0 {
		t.Errorf("the run tests too little: %+v", all)
	}
	code, _, errs := simulate("--from", filepath.Dir(whole)+"/none", "--as-recorded")
	if code != exitUsage || !strings.Contains(errs, "no such file") {
		t.Errorf("a file that is not there: exit %d, %s", code, errs)
	}
	if err := os.Remove(parts[1]); err != nil {
		t.Fatal(err)
	}
	code, _, errs = simulate("--from", segments)
	if code != exitUsage || !strings.Contains(errs, "it begins after event") {
		t.Errorf("a segment is missing: exit %d, %s", code, errs)
	}
}

// TestSimulateOtherThanRecorded: a recorded answer that the simulated cluster does not give, and another recorded
// decision, are reported.
func TestSimulateOtherThanRecorded(t *testing.T) {
	whole, _, _ := recordRun(t)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, changed, says string }{
		{`"NodeName":"n-3"`, `"NodeName":"n-2"`, "not explained, event"},
		{`"effect":"Bind","data":{"Pod":{"namespace":"default","name":"web-0-3"`,
			`"effect":"Bind","data":{"Pod":{"namespace":"default","name":"web-0-9"`, "recorded:"},
	} {
		changed := strings.Replace(string(text), c.old, c.changed, 1)
		if changed == string(text) {
			t.Fatalf("the recording has no %s", c.old)
		}
		code, out, errs := simulate("--from", write(t, "changed", changed), "--as-recorded")
		if code != exitNegative || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit %d\n%s\n%s", c.changed, code, errs, out)
		}
	}
	for _, a := range [][]string{{"--as-recorded"}, {"--from", whole, "--as-recorded", "--seeds", "1"},
		{"--from", whole, "--as-recorded", "-o", "csv"}} {
		if code, _, errs := simulate(a...); code != exitUsage || !strings.Contains(errs, "--as-recorded") {
			t.Errorf("%v: exit %d, %s", a, code, errs)
		}
	}
}
