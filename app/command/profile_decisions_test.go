// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// keeping adds a scheduler with a flight recorder. It decides on a pod an hour before the recording; until its decisions
// are fetched it decides for a node that another scheduler fills, and its next bind is refused.
func keeping(t *testing.T) func(*http.ServeMux) {
	t.Helper()
	o := incidents.Options{Config: config.Default(), Timeout: 5 * time.Minute, Tool: "kumiki test"}
	cfg, err := app.Plugins{}.EngineConfig(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(o.Timeout)
	e := engine.New(cfg)
	flight := incident.NewFlight(e.State, incident.DefaultLimits, func() incident.Server { return incident.Server{} })
	s := &twoNodes{intake: convert.NewIntake(), engine: func(ev engine.Event) []engine.Effect {
		flight.Before(ev)
		effects := e.Step(ev)
		flight.After(ev, effects)
		return effects
	}}
	decide := func(name string) {
		s.pod(name, "", v1.DefaultSchedulerName, "1")
		s.step(engine.Cycle{})
	}
	s.open(record.Time(time.Now().Add(-time.Hour).UnixNano()))
	decide("before")
	s.step(engine.BindDone{Pod: s.bind.Pod, Node: s.bind.Node})
	store := incidents.New(flight, o)
	return func(mux *http.ServeMux) {
		mux.HandleFunc(incidents.RecordingPath, func(w http.ResponseWriter, r *http.Request) {
			s.step(engine.Tick{Now: record.Time(time.Now().UnixNano())})
			decide("web")
			s.pod("other", s.bind.Node, "another", "28")
			s.step(engine.BindDone{Pod: s.bind.Pod, Node: s.bind.Node})
			decide("refused")
			s.step(engine.BindDone{Pod: s.bind.Pod, Node: s.bind.Node, Outcome: engine.BindFailed, Message: "refused"})
			store.Handler().ServeHTTP(w, r)
		})
	}
}

// copied writes a bundle again, with its parts changed; parts without content are left out.
func copied(t *testing.T, name string, change func(m *bundle.Manifest, p *bundle.Part, data []byte) []byte) string {
	t.Helper()
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var out bytes.Buffer
	w := bundle.NewWriter(&out)
	w.Manifest = b.Manifest
	w.Manifest.Parts = nil
	for _, p := range b.Manifest.Parts {
		content, err := b.Open(p.Kind)
		if missing := (*bundle.Missing)(nil); errors.As(err, &missing) {
			w.AddMissing(p, missing.Why)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		if data = change(&w.Manifest, &p, data); data == nil {
			continue
		}
		if err := w.Add(p, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "changed.kumiki")
	if err := errors.Join(w.Close(), os.WriteFile(to, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestTopShowsRegret: with the decisions in the file, by cause, of those that were made meanwhile. Where it is not known
// there are a dash and the reason, and no number: without decisions in the file, after a clock was set, and if a replay
// decides differently.
func TestTopShowsRegret(t *testing.T) {
	endpoint, ca := profiled(t, nil, keeping(t))
	name, _ := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca, "--decisions")
	top := func(name string) (p apm.Profile, text string) {
		t.Helper()
		code, out, errs := command(t, "kumiki", "profile", "top", name, "-o", "json")
		if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil {
			t.Fatalf("code %d: %v\n%s", code, err, errs)
		}
		_, text, _ = command(t, "kumiki", "profile", "top", name)
		return p, text
	}
	p, text := top(name)
	if r := p.Regret; r == nil || r.Decisions != 2 || r.Judged != 1 || r.WithRegret != 1 || r.Conflicts != 1 || r.Worst[0].Best != "small" {
		t.Errorf("regret %+v, not observed: %v", r, p.Unknown)
	}
	for _, want := range []string{"Regret:     1 of 1 compared decisions (of 2) have some", "\nwindow      0", "\ntie         0",
		"\nstaleness   1", "\nconflict    1           -"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	incident := copied(t, name, func(m *bundle.Manifest, _ *bundle.Part, data []byte) []byte {
		m.Seconds = 0
		return data
	})
	if p, _ := top(incident); p.Regret == nil || p.Regret.Decisions != 3 {
		t.Errorf("of an incident all decisions count: %+v, %v", p.Regret, p.Unknown)
	}
	cut := func(by time.Duration) func(*bundle.Manifest, *bundle.Part, []byte) []byte {
		return func(_ *bundle.Manifest, p *bundle.Part, data []byte) []byte {
			p.Ended = p.Ended.Add(by)
			return data
		}
	}
	digests := func(change func([]byte) []byte) func(*bundle.Manifest, *bundle.Part, []byte) []byte {
		return func(_ *bundle.Manifest, p *bundle.Part, data []byte) []byte {
			if p.Kind == bundle.Digests {
				data = change(data)
			}
			return data
		}
	}
	for want, change := range map[string]func(*bundle.Manifest, *bundle.Part, []byte) []byte{
		"they are recorded with --decisions": func(_ *bundle.Manifest, p *bundle.Part, data []byte) []byte {
			if p.Kind == bundle.Recording {
				return nil
			}
			return data
		},
		"clock was set back since it started":                            cut(-time.Hour),
		"none of 5 decisions is in the recording: the scheduler's clock": cut(time.Hour),
		"has other effects in a replay": digests(func(sums []byte) []byte {
			sums[len(sums)-1] ^= 1
			return sums
		}),
		"has no digest of its effects": digests(func(sums []byte) []byte { return sums[:8] }),
	} {
		p, text := top(copied(t, name, change))
		if p.Regret != nil || !strings.Contains(p.Unknown["regret"], want) || !strings.Contains(text, "\nRegret:     -\n") {
			t.Errorf("%s: regret %+v: %q", want, p.Regret, p.Unknown["regret"])
		}
	}
}

// TestDecisionsThatAreNotServed: a scheduler without a flight recorder has none, with the reason.
func TestDecisionsThatAreNotServed(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	name, _ := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca, "--decisions")
	p, err := readProfile(name)
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"kumiki": "it is kube-scheduler, or an older kumiki", "kube-scheduler": "keeps no record"} {
		p.Program = program
		if setRegret(p, name, app.Plugins{}); p.Regret != nil || !strings.Contains(p.Unknown["regret"], want) {
			t.Errorf("%s: %+v, %v", program, p.Regret, p.Unknown)
		}
	}
}
