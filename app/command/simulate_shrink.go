// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
	"github.com/kumiki-scheduler/kumiki/sim/shrink"
)

// shrinking is a call of kumiki simulate shrink.
type shrinking struct {
	simulation
	while   string
	to      string
	profile string
	most    int

	check scenario.Assertion
	dir   string // of the scenario file
	seed  uint64
	tries int
}

func newShrinkCommand(io streams, plugins app.Plugins) *cobra.Command {
	s := &shrinking{simulation: simulation{io: io, plugins: plugins}}
	c := &cobra.Command{
		Use:   "shrink SCENARIO|RECORDING --while EXPR --to FILE",
		Short: "Find the smallest scenario or recording that still shows something",
		Long: `Remove parts of a scenario or a recording as long as an expression holds for its simulation, and write
what is left. The expression has the form of kumiki simulate --assert.

Of a scenario, entries of lists, fields and counts become fewer; the result has the expression as its assertion, and
the one seed under which it holds. Of a recording, pods, nodes and other objects are removed with all their events, and
then single events; the result is a file for --from. No single part of the result can be removed.

Exit 1 if the expression does not hold for the whole.`,
		Example: `  kumiki simulate shrink scenario.yaml --while 'overcommits > 0' --to small.yaml
  kumiki simulate shrink recordings/ --while 'pods.pending > 0' --to small.tape`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error { return s.run(a[0]) },
	}
	f := c.Flags()
	f.StringVar(&s.while, "while", "", "what must hold, as 'pods.pending > 0'")
	f.StringVar(&s.to, "to", "", "file to write; an existing file is not overwritten")
	f.StringVar(&s.profile, "profile", "", "scheduler configuration for all schedulers, "+profileUsage)
	f.StringVar(&s.seeds, "seeds", "", "seeds, of which the first is used for which the expression holds")
	f.IntVar(&s.most, "max-tries", 2000, "simulations after which the smallest result so far is written")
	return c
}

// errNotShown is returned if the expression does not hold for the whole.
var errNotShown = errors.New("the expression does not hold for the whole; nothing to shrink")

func (s *shrinking) run(from string) (err error) {
	switch {
	case s.while == "":
		return usageError{errors.New("shrink: name what must hold: --while EXPR")}
	case s.to == "":
		return usageError{errors.New("shrink: name the file to write: --to FILE")}
	case s.most < 1:
		return usageError{fmt.Errorf("shrink: --max-tries must be at least 1, is %d", s.most)}
	}
	if _, err := os.Lstat(s.to); err == nil {
		return usageError{fmt.Errorf("shrink: %s exists", s.to)}
	}
	if s.check, err = scenario.ParseAssertion(s.while); err != nil {
		return usageError{fmt.Errorf("shrink: --while: %w", err)}
	}
	if isRecording(from) {
		return s.recording(from)
	}
	return s.scenario(from)
}

// isRecording reports whether a path names a recording and not a scenario.
func isRecording(path string) bool {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return true // segments, or the name that they begin with
	}
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()
	begin := make([]byte, 16)
	n, _ := in.Read(begin)
	return bytes.HasPrefix(begin[:n], []byte(`{"kumiki"`)) || bytes.HasPrefix(begin[:n], []byte("PK\x03\x04"))
}

// scenario shrinks a scenario file.
func (s *shrinking) scenario(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return usageError{fmt.Errorf("shrink: %w", err)}
	}
	f, err := scenario.Read(text)
	if err != nil {
		return usageError{fmt.Errorf("shrink %s:\n%w", path, err)}
	}
	s.dir = filepath.Dir(path)
	if filepath.Clean(s.dir) != filepath.Clean(filepath.Dir(s.to)) && slices.ContainsFunc(f.Names(),
		func(name string) bool { return !filepath.IsAbs(name) }) {
		return usageError{fmt.Errorf("shrink: the scenario names a file by a relative path; "+
			"write the result into %s", s.dir)}
	}
	if err := f.OpenTraces(s.dir); err != nil {
		return usageError{fmt.Errorf("shrink %s: %w", path, err)}
	}
	if err := s.choose(f); err != nil {
		return err
	}
	if text, err = shrink.Set(text, "seeds", s.seed); err != nil {
		return fmt.Errorf("shrink %s: %w", path, err)
	}
	keys := shrink.Keys{Keep: []string{"name", "until", "seeds", "sample"},
		Count: []string{"count", "size", "completions", "copies", "retries", "zones",
			"pods", "rows", "perNode"}}
	small, err := shrink.YAML(text, keys, func(candidate []byte) bool {
		f, err := scenario.Read(candidate)
		return err == nil && f.OpenTraces(s.dir) == nil && s.shows(f)
	})
	if err == nil {
		small, err = shrink.Set(small, "assertions", []string{s.while})
	}
	if err != nil {
		return fmt.Errorf("shrink %s: %w", path, err)
	}
	if err := os.WriteFile(s.to, small, 0o600); err != nil {
		return fmt.Errorf("shrink: %w", err)
	}
	return s.done(fmt.Sprintf("%d of %d bytes", len(small), len(text)), "kumiki simulate "+s.to)
}

