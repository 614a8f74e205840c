// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Step is one event of a recording, with the recorded and the present effects, as lines.
type Step struct {
	// Number counts the events of the engine, from 1.
	Number    int
	Event     engine.Event
	EventLine []byte
	Then, Now [][]byte
	Effects   []engine.Effect // as now
	// NewConfig makes the configuration of the engine again, with plugins of its own.
	NewConfig func() (engine.Config, error)
	// resumed is set if the engine began with a State.
	resumed bool
	// digest compares the effects if the recording has their digests alone: Then has no effects then.
	digest digest
}

// digest is how the digest of the present effects compares with the recorded one.
type digest uint8

const (
	noDigest digest = iota
	equalDigest
	otherDigest
)

// pathOfDecision is the one thing in which the effects of a resumed engine may differ, because its caches are empty at
// first.
var pathOfDecision = regexp.MustCompile(`,?"path":"[a-z]+"`)

// Differs reports whether the present effects differ from the recorded ones.
func (s Step) Differs() bool {
	if s.digest != noDigest {
		return s.digest == otherDigest
	}
	then, now := bytes.Join(s.Then, []byte("\n")), bytes.Join(s.Now, []byte("\n"))
	if bytes.Equal(then, now) {
		return false
	}
	return !s.resumed || !bytes.Equal(pathOfDecision.ReplaceAll(then, nil), pathOfDecision.ReplaceAll(now, nil))
}

// Play feeds a recording to a new engine, or to one that is resumed from the State with which the recording begins, and
// calls f for each event, until f fails or the recording ends. It is an error if the recording was made with a custom
// plugin that plugins do not have.
func Play(in io.Reader, plugins app.Plugins, f func(*engine.Engine, Step) error) error {
	p := player{plugins: plugins, f: f, note: func(string) {}}
	return p.play(in)
}

// PlayFiles is Play for the segments of a recording, in order. An engine goes on from one segment to the next. If
// segments are missing between two files, or the engine was started anew, it reports that with note and begins again
// with the second file.
func PlayFiles(names []string, plugins app.Plugins, note func(string), f func(*engine.Engine, Step) error) error {
	p := player{plugins: plugins, f: f, note: note}
	return p.files(names)
}

