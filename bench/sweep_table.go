// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/scaling"
)

// Write writes the result: for people, or as data.
func (s *Sweep) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return report.WriteJSON(w, s)
	case "yaml":
		text, err := yaml.Marshal(s)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	fmt.Fprintf(w, "%s, %s, %d CPUs\n\n", s.Workload, s.Date, s.Machine.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "SCHEDULER\t%s\tRUNS\tPODS/S\tRATIO\tCPU PER POD\tP99\tCONFLICTS/POD\tATTEMPTS/POD\tOTHERS\n",
		s.Setting)
	first := map[string]float64{} // scheduler -> pods per second with its first value
	for _, p := range s.Points {
		x := p.PodsPerSecond
		if first[p.Scheduler] == 0 {
			first[p.Scheduler] = x.Median
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%.2f\t%.2fms\t%s\t%.3f\t%.2f\t%.0f%%\n", p.Scheduler, p.Value, p.Runs,
			x.Text("%.0f"), x.Median/first[p.Scheduler], 1000*p.CPUPerPod.Median, p.P99.Text(), p.Conflicts, p.Attempts,
			100*p.Others)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, f := range s.Fits {
		for _, law := range []*scaling.Fit{&f.Amdahl, &f.USL} {
			fmt.Fprintf(w, "%s, %s: %s\n", f.Scheduler, law.Law, fitText(law))
		}
	}
	if len(s.Notes) > 0 {
		fmt.Fprintln(w, "\nNotes:")
		for _, note := range s.Notes {
			fmt.Fprintf(w, "  %s\n", note)
		}
	}
	return nil
}

// fitText writes the parameters of a fit and what follows, or why there are none.
func fitText(f *scaling.Fit) string {
	if f.Why != "" {
		return f.Why
	}
	estimate := func(name string, e *scaling.Estimate, digits int) string {
		return fmt.Sprintf("%s %.*f [%.*f, %.*f]", name, digits, e.Value, digits, e.Low, digits, e.High)
	}
	text := estimate("λ", f.Lambda, 0) + " pods/s, " + estimate("σ", f.Sigma, 3)
	if f.Kappa != nil {
		text += ", " + estimate("κ", f.Kappa, 4)
	}
	text += fmt.Sprintf("; residuals %.1f %%", 100*f.Error)
	switch {
	case f.Limit != nil && *f.Limit < 1.05:
		text += "; more than one changes nothing"
	case f.Limit != nil:
		text += fmt.Sprintf("; no more than %.1f times the throughput of one", *f.Limit)
	case f.Peak != nil:
		text += fmt.Sprintf("; largest throughput at %.1f", *f.Peak)
	case f.Kappa != nil:
		text += "; κ may be 0, so there is no peak"
	default:
		text += "; σ may be 0, so there is no limit"
	}
	return text
}
