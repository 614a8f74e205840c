// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"runtime/trace"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bundle writes the bundle of an incident. What says how it is now is read first. Parts that cannot be had are missing
// in it, with the reason; without the recording there is no bundle.
func (s *Store) bundle(to io.Writer, in *record.Incident) error {
	w := bundle.NewWriter(to)
	w.Manifest.Tool, w.Manifest.Scheduler, w.Manifest.Began = s.opts.Tool, s.opts.Scheduler, time.Now()
	cut := s.flight.Cut()
	in.Events, in.Before = cut.Count, cut.Before
	if cut.InHand != nil {
		in.InHand = string(bytes.TrimSpace(recording.AppendEvent(nil, cut.InHand)))
	}
	text, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := w.Add(part(bundle.Incident, "kube/incident"), bytes.NewReader(text)); err != nil {
		return err
	}
	for _, p := range []struct {
		kind   bundle.Kind
		source string
		write  func(io.Writer) error
	}{
		{bundle.Goroutines, "/debug/pprof/goroutine?debug=2", goroutines},
		{bundle.Trace, "runtime/trace.FlightRecorder", s.trace.write},
		{bundle.Metrics, "/metrics", s.opts.Metrics},
	} {
		if err := addOptional(w, part(p.kind, p.source), p.write); err != nil {
			return err
		}
	}
	if err := s.addRecording(w, &cut); err != nil {
		return err
	}
	w.Manifest.Ended = time.Now()
	return w.Close()
}

func (s *Store) addRecording(w *bundle.Writer, cut *incident.Cut) error {
	if err := w.AddFunc(part(bundle.Recording, "kube/incident"), func(out io.Writer) error {
		return tape.WriteCut(out, s.opts.Config, s.opts.Timeout, s.opts.Hosted, cut)
	}); err != nil {
		return err
	}
	return w.AddFunc(part(bundle.Digests, "kube/incident"), func(out io.Writer) error {
		return tape.WriteDigests(out, cut)
	})
}

// writeRecording writes a bundle with what is kept now, and nothing else. Its parts have the time of the cut.
func (s *Store) writeRecording(to io.Writer) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	w := bundle.NewWriter(to)
	w.Manifest.Tool, w.Manifest.Scheduler, w.Manifest.Began = s.opts.Tool, s.opts.Scheduler, time.Now()
	cut := s.flight.Cut()
	if err := s.addRecording(w, &cut); err != nil {
		return err
	}
	w.Manifest.Ended = time.Now()
	return w.Close()
}

func part(kind bundle.Kind, source string) bundle.Part {
	now := time.Now()
	return bundle.Part{Kind: kind, Source: source, Began: now, Ended: now}
}

// addOptional writes a part that may be missing.
func addOptional(w *bundle.Writer, p bundle.Part, write func(io.Writer) error) error {
	if write == nil {
		w.AddMissing(p, "the program does not have it")
		return nil
	}
	var content bytes.Buffer
	if err := write(&content); err != nil {
		w.AddMissing(p, err.Error())
		return nil
	}
	return w.Add(p, &content)
}

// manyGoroutines is from how many goroutines on equal stacks are counted and not listed: listing stops the process for
// longer.
const manyGoroutines = 5000

// goroutines writes the stacks of all goroutines.
func goroutines(to io.Writer) error {
	p := pprof.Lookup("goroutine")
	if p.Count() > manyGoroutines {
		return p.WriteTo(to, 1)
	}
	return p.WriteTo(to, 2)
}

// Read returns the report in a bundle.
func Read(name string) (in record.Incident, err error) {
	b, err := bundle.Open(name)
	if err != nil {
		return in, err
	}
	defer b.Close()
	content, err := b.Open(bundle.Incident)
	if err != nil {
		return in, fmt.Errorf("%s is not the bundle of an incident: %w", name, err)
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxReport+1))
	if err != nil {
		return in, fmt.Errorf("reading the report in %s: %w", name, err)
	}
	if in, err = parse(text); err != nil {
		return record.Incident{}, fmt.Errorf("reading the report in %s: %w", name, err)
	}
	return in, nil
}

// maxReport bounds a report. The event in hand is the largest part of it.
const maxReport = 4 << 20

// parse reads a report, which another machine may have written.
func parse(text []byte) (in record.Incident, err error) {
	if len(text) > maxReport {
		return in, fmt.Errorf("it has more than %d bytes", maxReport)
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return in, err
	}
	switch {
	case !plainID.MatchString(in.ID):
		err = fmt.Errorf("%q is not the ID of an incident", in.ID)
	case in.Events < 0 || in.Before < 0 || in.Before+in.Events < 0:
		err = fmt.Errorf("it counts %d events after %d", in.Events, in.Before)
	case in.Took < 0 || in.Wrote < 0 || in.Size < 0:
		err = fmt.Errorf("a duration or size is negative: %s, %s, %d", in.Took, in.Wrote, in.Size)
	}
	return in, err
}

// goTrace is the flight recorder of the Go runtime, of which a process has one.
type goTrace struct {
	recorder *trace.FlightRecorder
	failed   error
}

const (
	traceAge   = 10 * time.Second
	traceBytes = 8 << 20
)

func (t *goTrace) start() {
	t.recorder = trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: traceAge, MaxBytes: traceBytes})
	t.failed = t.recorder.Start()
}

func (t *goTrace) stop() {
	if t.recorder != nil && t.failed == nil {
		t.recorder.Stop()
	}
}

func (t *goTrace) write(to io.Writer) error {
	if t.failed != nil {
		return t.failed
	}
	if t.recorder == nil || !t.recorder.Enabled() {
		return errors.New("the flight recorder of the Go runtime does not run")
	}
	_, err := t.recorder.WriteTo(to)
	return err
}