func (p *player) files(names []string) error {
	for _, name := range names {
		if err := p.file(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Between stands between a recording and its engine: it may give the engine other events than the recorded ones.
type Between interface {
	// Begin is called with a new engine, and with the State that it was resumed from; nil for none.
	Begin(*engine.Engine, *engine.State)
	// Step is called for each event, and returns the effects of the engine that Begin was called with.
	Step(engine.Event) []engine.Effect
}

// PlayThrough is PlayFiles with something between the recording and the engine.
func PlayThrough(names []string, plugins app.Plugins, between Between, note func(string),
	f func(*engine.Engine, Step) error) error {
	p := player{plugins: plugins, f: f, note: note, between: between}
	return p.files(names)
}

// Files returns the files of a recording: a name is a file, a directory with the segments of one recording, or the
// value of --record, which the names of its segments begin with.
func Files(name string) ([]string, error) {
	var list []found
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.IsDir():
		return []string{name}, nil
	case err == nil:
		list, err = inDirectory(name)
	case errors.Is(err, os.ErrNotExist):
		all, otherwise := segments(name)
		if otherwise == nil && len(all) > 0 {
			list, err = all, nil
		}
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.name
	}
	return names, nil
}

// inDirectory returns the segments in a directory, which must be of one recording.
func inDirectory(dir string) ([]found, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	of := map[string]bool{} // name of a recording, without the number of the segment -> true
	var all []found
	for _, e := range entries {
		path := filepath.Join(dir, strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		if e.IsDir() || of[path] {
			continue
		}
		list, err := segments(path)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			of[path], all = true, list
		}
	}
	switch len(of) {
	case 0:
		return nil, fmt.Errorf("%s has no segments of a recording (NAME.000001)", dir)
	case 1:
		return all, nil
	}
	return nil, fmt.Errorf("%s has segments of %d recordings: name one of them, without the number", dir, len(of))
}

// player plays the segments of a recording.
type player struct {
	plugins app.Plugins
	note    func(string)
	f       func(*engine.Engine, Step) error
	between Between // nil for none

	engine  *engine.Engine
	foreign *recording.Foreign // answers in place of extenders; nil if there are none
	hosted  *answers.Recorded  // answers in place of plugins of kube-scheduler's framework; nil if there are none
	reader  *recording.Reader
	resumed bool // the engine began with a State
	events  int  // of the engine so far
	header  []byte

	digests  *bufio.Reader // of effects, if the file is a bundle
	digester incident.Digester
}

func (p *player) file(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if isBundle(file) {
		return p.bundle(name)
	}
	return p.play(file)
}

// zipMagic is how a bundle begins.
const zipMagic = "PK\x03\x04"

// bundle plays the recording in a bundle.
func (p *player) bundle(name string) error {
	b, err := bundle.Open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	events, err := b.Open(bundle.Recording)
	if err != nil {
		return fmt.Errorf("the bundle has no events to replay: %w", err)
	}
	defer events.Close()
	sums, err := b.Open(bundle.Digests)
	if err != nil {
		return err
	}
	defer sums.Close()
	p.digests = bufio.NewReader(sums)
	if err := p.play(events); err != nil {
		return err
	}
	if n, _ := io.Copy(io.Discard, p.digests); n > 0 {
		return fmt.Errorf("%d bytes of digests are left after the last event", n)
	}
	p.digests = nil
	return nil
}

// maxLine bounds a line. The longest is that of a State, with some 200 bytes for each pod.
const maxLine = 512 << 20

// readLine is ReadBytes for a line that has a limit: a small bundle can contain a large one.
func readLine(lines *bufio.Reader) (line []byte, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// play plays one file.
func (p *player) play(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	header, err := readLine(lines)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the recording: %w", err)
	}
	p.header = header
	first, err := p.begin(lines)
	if err != nil {
		return err
	}
	var step *Step
	for at := first; ; at++ {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) { // a last line without an end was truncated by a crash
			if len(raw) > 0 && p.hosted != nil {
				return nil // it may be that of the answers
			}
			return p.step(step)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
		raw = bytes.TrimSuffix(raw, []byte("\n"))
		ev, isEvent, err := p.reader.Event(raw)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", at, err)
		case isEvent:
			if err := p.step(step); err != nil {
				return err
			}
			p.events++
			step = &Step{Number: p.events, Event: ev, EventLine: raw, NewConfig: p.newConfig, resumed: p.resumed}
		case step == nil:
			return fmt.Errorf("line %d: an effect before the first event", at)
		default:
			step.Then = append(step.Then, raw)
		}
	}
}

// step gives one event to the engine; nil for none.
func (p *player) step(s *Step) error {
	if s == nil {
		return nil
	}
	heard, err := recording.Answers(s.Then)
	if err != nil {
		return fmt.Errorf("event %d: %w", s.Number, err)
	}
	if p.foreign != nil {
		p.foreign.SetAnswers(heard.Answers)
	}
	if p.hosted != nil {
		p.hosted.Set(heard.Hosted)
	}
	if p.between != nil {
		s.Effects = p.between.Step(s.Event)
	} else {
		s.Effects = p.engine.Step(s.Event)
	}
	if p.hosted != nil && p.hosted.Err() != nil {
		return fmt.Errorf("event %d: %w", s.Number, p.hosted.Err())
	}
	if p.digests != nil {
		var want [8]byte
		if _, err := io.ReadFull(p.digests, want[:]); err != nil {
			return fmt.Errorf("event %d: the bundle has no digest of its effects: %w", s.Number, err)
		}
		if s.digest = otherDigest; p.digester.Digest(s.Effects) == binary.LittleEndian.Uint64(want[:]) {
			s.digest = equalDigest
		}
	}
	if now := bytes.TrimSuffix(recording.AppendEffects(nil, s.Effects), []byte("\n")); len(now) > 0 {
		s.Now = bytes.Split(now, []byte("\n"))
	}
	return p.f(p.engine, *s)
}

// begin makes the engine with which a file begins, unless the one of the file before goes on, and returns the number of
// the first line of its events.
func (p *player) begin(lines *bufio.Reader) (first int, err error) {
	h, err := readHeader(p.header)
	if err != nil {
		return 0, err
	}
	cfg, foreign, hosted, err := h.configuration(p.plugins)
	if err != nil {
		return 0, err
	}
	if h.Digests != (p.digests != nil) {
		return 0, errors.New("a recording without effects can only be read in its bundle")
	}
	goesOn := p.engine != nil && h.Kumiki == formatFromState && h.Before == p.events
	if goesOn {
		return skipState(lines)
	}
	if p.engine != nil && h.Kumiki == formatFromStart {
		p.note(fmt.Sprintf("a scheduler was started anew in segment %d", h.Segment))
	} else if p.engine != nil {
		p.note(fmt.Sprintf("segment %d begins after event %d, and the one before ends with event %d: it is played "+
			"from its state", h.Segment, h.Before, p.events))
	}
	p.foreign, p.hosted, p.reader = foreign, hosted, recording.NewReader()
	p.events, p.resumed = h.Before, h.Kumiki == formatFromState
	if h.Kumiki == formatFromStart {
		p.engine = engine.New(cfg)
		p.begun(nil)
		return 2, nil
	}
	st, first, err := readState(lines, p.reader, &cfg)
	if err != nil {
		return 0, err
	}
	if p.engine, err = engine.Resume(cfg, *st); err != nil {
		return 0, fmt.Errorf("line %d: %w", first-1, err)
	}
	p.begun(st)
	return first, nil
}

func (p *player) begun(st *engine.State) {
	if p.between != nil {
		p.between.Begin(p.engine, st)
	}
}

// readState reads the State with which a file begins, and returns the number of the first line after it.
func readState(lines *bufio.Reader, reader *recording.Reader, cfg *engine.Config) (*engine.State, int, error) {
	for at := 2; ; at++ {
		raw, err := readLine(lines)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: the recording ends before the state with which it begins (%w)", at, err)
		}
		st, err := reader.State(raw, cfg)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", at, err)
		}
		if st != nil {
			return st, at + 1, nil
		}
	}
}

