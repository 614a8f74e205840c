// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// Report has the results of all starts.
type Report struct {
	Nodes  int     `json:"nodes"`
	Pods   int     `json:"pods"`
	CPUs   int     `json:"cpus"`
	Starts []Start `json:"starts"`
	Rows   []Row   `json:"rows"`
	Ratios []Ratio `json:"ratios,omitempty"`
}

// Row is one scheduler, started in one way, over all rounds.
type Row struct {
	Scheduler string        `json:"scheduler"`
	How       string        `json:"how"`
	Ready     report.Spread `json:"readySeconds"`
	Bound     report.Spread `json:"boundSeconds"`
	// AfterLists is the time from the last of the lists to the first bind; zero if unknown.
	AfterLists report.Spread `json:"afterListsSeconds,omitzero"`
	CPU        report.Spread `json:"cpuSeconds"`
	ServersCPU report.Spread `json:"serversCPUSeconds"`
	ReadBytes  report.Spread `json:"readBytes"`
	PeakRSS    report.Spread `json:"peakRSSBytes"`
	FinalRSS   report.Spread `json:"finalRSSBytes"`
	Others     report.Spread `json:"othersShare"`
	// Lists of the last start.
	Lists Sent `json:"lists"`
}

// Ratio is upstream's figure divided by kumiki's, round by round: if it is more than 1, kumiki needs less.
type Ratio struct {
	How       string        `json:"how"`
	Ready     report.Spread `json:"ready"`
	Bound     report.Spread `json:"bound"`
	CPU       report.Spread `json:"cpu"`
	ReadBytes report.Spread `json:"readBytes"`
	PeakRSS   report.Spread `json:"peakRSS"`
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

func summarizeStarts(o testbed.Options, starts []Start) Report {
	r := Report{Nodes: o.Nodes, Pods: o.Pods, CPUs: runtime.NumCPU(), Starts: starts}
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
			over := func(f func(Start) float64) report.Spread { return report.SpreadOf(of(name, how, f)) }
			row := Row{Scheduler: name, How: how, Ready: over(readyOf), Bound: over(boundOf), AfterLists: over(startAfter), CPU: over(startCPU),
				ServersCPU: over(func(s Start) float64 { return s.ServersCPU }), ReadBytes: over(startBytes), PeakRSS: over(startPeak),
				FinalRSS: over(func(s Start) float64 { return float64(s.FinalRSS) }), Others: over(func(s Start) float64 { return s.Others })}
			for _, s := range starts {
				if s.Scheduler == name && s.How == how {
					row.Lists = s.Lists
				}
			}
			r.Rows = append(r.Rows, row)
		}
		if slices.Contains(o.Schedulers, report.Kumiki) && slices.Contains(o.Schedulers, report.Upstream) {
			by := func(f func(Start) float64) report.Spread {
				return report.SpreadOf(report.Ratios(of(report.Upstream, how, f), of(report.Kumiki, how, f)))
			}
			r.Ratios = append(r.Ratios, Ratio{How: how, Ready: by(readyOf), Bound: by(boundOf), CPU: by(startCPU),
				ReadBytes: by(startBytes), PeakRSS: by(startPeak)})
		}
	}
	return r
}

func (r Report) write(w io.Writer, format string) error {
	if format == "json" {
		return report.WriteJSON(w, r)
	}
	fmt.Fprintf(w, "%d nodes, %d bound pods, %d CPUs for everything; seconds from the start of the process; medians (min..max)\n\n", r.Nodes, r.Pods, r.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "SCHEDULER\tSTART\tREADY\tFIRST BIND\tAFTER LISTS\tCPU\tSERVERS' CPU\tREAD\tPEAK RSS\tRSS\tOTHERS\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%ss\t%ss\t%s\t%ss\t%.1fs\t%.0fMi\t%.0fMi\t%.0fMi\t%.0f%%\t\n", row.Scheduler, row.How, row.Ready.Text("%.2f"),
			row.Bound.Text("%.2f"), known(row.AfterLists), row.CPU.Text("%.2f"), row.ServersCPU.Median, row.ReadBytes.Median/(1<<20), row.PeakRSS.Median/(1<<20),
			row.FinalRSS.Median/(1<<20), 100*row.Others.Median)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		sum := row.Lists.Total()
		fmt.Fprintf(w, "%s, %s, sent by the API server: %d events in %.1f MiB: %s\n", row.Scheduler, row.How, sum.Events, report.Mebi(sum.Bytes), row.Lists.text(4))
	}
	fmt.Fprintln(w)
	for _, ratio := range r.Ratios {
		if _, err := fmt.Fprintf(w, "%s / %s, %s: %s to ready, %s to the first bind, %s in CPU, %s in bytes read, %s in peak RSS\n", report.Upstream, report.Kumiki, ratio.How,
			ratio.Ready.Text("%.2f"), ratio.Bound.Text("%.2f"), ratio.CPU.Text("%.2f"), ratio.ReadBytes.Text("%.2f"), ratio.PeakRSS.Text("%.2f")); err != nil {
			return err
		}
	}
	return nil
}

// known formats seconds that are not known for every scheduler.
func known(s report.Spread) string {
	if s == (report.Spread{}) {
		return "?"
	}
	return s.Text("%.2f") + "s"
}
