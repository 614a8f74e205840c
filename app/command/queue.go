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
	var everywhere, watch bool
	c := &cobra.Command{
		Use:   "queue",
		Short: "List the waiting pods by sub-queue; -w follows each move with its cause",
		Example: `  kumiki queue
  kumiki queue -A -o wide
  kumiki queue -w -n shop`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := find.where(); err != nil {
				return err
			}
			namespace := "" // all
			if !everywhere {
				var err error
				if namespace, err = find.namespace(); err != nil {
					return err
				}
			}
			if err := showQueue(c.Context(), io, &find, out, namespace, watch); err != nil || !watch {
				return err
			}
			return followQueue(c.Context(), io, &find, out, namespace)
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false,
		"list waiting pods of all namespaces; the counts are always of all")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "follow the moves of pods between the sub-queues")
	return c
}

func showQueue(ctx context.Context, io streams, find *finder, out output, namespace string, watch bool) error {
	running, err := find.schedulers(ctx, "")
	if err != nil {
		return err
	}
	if len(running) > 1 {
		fmt.Fprintf(io.Err, "%d schedulers run; this is the queue of %s (choose one with --scheduler-lease)\n",
			len(running), running[0])
	}
	var report record.QueueReport
	err = running[:1].ask(ctx, func(client *ask.Client) error {
		var err error
		report, err = client.Queue(ctx, namespace)
		return err
	})
	if err != nil {
		return err
	}
	report.Entries = slices.DeleteFunc(report.Entries, func(e record.QueueEntry) bool {
		return namespace != "" && e.Pod.Namespace != namespace
	})
	if watch && out.format == "json" { // one object per line, as in the lines that follow
		return json.NewEncoder(io.Out).Encode(report)
	}
	return out.print(io.Out, report, func(wide bool) error { return text.Queue(io.Out, report, wide) })
}

// followQueue prints moves until it is interrupted. If the scheduler goes away it finds the new leader, and continues
// at its position if that is the same process.
func followQueue(ctx context.Context, io streams, find *finder, out output, namespace string) error {
	if out.format != "json" && out.format != "yaml" {
		fmt.Fprint(io.Out, "\n"+text.MoveHead)
	}
	print := func(line view.MoveLine) error {
		if line.Lost {
			fmt.Fprintln(io.Err, "some moves were missed: the scheduler keeps only the newest, or another one "+
				"leads now")
		}
		if line.Move == nil || namespace != "" && line.Move.Pod.Namespace != namespace {
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
