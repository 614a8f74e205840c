// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
)

// DefaultMaxBytes is the default size at which a recording ends: about a million pods.
const DefaultMaxBytes = 4 << 30

// MinSegmentBytes is the least size of a segment. A State has about 400 bytes for each pod, so smaller segments would
// be States for the most part.
const MinSegmentBytes = 1 << 20

// header is the first line.
type header struct {
	Kumiki string `json:"kumiki"` // the format
	// Config is the configuration in its resolved form.
	Config               *configv1.KubeSchedulerConfiguration `json:"config"`
	UnschedulableTimeout time.Duration                        `json:"unschedulableTimeout"`
	// Features are those with which the configuration was read. One that is left out has its default.
	Features config.Features `json:"features"`
	// Segment is the number of a segment of a recording, and Before counts the events of its engine before it. Both
	// are 0 in a recording of one file.
	Segment int `json:"segment,omitempty"`
	Before  int `json:"before,omitempty"`
	// Hosted describes the plugins of kube-scheduler's framework whose answers the recording has; nil for none.
	Hosted *answers.Host `json:"hosted,omitempty"`
	// Digests is set if the recording has no effects but answers of foreign code, because the bundle that it is in has
	// their digests.
	Digests bool `json:"digests,omitempty"`
}

// The formats. A recording of formatFromState has the lines of a State between the first line and the first event.
const (
	formatFromStart = "tape/v1"
	formatFromState = "tape/v2"
)

// Options say how much a Recorder writes.
type Options struct {
	// MaxBytes is the size of a file. A recording of one file ends there; otherwise the next segment begins, and the
	// State with which it begins does not count.
	MaxBytes int64
	// Segments is how many segments are kept; with 0 or 1 the recording is one file.
	Segments int
	// State returns the State of the engine. Observe calls it, so it is called between two Steps. It may be set until
	// the first Observe, and must be set for more than one segment.
	State func() engine.State
	// Ended is called once if the recording ends early; may be nil. It may be called on any goroutine.
	Ended func(Reason)

	open       func(name string) (io.WriteCloser, error) // nil: openNew
	maxWaiting int                                       // bytes that wait for the disk; 0: maxWaiting
}

// Recorder writes a recording. It is an observer of the loop, which is one goroutine, and so needs no lock. The first
// call after flushEvery hands over what has been encoded.
type Recorder struct {
	path    string
	opts    Options
	first   header // of the first file
	out     *writer
	line    []byte // encoded, and not handed over
	began   int    // bytes of the first line, before it is handed over
	left    int64  // bytes up to the size limit of the file
	events  int
	flushed time.Time
	done    bool
	segment int // number of the present segment, 0 without segments; only the writer changes it
}

const (
	// flushEvery bounds how much of a recording a crash can lose, while there are events.
	flushEvery = time.Second
	// flushBytes is how much is handed over at once.
	flushBytes = 64 << 10
)

// Create starts a recording of a new engine in a new file; an existing file is not overwritten.
func Create(path string, maxBytes int64, c config.Resolved, timeout time.Duration) (*Recorder, error) {
	return Start(path, c, timeout, Options{MaxBytes: maxBytes})
}

// CreateFrom is Create for an engine that has a past. It sorts the lists of the State.
func CreateFrom(path string, maxBytes int64, c config.Resolved, timeout time.Duration, st *engine.State) (
	*Recorder, error) {
	r, err := start(path, formatFromState, c, timeout, Options{MaxBytes: maxBytes})
	if err == nil {
		r.write(recording.AppendState(nil, st))
	}
	return r, err
}

// Start starts a recording of a new engine. With several segments, their numbers continue after those that exist.
func Start(path string, c config.Resolved, timeout time.Duration, o Options) (*Recorder, error) {
	return start(path, formatFromStart, c, timeout, o)
}

func start(path, format string, c config.Resolved, timeout time.Duration, o Options) (*Recorder, error) {
	wire, err := c.WithoutSecrets().Wire()
	if err != nil {
		return nil, err
	}
	if o.open == nil {
		o.open = openNew
	}
	o.maxWaiting = cmp.Or(o.maxWaiting, maxWaiting)
	r := &Recorder{path: path, opts: o, left: o.MaxBytes, flushed: time.Now(),
		first: header{Config: wire, UnschedulableTimeout: timeout, Features: c.Features}}
	name := path
	if r.rotates() {
		have, err := segments(path)
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
		if r.segment = 1; len(have) > 0 {
			r.segment = have[len(have)-1].number + 1
		}
		name = segmentName(path, r.segment)
	}
	first, err := r.header(format, 0)
	if err != nil {
		return nil, err
	}
	file, err := o.open(name)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	if r.rotates() {
		if err := prune(path, o.Segments); err != nil {
			return nil, errors.Join(fmt.Errorf("recording: %w", err), file.Close())
		}
	}
	r.out = newWriter(r, file)
	r.write(first)
	r.began = len(r.line)
	return r, nil
}

