// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Incidents writes a list of incidents.
func Incidents(w io.Writer, list record.Incidents, wide bool) error {
	p := &page{w: w, wide: wide}
	if len(list.Incidents) == 0 {
		p.printf("no incidents\n")
		return p.err
	}
	rows := [][]string{{"ID", "CAUSE", "TOOK", "EVENTS", "SIZE", "ABOUT"}}
	if wide {
		rows[0] = append(rows[0], "FILE")
	}
	for _, in := range list.Incidents {
		about := in.Detail
		if in.Error != "" {
			about = "no bundle: " + in.Error
		}
		row := []string{in.ID, in.Cause, tookText(in.Took), fmt.Sprint(in.Events),
			fmt.Sprintf("%d KiB", (in.Size+1023)>>10), cmp.Or(about, "-")}
		if wide {
			row = append(row, cmp.Or(in.File, "in memory"))
		}
		rows = append(rows, row)
	}
	p.table(rows)
	return p.err
}

func tookText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}

// Incident writes the report of an incident.
func Incident(w io.Writer, in record.Incident) error {
	p := &page{w: w}
	p.incident(in)
	return p.err
}

func (p *page) incident(in record.Incident) {
	p.printf("%s at %s: %s\n", in.Cause, in.At.UTC().Format("2006-01-02 15:04:05.000"), in.Text)
	if in.Took > 0 {
		p.printf("  for %s\n", tookText(in.Took))
	}
	if in.Detail != "" {
		p.printf("  about %s\n", in.Detail)
	}
	if in.InHand != "" {
		p.printf("  while it handled %.200s\n", in.InHand)
	}
	p.printf("  the bundle has %d events, after the %d before its state\n", in.Events, in.Before)
}

// IncidentReplay writes the result of replaying a bundle.
func IncidentReplay(w io.Writer, r record.IncidentReplay) error {
	p := &page{w: w}
	p.incident(r.Incident)
	if r.First == nil {
		p.printf("replayed: %d events with %d decisions gave effects with the same digests\n", r.Events, r.Decisions)
		return p.err
	}
	p.printf("the first difference is event %d, in the iteration at %s: %s\n", r.First.Event,
		time.Unix(0, int64(r.First.At)).UTC().Format("15:04:05.000"), r.First.Line)
	for _, line := range r.First.Now {
		p.printf("  now: %s\n", line)
	}
	if len(r.First.Now) == 0 {
		p.printf("  now: (nothing)\n")
	}
	return p.err
}
