// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/view"
)

// againAfter is the pause before a broken stream of moves is opened again.
const againAfter = time.Second

func newQueueCommand(io streams) *cobra.Command {
	var find finder
	var out output
	var scope scope
	c := &cobra.Command{
		Use:   "queue",
		Short: "List the waiting pods by sub-queue; -w follows each move with its cause",
		Example: `  kumiki queue
  kumiki queue -A -o wide
  kumiki queue -w -n shop`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			namespace, err := scope.namespace(&find)
			if err != nil {
				return err
			}
			if err := showQueue(c.Context(), io, &find, out, namespace, scope); err != nil || !scope.watch {
				return err
			}
			return followQueue(c.Context(), io, &find, out, func(m record.QueueMove) bool {
				return namespace == "" || m.Pod.Namespace == namespace
			}, namespace)
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	scope.addFlags(c, "waiting pods", "pods")
	return c
}

// scope is the flags by which a list is limited to a namespace, and followed.
type scope struct{ everywhere, watch bool }

func (s *scope) addFlags(c *cobra.Command, listed, moved string) {
	c.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false,
		"list "+listed+" of all namespaces; the counts are always of all")
	c.Flags().BoolVarP(&s.watch, "watch", "w", false, "follow the moves of "+moved+" between the sub-queues")
}

// namespace returns the namespace that is listed, empty for all. It also checks the flags of find.
func (s *scope) namespace(find *finder) (string, error) {
	if _, err := find.where(); err != nil || s.everywhere {
		return "", err
	}
	return find.namespace()
}

func showQueue(ctx context.Context, io streams, find *finder, out output, namespace string, s scope) error {
	var report record.QueueReport
	err := askFirst(ctx, io, find, "queue", func(client *ask.Client) (err error) {
		report, err = client.Queue(ctx, namespace)
		return err
	})
	if err != nil {
		return err
	}
	report.Entries = slices.DeleteFunc(report.Entries, func(e record.QueueEntry) bool {
		return namespace != "" && e.Pod.Namespace != namespace
	})
	return s.print(io, out, report, func(wide bool) error { return text.Queue(io.Out, report, wide) })
}

// askFirst asks the first of the running schedulers, and names it if there are others.
func askFirst(ctx context.Context, io streams, find *finder, subject string, question func(*ask.Client) error) error {
	running, err := find.schedulers(ctx, "")
	if err != nil {
		return err
	}
	if len(running) > 1 {
		fmt.Fprintf(io.Err, "%d schedulers run; this is the %s of %s (choose one with --scheduler-lease)\n",
			len(running), subject, running[0])
	}
	return running[:1].ask(ctx, question)
}

// print prints a report before the moves that follow it, if they do.
func (s *scope) print(io streams, out output, report any, human func(wide bool) error) error {
	if s.watch && out.format == "json" { // one object per line, as in the lines that follow
		return json.NewEncoder(io.Out).Encode(report)
	}
	return out.print(io.Out, report, human)
}

// followQueue prints the moves in a namespace, or in all if it is empty, of which shown reports true, until it is
// interrupted. If the scheduler goes away it finds the new leader, and continues
// at its position if that is the same process.
func followQueue(ctx context.Context, io streams, find *finder, out output, shown func(record.QueueMove) bool,
	namespace string) error {
	if out.format != "json" && out.format != "yaml" {
		fmt.Fprint(io.Out, "\n"+text.MoveHead)
	}
	print := func(line view.MoveLine) error {
		if line.Lost {
			fmt.Fprintln(io.Err, "some moves were missed: the scheduler keeps only the newest, or another one "+
				"leads now")
		}
		if line.Move == nil || !shown(*line.Move) {
			return nil
		}
		if out.format == "json" || out.format == "yaml" {
			return json.NewEncoder(io.Out).Encode(line)
		}
		return text.Move(io.Out, *line.Move, time.Local)
	}
	epoch, since := "", uint64(0)
	for {
		running, err := find.schedulers(ctx, "")
		if err == nil {
			err = running[:1].ask(ctx, func(client *ask.Client) (err error) {
				epoch, since, err = client.Moves(ctx, namespace, epoch, since, print)
				return err
			})
		}
		if ctx.Err() != nil {
			return nil
		}
		fmt.Fprintf(io.Err, "the stream of moves ended (%v); looking for the scheduler again\n", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(againAfter):
		}
	}
}
