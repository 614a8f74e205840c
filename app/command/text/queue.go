// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Queue writes the number of waiting pods by sub-queue, and the given entries.
func Queue(w io.Writer, r record.QueueReport, wide bool) error {
	p := &page{w: w, wide: wide}
	if line := paused(r.Paused, r.At); line != "" {
		p.printf("%s\n\n", line)
	}
	c := r.Counts
	p.table([][]string{
		{"ACTIVE", "IN FLIGHT", "BACKOFF", "UNSCHEDULABLE", "GATED"},
		{fmt.Sprint(c.Active), fmt.Sprint(c.InFlight), fmt.Sprint(c.Backoff), fmt.Sprint(c.Unschedulable),
			fmt.Sprint(c.Gated)},
	})
	if len(r.Entries) == 0 {
		p.limited(r.Only)
		return p.err
	}
	p.section("")
	head := []string{"NAMESPACE", "POD", "QUEUE", "PRIORITY", "ATTEMPTS", "SINCE", "NEXT TRY", "REJECTED BY"}
	if wide {
		head = append(head, "SCHEDULER", "AGE", "UID")
	}
	rows := [][]string{head}
	for _, e := range r.Entries {
		until := "-"
		if e.Until > r.At {
			until = "in " + Ago(r.At, e.Until)
		}
		name := e.Pod.Name
		if e.Gang != "" {
			name = fmt.Sprintf("gang/%s (%s)", strings.TrimPrefix(e.Gang, e.Pod.Namespace+"/"),
				count(len(e.Members), "pod"))
		}
		row := []string{e.Pod.Namespace, name, string(e.Where), fmt.Sprint(e.Priority), fmt.Sprint(e.Attempts),
			Ago(e.Since, r.At), until, dash(strings.Join(e.Plugins, ","))}
		if wide {
			age := "-"
			if e.Created > 0 {
				age = Ago(e.Created, r.At)
			}
			row = append(row, e.Profile, age, e.Pod.UID)
		}
		rows = append(rows, row)
	}
	p.table(rows)
	p.limited(r.Only)
	return p.err
}

// MoveHead is the line above Moves. Columns have a fixed width, because the lines come one by one.
const MoveHead = "TIME          POD                                  FROM           TO             EVENT          " +
	"           CAUSE\n"

// Move writes one move as a line under MoveHead.
func Move(w io.Writer, m record.QueueMove, in *time.Location) error {
	cause := m.Cause
	if m.Hint != "" && !strings.Contains(cause, m.Hint) {
		cause = strings.TrimSuffix("hint of "+m.Hint+": "+m.Cause, ": ")
	}
	who := m.Pod.Key()
	if m.Gang != "" {
		who = "gang " + m.Gang
	}
	line := fmt.Sprintf("%-13s %-36s %-14s %-14s %-25s %s", time.Unix(0, int64(m.At)).In(in).Format("15:04:05.000"),
		who, m.From, m.To, m.Event, cause)
	_, err := fmt.Fprintln(w, strings.TrimRight(line, " "))
	return err
}