// rotates reports whether the recording has segments.
func (r *Recorder) rotates() bool { return r.opts.Segments > 1 }

// header returns the first line of a file.
func (r *Recorder) header(format string, before int) ([]byte, error) {
	h := r.first
	h.Kumiki, h.Segment, h.Before = format, r.segment, before
	first, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return append(first, '\n'), nil
}

// SetState sets Options.State, for an engine that is made after the recording.
func (r *Recorder) SetState(state func() engine.State) { r.opts.State = state }

// Describe must be called before the first Observe if the engine has plugins of kube-scheduler's framework: the
// recording begins with what describes them.
func (r *Recorder) Describe(e *engine.Engine) error {
	if r.done || r.events > 0 || !r.first.describe(HostedBy(e)) {
		return nil
	}
	format := formatFromStart
	if bytes.Contains(r.line[:r.began], []byte(formatFromState)) {
		format = formatFromState
	}
	first, err := r.header(format, 0)
	if err != nil {
		return err
	}
	r.left -= int64(len(first) - r.began)
	r.line = append(first, r.line[r.began:]...)
	r.began = len(first)
	return nil
}

// HostedBy returns the description of the plugins of kube-scheduler's framework that an engine has, nil for none.
func HostedBy(e *engine.Engine) *answers.Host {
	if tap, is := e.Answers().(interface{ Host() *answers.Host }); is {
		return tap.Host()
	}
	return nil
}

// describe adds a description of plugins, without which they cannot be resolved. It reports whether there is one. A
// plugin that might have extended other points is removed from those in the configuration.
func (h *header) describe(hosted *answers.Host) bool {
	if hosted == nil {
		return false
	}
	h.Hosted = hosted
	config.Disable(h.Config, func(profile, plugin string, at config.Point) bool {
		for _, s := range hosted.Sources {
			if s.Profile == profile && s.Name == plugin && !s.Reserves {
				return slices.Contains(s.Points, string(at))
			}
		}
		return true
	})
	return true
}

// Observe records one event with its effects.
func (r *Recorder) Observe(ev engine.Event, effects []engine.Effect) {
	if r.done {
		return
	}
	r.events++
	before := len(r.line)
	r.line = recording.AppendEffects(recording.AppendEvent(r.line, ev), effects)
	added := int64(len(r.line) - before)
	if added > r.left && !r.rotates() {
		r.line = r.line[:before]
		r.end(Limit, "recording has reached its bound")
		return
	}
	r.left -= added
	now := time.Now()
	if len(r.line) > flushBytes || now.Sub(r.flushed) > flushEvery {
		r.flushed = now
		r.flush()
	}
	if r.left <= 0 && r.out.mayRotate() {
		r.flush()
		st := r.opts.State()
		r.out.rotate(&st, r.events)
		r.left = r.opts.MaxBytes
	}
}

// write records lines that are no event, or ends the recording.
func (r *Recorder) write(lines []byte) {
	if int64(len(lines)) > r.left {
		r.end(Limit, "recording has reached its bound")
		return
	}
	r.left -= int64(len(lines))
	r.line = append(r.line, lines...)
}

// flush hands over what is encoded.
func (r *Recorder) flush() {
	r.line = r.out.put(r.line)
	if reason, _ := r.out.ended(); reason != reasonNot {
		r.done = true
	}
}

func (r *Recorder) end(reason Reason, why string) {
	r.flush()
	r.done = true
	r.out.end(reason, why)
}

// Whole returns an error if the recording has ended early. After Close, it covers all writes.
func (r *Recorder) Whole() error {
	if reason, why := r.out.ended(); reason != reasonNot {
		return fmt.Errorf("recording %s: %s", r.path, why)
	}
	return nil
}

// Close writes what is left and waits until it is written.
func (r *Recorder) Close() error {
	if !r.done {
		r.flush()
	}
	r.done = true
	r.out.close()
	if r.out.err != nil {
		return fmt.Errorf("recording: %w", r.out.err)
	}
	return nil
}
