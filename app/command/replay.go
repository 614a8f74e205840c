// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// differencesShown bounds how many differences replay prints in full.
const differencesShown = 10

func newReplayCommand(io streams, plugins app.Plugins) *cobra.Command {
	var step bool
	var pod string
	c := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Replay a recording and compare the effects byte for byte; --step shows each event",
		Long: `Replay a recording of kumiki scheduler --record. Exit 0 if every event has the same effects as in the
recording.

FILE is a recording, a directory with its segments (--record-segments), or the value of --record, which the names of
its segments begin with. Each segment can be replayed by itself; several are replayed in the order given.

With --step, show each event with its queue moves, its decision and its effects, without ticks that have no effect.
At a terminal, Enter continues with the next event, a number skips that many, and q ends. With --pod, show only the
events that concern one pod.`,
		Example: `  kumiki replay scheduling.tape
  kumiki replay --step scheduling.tape
  kumiki replay recordings/
  kumiki replay --pod default/web-1 scheduling.tape`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			var names []string
			for _, name := range a {
				files, err := tape.Files(name)
				if err != nil {
					return fmt.Errorf("replay: %w", err)
				}
				names = append(names, files...)
			}
			p := player{io: io, pod: pod}
			if step {
				p.ask = bufio.NewScanner(io.In)
			}
			note := func(text string) { fmt.Fprintln(io.Err, "note: "+text) }
			if err := tape.PlayFiles(names, plugins, note, p.step); err != nil && !errors.Is(err, errQuit) {
				return fmt.Errorf("replay %w", err)
			}
			return p.verdict()
		},
	}
	c.Flags().BoolVar(&step, "step", false, "show one event at a time, with its effects")
	c.Flags().StringVar(&pod, "pod", "", "show the events of one pod, as namespace/name; without --step, all at once")
	return c
}

// errQuit is returned when the user quits the replay.
var errQuit = errors.New("quit")

// player counts, compares and shows.
type player struct {
	io                         streams
	ask                        *bufio.Scanner // nil without --step
	pod                        string         // namespace/name of the pod that is shown, empty for all
	skip                       int
	now                        record.Time // of the newest tick
	events, effects, different int
}

func (p *player) step(_ *engine.Engine, s tape.Step) error {
	p.events++
	p.effects += len(s.Now)
	if s.Differs() {
		p.different++
		if p.different <= differencesShown {
			fmt.Fprintf(p.io.Out, "event %d differs: %s\n  then: %s\n  now:  %s\n", s.Number, s.EventLine,
				joined(s.Then), joined(s.Now))
		}
	}
	if t, ok := s.Event.(engine.Tick); ok {
		p.now = t.Now
	}
	if p.ask == nil && p.pod == "" || !shown(s, p.pod) {
		return nil
	}
	if p.skip > 0 {
		p.skip--
		return nil
	}
	if err := show(p.io.Out, s, p.now); err != nil || p.ask == nil {
		return err
	}
	fmt.Fprint(p.io.Err, "> ")
	if !p.ask.Scan() {
		p.skip = int(^uint(0) >> 1) // the input has ended: run to the end
		return nil
	}
	switch answer := strings.TrimSpace(p.ask.Text()); answer {
	case "":
	case "q", "quit":
		return errQuit
	default:
		if _, err := fmt.Sscan(answer, &p.skip); err != nil {
			fmt.Fprintln(p.io.Err, "Enter goes on, a number skips that many events, q ends")
		}
	}
	return nil
}

func joined(lines [][]byte) string {
	if len(lines) == 0 {
		return "(nothing)"
	}
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = string(l)
	}
	return strings.Join(parts, "\n        ")
}

// verdict is the end of a replay.
func (p *player) verdict() error {
	if p.different > 0 {
		return fmt.Errorf("%d of %d events have other effects than at the time", p.different, p.events)
	}
	_, err := fmt.Fprintf(p.io.Out, "%d events gave the same %d effects, byte for byte\n", p.events, p.effects)
	return err
}
