// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Incidents writes a list of incidents.
func Incidents(w io.Writer, list record.Incidents, wide bool) error {
	if len(list.Incidents) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "ID\tCAUSE\tTOOK\tEVENTS\tSIZE\tABOUT"
	if wide {
		head += "\tFILE"
	}
	fmt.Fprintln(t, head)
	for _, in := range list.Incidents {
		about := in.Detail
		if in.Error != "" {
			about = "no bundle: " + in.Error
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d KiB\t%s", in.ID, in.Cause, tookText(in.Took), in.Events, (in.Size+1023)>>10,
			cmp.Or(about, "-"))
		if wide {
			fmt.Fprintf(t, "\t%s", cmp.Or(in.File, "in memory"))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func tookText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}

// Incident writes the report of an incident.
func Incident(w io.Writer, in record.Incident) error {
	fmt.Fprintf(w, "%s at %s: %s\n", in.Cause, in.At.UTC().Format("2006-01-02 15:04:05.000"), in.Text)
	if in.Took > 0 {
		fmt.Fprintf(w, "  for %s\n", tookText(in.Took))
	}
	if in.Detail != "" {
		fmt.Fprintf(w, "  about %s\n", in.Detail)
	}
	if in.InHand != "" {
		fmt.Fprintf(w, "  while it handled %.200s\n", in.InHand)
	}
	_, err := fmt.Fprintf(w, "  the bundle has %d events, after the %d before its state\n", in.Events, in.Before)
	return err
}

// IncidentReplay writes the result of replaying a bundle.
func IncidentReplay(w io.Writer, r record.IncidentReplay) error {
	if err := Incident(w, r.Incident); err != nil {
		return err
	}
	if r.First == nil {
		_, err := fmt.Fprintf(w, "replayed: %d events with %d decisions gave effects with the same digests\n", r.Events,
			r.Decisions)
		return err
	}
	fmt.Fprintf(w, "the first difference is event %d, in the iteration at %s: %s\n", r.First.Event,
		time.Unix(0, int64(r.First.At)).UTC().Format("15:04:05.000"), r.First.Line)
	for _, line := range r.First.Now {
		fmt.Fprintf(w, "  now: %s\n", line)
	}
	if len(r.First.Now) == 0 {
		fmt.Fprintln(w, "  now: (nothing)")
	}
	return nil
}
