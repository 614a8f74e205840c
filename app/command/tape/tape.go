// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// DefaultMaxBytes is the default size at which a recording ends: about a million pods.
const DefaultMaxBytes = 4 << 30

// header is the first line.
type header struct {
	Kumiki string `json:"kumiki"` // the format
	// Config is the configuration in its resolved form.
	Config               *configv1.KubeSchedulerConfiguration `json:"config"`
	UnschedulableTimeout time.Duration                        `json:"unschedulableTimeout"`
	// Features are those with which the configuration was read. One that is left out has its default.
	Features config.Features `json:"features"`
}

// The formats. A recording of formatFromState has the lines of a State between the first line and the first event.
const (
	formatFromStart = "tape/v1"
	formatFromState = "tape/v2"
)

// Recorder writes a recording. It is an observer of the loop, which is one goroutine, and so needs no lock. The first
// call after flushEvery writes its buffer.
type Recorder struct {
	file    *os.File
	out     *bufio.Writer
	line    []byte
	left    int64
	flushed time.Time
	done    bool
	why     string // why it ended before it was closed
}

// flushEvery bounds how much of a recording a crash can lose, while there are events.
const flushEvery = time.Second

// Create starts a recording of a new engine in a new file; an existing file is not overwritten.
func Create(path string, maxBytes int64, c config.Resolved, timeout time.Duration) (*Recorder, error) {
	return create(path, maxBytes, header{Kumiki: formatFromStart, UnschedulableTimeout: timeout}, c)
}

// CreateFrom is Create for an engine that has a past. It sorts the lists of the State.
func CreateFrom(path string, maxBytes int64, c config.Resolved, timeout time.Duration, st *engine.State) (
	*Recorder, error) {
	r, err := create(path, maxBytes, header{Kumiki: formatFromState, UnschedulableTimeout: timeout}, c)
	if err == nil {
		r.write(recording.AppendState(nil, st))
	}
	return r, err
}

func create(path string, maxBytes int64, h header, c config.Resolved) (*Recorder, error) {
	wire, err := c.WithoutSecrets().Wire()
	if err != nil {
		return nil, err
	}
	h.Config, h.Features = wire, c.Features
	first, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &Recorder{file: file, out: bufio.NewWriterSize(file, 1<<20), left: maxBytes, flushed: time.Now()}
	r.write(append(first, '\n'))
	return r, nil
}

// Observe records one event with its effects.
func (r *Recorder) Observe(ev engine.Event, effects []engine.Effect) {
	if r.done {
		return
	}
	r.line = recording.AppendEffects(recording.AppendEvent(r.line[:0], ev), effects)
	r.write(r.line)
	if now := time.Now(); !r.done && now.Sub(r.flushed) > flushEvery {
		r.flushed = now
		if err := r.out.Flush(); err != nil {
			r.end("recording failed: " + err.Error())
		}
	}
}

// write appends whole lines of one step, or ends the recording.
func (r *Recorder) write(lines []byte) {
	if int64(len(lines)) > r.left {
		r.end("recording has reached its bound")
		return
	}
	r.left -= int64(len(lines))
	if _, err := r.out.Write(lines); err != nil {
		r.end("recording failed: " + err.Error())
	}
}

func (r *Recorder) end(why string) {
	r.done, r.why = true, why
	klog.Background().Info("Recording ended, scheduling goes on", "file", r.file.Name(), "reason", why)
}

// Whole returns an error if the recording has ended early.
func (r *Recorder) Whole() error {
	if r.why != "" {
		return fmt.Errorf("recording %s: %s", r.file.Name(), r.why)
	}
	return nil
}