// skipState reads over the State with which a file begins.
func skipState(lines *bufio.Reader) (first int, err error) {
	for at := 2; ; at++ {
		raw, err := readLine(lines)
		if err != nil {
			return 0, fmt.Errorf("line %d: the recording ends before the state with which it begins (%w)", at, err)
		}
		if bytes.HasPrefix(raw, []byte(`{"state":`)) {
			return at + 1, nil
		}
	}
}

// newConfig makes the configuration of the engine again, with plugins of its own.
func (p *player) newConfig() (engine.Config, error) {
	h, err := readHeader(p.header)
	if err != nil {
		return engine.Config{}, err
	}
	cfg, _, _, err := h.configuration(p.plugins)
	return cfg, err
}

// readHeader parses the first line.
func readHeader(first []byte) (h header, err error) {
	h.Features = config.DefaultFeatures()
	if err := json.Unmarshal(first, &h); err != nil || h.Kumiki != formatFromStart && h.Kumiki != formatFromState ||
		h.Config == nil {
		return h, fmt.Errorf("not a recording: the first line does not say %q or %q", formatFromStart, formatFromState)
	}
	return h, nil
}

// configuration makes the configuration that the first line describes, and what answers in place of extenders and of
// plugins of kube-scheduler's framework; nil if there are none.
func (h *header) configuration(plugins app.Plugins) (cfg engine.Config, foreign *recording.Foreign,
	hosted *answers.Recorded, err error) {
	if h.Hosted != nil {
		hosted = answers.NewRecorded(*h.Hosted)
	}
	had := plugins
	if plugins, err = plugins.WithRecorded(hosted); err != nil {
		return cfg, nil, nil, err
	}
	if missing := plugins.Missing(h.Config); len(missing) > 0 {
		if len(had.Missing(h.Config)) == 0 {
			return cfg, nil, nil, fmt.Errorf("the recording has no answers of plugins of kube-scheduler's framework, "+
				"so it cannot be replayed: %s", strings.Join(missing, ", "))
		}
		return cfg, nil, nil, fmt.Errorf("the recording was made with custom plugins that this program does not have: "+
			"%s; replay it with the program that recorded it", strings.Join(missing, ", "))
	}
	text, err := json.Marshal(h.Config)
	if err != nil {
		return cfg, nil, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	plugins = plugins.With(h.Features)
	resolved, err := plugins.ParseConfig(text)
	if err != nil {
		return cfg, nil, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	cfg, err = plugins.EngineConfig(resolved)
	if err != nil {
		return cfg, nil, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	cfg.UnschedulableTimeout = record.Time(h.UnschedulableTimeout)
	foreign, err = app.Replayed(context.Background(), resolved, &cfg)
	if err != nil {
		return cfg, nil, nil, fmt.Errorf("reading the recording's configuration: %w", err)
	}
	return cfg, foreign, hosted, nil
}
