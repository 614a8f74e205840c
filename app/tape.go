// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// tapeFormat names the layout of a recording: this header on the first line, then the lines of engine.AppendEvent and
// engine.AppendEffects.
const tapeFormat = "kumiki-tape/1"

// header is the first line of a recording: all that the engine was made from.
type header struct {
	Format string `json:"format"`
	// Config is a KubeSchedulerConfiguration, without where the API server is.
	Config               json.RawMessage `json:"config"`
	UnschedulableTimeout string          `json:"unschedulableTimeout"`
}

// DefaultTapeBytes bounds a recording.
const DefaultTapeBytes = 1 << 30

// tapeLine is the longest line a recording may have; a pod object of the API is at most 1.5 MiB.
const tapeLine = 16 << 20

// Recorder writes what a scheduler sees and does to a file that Replay plays. The file is readable by its owner only: it
// names every pod and node with its labels.
//
// A recording starts at the start of the engine and can only be played from there, so it is not rotated: when it reaches
// its bound it ends, with a line in the log, and the scheduler goes on.
type Recorder struct {
	log   klog.Logger
	file  *os.File
	w     *bufio.Writer
	left  int64
	buf   []byte
	ended bool
}

// NewRecorder starts a recording of at most limit bytes.
func NewRecorder(log klog.Logger, path string, o Options, limit int64) (*Recorder, error) {
	o.Config.ClientConnection = config.ClientConnection{}
	wire, err := o.Config.Wire()
	if err != nil {
		return nil, fmt.Errorf("recording to %s: %w", path, err)
	}
	raw, err := json.Marshal(wire)
	if err != nil {
		return nil, fmt.Errorf("recording to %s: %w", path, err)
	}
	first, err := json.Marshal(header{tapeFormat, raw, o.UnschedulableTimeout.String()})
	if err != nil {
		return nil, fmt.Errorf("recording to %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &Recorder{log: log, file: file, w: bufio.NewWriterSize(file, 1<<20), left: limit}
	r.write(append(first, '\n'))
	return r, nil
}

// See is an Observer: it writes one event and its effects.
func (r *Recorder) See(ev engine.Event, effects []engine.Effect) {
	if r.ended {
		return
	}
	r.buf = engine.AppendEffects(engine.AppendEvent(r.buf[:0], ev), effects)
	r.write(r.buf)
}

func (r *Recorder) write(b []byte) {
	if r.left -= int64(len(b)); r.left < 0 {
		r.end(errors.New("it has reached its bound"))
		return
	}
	if _, err := r.w.Write(b); err != nil {
		r.end(err)
	}
}

func (r *Recorder) end(why error) {
	r.ended = true
	r.log.Error(why, "Recording ends; scheduling goes on", "file", r.file.Name())
}

// Close writes what is left and closes the file.
func (r *Recorder) Close() error {
	if err := errors.Join(r.w.Flush(), r.file.Close()); err != nil {
		return fmt.Errorf("recording to %s: %w", r.file.Name(), err)
	}
	return nil
}

// Played sums a replay up.
type Played struct {
	Events, Effects, Decisions int
}

// Differs says where a replay left its recording.
type Differs struct {
	Line               int // of the recording
	Recorded, Replayed string
}

func (d *Differs) Error() string {
	return fmt.Sprintf("line %d: the recording and the replay differ\nrecorded: %s\nreplayed: %s", d.Line, d.Recorded, d.Replayed)
}

// Replay plays a recording on a new engine and compares the effects byte for byte. see, unless nil, is called after each
// event with the engine and ends the replay with the error it returns. The error is a *Differs when the effects are not
// those of the recording.
func Replay(r io.Reader, see func(e *engine.Engine, ev engine.Event, effects []engine.Effect) error) (Played, error) {
	p := &player{lines: bufio.NewScanner(r), tape: engine.NewTape(), see: see}
	p.lines.Buffer(make([]byte, 1<<20), tapeLine)
	if err := p.open(); err != nil {
		return Played{}, err
	}
	err := p.play()
	return p.played, err
}

type player struct {
	lines  *bufio.Scanner
	line   int
	tape   *engine.Tape
	engine *engine.Engine
	see    func(*engine.Engine, engine.Event, []engine.Effect) error
	played Played
	want   [][]byte // effect lines of the last event that the recording has not shown yet
}

func (p *player) open() error {
	if !p.lines.Scan() {
		return errors.Join(errors.New("replay: the recording is empty"), p.lines.Err())
	}
	p.line++
	var h header
	if err := json.Unmarshal(p.lines.Bytes(), &h); err != nil || h.Format != tapeFormat {
		return fmt.Errorf("replay: the file is no recording of format %s", tapeFormat)
	}
	resolved, err := config.Parse(h.Config)
	if err != nil {
		return fmt.Errorf("replay: configuration in the recording: %w", err)
	}
	cfg, err := EngineConfig(resolved)
	if err != nil {
		return fmt.Errorf("replay: configuration in the recording: %w", err)
	}
	timeout, err := time.ParseDuration(h.UnschedulableTimeout)
	if err != nil {
		return fmt.Errorf("replay: unschedulableTimeout in the recording: %w", err)
	}
	cfg.UnschedulableTimeout = record.Time(timeout)
	p.engine = engine.New(cfg)
	return nil
}

func (p *player) play() error {
	for p.lines.Scan() {
		p.line++
		raw := p.lines.Bytes()
		ev, isEvent, err := p.tape.Event(raw)
		if err != nil {
			return fmt.Errorf("replay: line %d: %w", p.line, err)
		}
		if isEvent {
			err = p.event(ev)
		} else {
			err = p.effect(raw)
		}
		if err != nil {
			return err
		}
	}
	// A process that was killed leaves its last step half written, so effects may be missing at the very end.
	return p.lines.Err()
}

func (p *player) event(ev engine.Event) error {
	if len(p.want) > 0 {
		return &Differs{p.line, "(next event)", string(p.want[0])}
	}
	effects := p.engine.Step(ev)
	p.played.Events++
	p.played.Effects += len(effects)
	for _, f := range effects {
		if _, ok := f.(engine.Decided); ok {
			p.played.Decisions++
		}
	}
	p.want = nil
	if lines := engine.AppendEffects(nil, effects); len(lines) > 0 {
		p.want = bytes.Split(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"))
	}
	if p.see != nil {
		return p.see(p.engine, ev, effects)
	}
	return nil
}

func (p *player) effect(raw []byte) error {
	if len(p.want) == 0 {
		return &Differs{p.line, string(raw), "(nothing more)"}
	}
	if !bytes.Equal(raw, p.want[0]) {
		return &Differs{p.line, string(raw), string(p.want[0])}
	}
	p.want = p.want[1:]
	return nil
}
