// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
)

// RestartReport is what all starts gave.
type RestartReport struct {
	Nodes  int            `json:"nodes"`
	Pods   int            `json:"pods"`
	CPUs   int            `json:"cpus"`
	Starts []Start        `json:"starts"`
	Rows   []RestartRow   `json:"rows"`
	Ratios []RestartRatio `json:"ratios,omitempty"`
}

// RestartRow is one scheduler, started in one way, over all rounds.
type RestartRow struct {
	Scheduler string `json:"scheduler"`
	How       string `json:"how"`
	Ready     Spread `json:"readySeconds"`
	Bound     Spread `json:"boundSeconds"`
	// AfterLists is from the last of the lists to the first bind; zero where that is not known.
	AfterLists Spread `json:"afterListsSeconds,omitzero"`
	CPU        Spread `json:"cpuSeconds"`
	ServersCPU Spread `json:"serversCPUSeconds"`
	ReadBytes  Spread `json:"readBytes"`
	PeakRSS    Spread `json:"peakRSSBytes"`
	FinalRSS   Spread `json:"finalRSSBytes"`
	Others     Spread `json:"othersShare"`
	// Lists of the last start.
	Lists Sent `json:"lists"`
}

// RestartRatio is upstream's figure divided by kumiki's, round by round: above 1 kumiki needs less.
type RestartRatio struct {
	How       string `json:"how"`
	Ready     Spread `json:"ready"`
	Bound     Spread `json:"bound"`
	CPU       Spread `json:"cpu"`
	ReadBytes Spread `json:"readBytes"`
	PeakRSS   Spread `json:"peakRSS"`
}

// The figures of a start.
var (
	readyOf    = func(s Start) float64 { return s.ReadySeconds }
	boundOf    = func(s Start) float64 { return s.BoundSeconds }
	startCPU   = func(s Start) float64 { return s.CPU }
	startBytes = func(s Start) float64 { return float64(s.ReadBytes) }
	startPeak  = func(s Start) float64 { return float64(s.PeakRSS) }
	startAfter = func(s Start) float64 { return s.AfterListsSeconds }
)

func summarizeStarts(o Options, starts []Start) RestartReport {
	r := RestartReport{Nodes: o.Nodes, Pods: o.Pods, CPUs: runtime.NumCPU(), Starts: starts}
	of := func(name, how string, f func(Start) float64) []float64 {
		var out []float64
		for _, s := range starts {
			if s.Scheduler == name && s.How == how {
				out = append(out, f(s))
			}
		}
		return out
	}
	for _, how := range []string{FirstStart, AfterKill} {
		for _, name := range o.Schedulers {
			over := func(f func(Start) float64) Spread { return spread(of(name, how, f)) }
			row := RestartRow{Scheduler: name, How: how, Ready: over(readyOf), Bound: over(boundOf), AfterLists: over(startAfter), CPU: over(startCPU),
				ServersCPU: over(func(s Start) float64 { return s.ServersCPU }), ReadBytes: over(startBytes), PeakRSS: over(startPeak),
				FinalRSS: over(func(s Start) float64 { return float64(s.FinalRSS) }), Others: over(func(s Start) float64 { return s.Others })}
			for _, s := range starts {
				if s.Scheduler == name && s.How == how {
					row.Lists = s.Lists
				}
			}
			r.Rows = append(r.Rows, row)
		}
		if slices.Contains(o.Schedulers, Kumiki) && slices.Contains(o.Schedulers, Upstream) {
			by := func(f func(Start) float64) Spread { return spread(ratios(of(Upstream, how, f), of(Kumiki, how, f))) }
			r.Ratios = append(r.Ratios, RestartRatio{How: how, Ready: by(readyOf), Bound: by(boundOf), CPU: by(startCPU),
				ReadBytes: by(startBytes), PeakRSS: by(startPeak)})
		}
	}
	return r
}

func (r RestartReport) write(w io.Writer, format string) error {
	if format == "json" {
		return indented(w, r)
	}
	fmt.Fprintf(w, "%d nodes, %d bound pods, %d CPUs for everything; seconds from the start of the process; medians (min..max)\n\n", r.Nodes, r.Pods, r.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "SCHEDULER\tSTART\tREADY\tFIRST BIND\tAFTER LISTS\tCPU\tSERVERS' CPU\tREAD\tPEAK RSS\tRSS\tOTHERS\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%ss\t%ss\t%s\t%ss\t%.1fs\t%.0fMi\t%.0fMi\t%.0fMi\t%.0f%%\t\n", row.Scheduler, row.How, row.Ready.text("%.2f"),
			row.Bound.text("%.2f"), known(row.AfterLists), row.CPU.text("%.2f"), row.ServersCPU.Median, row.ReadBytes.Median/(1<<20), row.PeakRSS.Median/(1<<20),
			row.FinalRSS.Median/(1<<20), 100*row.Others.Median)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		sum := row.Lists.total()
		fmt.Fprintf(w, "%s, %s, sent by the API server: %d events in %.1f MiB: %s\n", row.Scheduler, row.How, sum.Events, mebi(sum.Bytes), row.Lists.text(4))
	}
	fmt.Fprintln(w)
	for _, ratio := range r.Ratios {
		if _, err := fmt.Fprintf(w, "%s / %s, %s: %s to ready, %s to the first bind, %s in CPU, %s in bytes read, %s in peak RSS\n", Upstream, Kumiki, ratio.How,
			ratio.Ready.text("%.2f"), ratio.Bound.text("%.2f"), ratio.CPU.text("%.2f"), ratio.ReadBytes.text("%.2f"), ratio.PeakRSS.text("%.2f")); err != nil {
			return err
		}
	}
	return nil
}

// known shows seconds that are not known everywhere.
func known(s Spread) string {
	if s == (Spread{}) {
		return "?"
	}
	return s.text("%.2f") + "s"
}