// Close writes the rest of the buffer.
func (r *Recorder) Close() error {
	r.done = true
	if err := errors.Join(r.out.Flush(), r.file.Close()); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

// Step is one event of a recording, with the recorded and the present effects, as lines.
type Step struct {
	Number    int
	Event     engine.Event
	EventLine []byte
	Then, Now [][]byte
	Effects   []engine.Effect // as now
}

// Differs reports whether the present effects differ from the recorded ones.
func (s Step) Differs() bool {
	return !bytes.Equal(bytes.Join(s.Then, []byte("\n")), bytes.Join(s.Now, []byte("\n")))
}

// Play feeds a recording to a new engine, or to one that is resumed from the State with which the recording begins, and
// calls f for each event, until f fails or the recording ends. It is an error if the recording was made with a custom
// plugin that plugins do not have.
func Play(in io.Reader, plugins app.Plugins, f func(*engine.Engine, Step) error) error {
	lines, reader := bufio.NewReaderSize(in, 1<<20), recording.NewReader()
	e, foreign, first, err := start(lines, reader, plugins)
	if err != nil {
		return err
	}
	var step *Step
	play := func() error {
		if step == nil {
			return nil
		}
		answers, err := recording.Answers(step.Then)
		if err != nil {
			return fmt.Errorf("event %d: %w", step.Number, err)
		}
		if foreign != nil {
			foreign.SetAnswers(answers)
		}
		step.Effects = e.Step(step.Event)
		if now := bytes.TrimSuffix(recording.AppendEffects(nil, step.Effects), []byte("\n")); len(now) > 0 {
			step.Now = bytes.Split(now, []byte("\n"))
		}
		return f(e, *step)
	}
	for at, events := first, 0; ; at++ {
		raw, err := lines.ReadBytes('\n')
		if err != nil { // a last line without an end was truncated by a crash
			return play()
		}
		raw = bytes.TrimSuffix(raw, []byte("\n"))
		ev, isEvent, err := reader.Event(raw)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", at, err)
		case isEvent:
			if err := play(); err != nil {
				return err
			}
			events++
			step = &Step{Number: events, Event: ev, EventLine: raw}
		case step == nil:
			return fmt.Errorf("line %d: an effect before the first event", at)
		default:
			step.Then = append(step.Then, raw)
		}
	}
}

// start makes the engine with which a recording begins, and returns the number of the first line of its events. In
// place of foreign code, the recording answers; nil when there is none.
func start(lines *bufio.Reader, reader *recording.Reader, plugins app.Plugins) (
	e *engine.Engine, foreign *recording.Foreign, first int, err error) {
	h, cfg, foreign, err := readHeader(lines, plugins)
	if err != nil {
		return nil, nil, 0, err
	}
	if h.Kumiki == formatFromStart {
		return engine.New(cfg), foreign, 2, nil
	}
	for at := 2; ; at++ {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: the recording ends before the state with which it begins", at)
		}
		st, err := reader.State(raw, &cfg)
		if err == nil && st != nil {
			e, err = engine.Resume(cfg, *st)
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: %w", at, err)
		}
		if st != nil {
			return e, foreign, at + 1, nil
		}
	}
}

// readHeader reads the first line, and makes the configuration that it describes.
func readHeader(lines *bufio.Reader, plugins app.Plugins) (
	h header, cfg engine.Config, foreign *recording.Foreign, err error) {
	first, err := lines.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return h, cfg, nil, fmt.Errorf("reading the recording: %w", err)
	}
	h.Features = config.DefaultFeatures()
	if err := json.Unmarshal(first, &h); err != nil || h.Kumiki != formatFromStart && h.Kumiki != formatFromState ||
		h.Config == nil {
		return h, cfg, nil, fmt.Errorf("not a recording: the first line does not say %q or %q", formatFromStart,
			formatFromState)
	}
	if missing := plugins.Missing(h.Config); len(missing) > 0 {
		return h, cfg, nil, fmt.Errorf("the recording was made with custom plugins that this program does not have: "+
			"%s; replay it with the program that recorded it", strings.Join(missing, ", "))
	}
	text, err := json.Marshal(h.Config)
	if err != nil {
		return h, cfg, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	plugins = plugins.With(h.Features)
	resolved, err := plugins.ParseConfig(text)
	if err != nil {
		return h, cfg, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	cfg, err = plugins.EngineConfig(resolved)
	if err != nil {
		return h, cfg, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	cfg.UnschedulableTimeout = record.Time(h.UnschedulableTimeout)
	foreign, err = app.Replayed(context.Background(), resolved, &cfg)
	if err != nil {
		return h, cfg, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	return h, cfg, foreign, nil
}

// Events calls f for each event of a recording that begins with a new engine, in order, and runs no engine.
func Events(in io.Reader, f func(engine.Event)) error {
	lines, reader := bufio.NewReaderSize(in, 1<<20), recording.NewReader()
	first, err := lines.ReadBytes('\n')
	var h header
	if err != nil || json.Unmarshal(first, &h) != nil || h.Kumiki != formatFromStart {
		return fmt.Errorf("not a recording from a start: the first line does not say %q", formatFromStart)
	}
	for at := 2; ; at++ {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // a last line without an end was truncated by a crash
		}
		ev, isEvent, err := reader.Event(bytes.TrimSuffix(raw, []byte("\n")))
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		if isEvent {
			f(ev)
		}
	}
}