// choose takes the first seed for which the expression holds.
func (s *shrinking) choose(f *scenario.File) error {
	if s.seeds == "" {
		s.seeds = f.Seeds
	}
	seeds, err := scenario.Seeds(s.seeds)
	if err != nil {
		return usageError{fmt.Errorf("shrink: %w", err)}
	}
	s.asserts = []string{s.while}
	one := variant{name: "default", file: f, dir: s.dir, config: s.profile}
	if _, err := s.assertions([]variant{one}, seeds[0]); err != nil {
		return usageError{fmt.Errorf("shrink: %w", err)}
	}
	for _, s.seed = range seeds {
		if s.shows(f) {
			return nil
		}
	}
	return fmt.Errorf("shrink: %w", errNotShown)
}

// shows reports whether the expression holds for a scenario.
func (s *shrinking) shows(f *scenario.File) bool {
	if s.tries >= s.most {
		return false
	}
	s.tries++
	if time.Since(s.told) > 2*time.Second {
		s.told = time.Now()
		fmt.Fprintf(s.io.Err, "%d simulations\n", s.tries)
	}
	run, err := s.start(variant{name: "default", file: f, dir: s.dir, config: s.profile}, s.seed)
	if err != nil {
		return false
	}
	result := run.Finish(nil)
	return s.check.Check(&result) == nil
}

// recording shrinks a recording or a capture.
func (s *shrinking) recording(from string) error {
	names, err := tape.Files(from)
	if err != nil {
		return usageError{fmt.Errorf("shrink: %w", err)}
	}
	var events []engine.Event
	if err := tape.Events(names, s.plugins, func(ev engine.Event) { events = append(events, ev) }); err != nil {
		return usageError{fmt.Errorf("shrink %w", err)}
	}
	if s.seeds == "" {
		s.seeds = "1"
	}
	whole := fromEvents(events)
	if err := s.choose(whole); err != nil {
		return err
	}
	small := shrink.Recording(events, func(part []engine.Event) bool {
		return s.shows(fromEvents(part))
	})
	at := time.Unix(0, 0)
	if len(small) > 0 {
		if tick, is := small[0].(engine.Tick); is {
			at, small = time.Unix(0, int64(tick.Now)), small[1:]
		}
	}
	c, err := profileConfig(s.plugins, s.profile)
	if err != nil {
		return fmt.Errorf("shrink: %w", err)
	}
	nodes, pods, err := tape.Keep(s.to, s.plugins, c, at, small)
	if err != nil {
		return fmt.Errorf("shrink: %w", err)
	}
	left := fmt.Sprintf("%d events (versions of nodes: %d, of pods: %d) of %d", len(small), nodes, pods, len(events))
	return s.done(left,
		fmt.Sprintf("kumiki simulate --from %s --seeds %d --assert '%s'", s.to, s.seed, s.while))
}

// fromEvents returns a scenario of a recording.
func fromEvents(events []engine.Event) *scenario.File {
	c := &scenario.Capture{}
	for _, ev := range events {
		c.Add(ev)
	}
	return &scenario.File{Name: "recording", Until: c.Length() + time.Hour, Traces: []scenario.Trace{c}}
}

// done reports the result.
func (s *shrinking) done(size, command string) error {
	how := "no single part can be removed"
	if s.tries >= s.most {
		how = "ended by --max-tries, so more can be removed"
	}
	_, err := fmt.Fprintf(s.io.Out, "%s: %s after %d simulations; %s\nshow it: %s\n", s.to, size, s.tries, how,
		strings.TrimSpace(command))
	return err
}
