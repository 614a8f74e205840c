// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"slices"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Bottleneck writes what pods wait for, the largest cause first.
func Bottleneck(w io.Writer, v *bottleneck.Verdict) error {
	p := &page{w: w}
	if v.Known {
		first := v.Findings[0]
		p.printf("Bottleneck:  %s (%s)\n", first.Cause, first.What)
		p.printf("Change:      %s\n", first.Setting)
		p.printf("Gain:        %s\n", gain(&first))
		if v.Next != nil {
			p.printf("Next:        %s (%s)\n", *v.Next, v.Next.What())
		}
	} else {
		p.printf("Bottleneck:  not known: %s\n", v.NotKnown)
	}
	p.printf("Waiting:     %.1f pod-seconds in %.1f s; explained %.0f %%, service time %.1f pod-seconds\n",
		v.PodSeconds, v.Seconds, 100*v.Explained, v.Service)
	if v.Source != "" {
		p.printf("Known by:    %s\n", v.Source)
	}
	p.printf("Pods:        %.1f/s came, %.1f/s were placed\n", v.Arrived, v.Placed)
	if v.Little != nil {
		p.printf("Little:      two measurements of the waiting differ by %.1f %%\n", 100**v.Little)
	}
	rows := [][]string{{"CAUSE", "STAGE", "POD-SECONDS", "SHARE", "SETTING"}}
	shown := shownFindings(v)
	for _, f := range shown {
		rows = append(rows, []string{f.Cause.String(), f.Stage, fmt.Sprintf("%.1f", f.PodSeconds),
			fmt.Sprintf("%.1f%%", 100*f.Share), f.Setting})
	}
	if len(rows) > 1 {
		p.section("")
		p.table(rows)
		p.section("Evidence:")
	}
	for _, f := range shown {
		for _, e := range f.Evidence {
			p.printf("  %s: %s\n", f.Cause, e)
		}
	}
	if len(v.Unobserved) > 0 {
		p.section("Not observed:")
		names := make([]string, 0, len(v.Unobserved))
		for name := range v.Unobserved {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			p.printf("  %s: %s\n", name, v.Unobserved[name])
		}
	}
	return p.err
}

// leastShare is the share of the waiting from which on a cause is in the table.
const leastShare = 0.0005

// shownFindings are the causes that would not be rows of 0.0 %.
func shownFindings(v *bottleneck.Verdict) []bottleneck.Finding {
	return slices.DeleteFunc(slices.Clone(v.Findings), func(f bottleneck.Finding) bool {
		return f.Share < leastShare && f.Cause != v.Findings[0].Cause
	})
}

// gain says what the removal of a cause is expected to change.
func gain(f *bottleneck.Finding) string {
	least := ""
	if f.Gain.AtLeast {
		least = "at least "
	}
	switch {
	case f.Cause == bottleneck.Arrivals:
		return "none: pods are placed as fast as they come"
	case f.Gain.Unknown != "":
		return "not known: " + f.Gain.Unknown
	case f.Gain.PerSecond > 0:
		return fmt.Sprintf("%s%.0f pods/s", least, f.Gain.PerSecond)
	}
	return fmt.Sprintf("pods take %s%.0f %% less time", least, 100*f.Gain.Saved)
}
