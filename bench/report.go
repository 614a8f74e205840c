// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Report is what all runs gave.
type Report struct {
	Nodes  int     `json:"nodes"`
	Pods   int     `json:"pods"`
	Runs   []Run   `json:"runs"`
	CPUs   int     `json:"cpus"`
	QPS    float32 `json:"qps"`
	Burst  int     `json:"burst"`
	Rows   []Row   `json:"rows"`
	Ratios []Ratio `json:"ratios,omitempty"`
}

// Row is one scheduler over its runs.
type Row struct {
	Scheduler     string `json:"scheduler"`
	Runs          int    `json:"runs"`
	PodsPerSecond Spread `json:"podsPerSecond"`
	// QuietPerSecond is PodsPerSecond divided by the share of the machine that others left: what it would have been on a
	// machine of its own. It holds as long as Idle is near 0.
	QuietPerSecond Spread `json:"quietPerSecond"`
	// SettledPerSecond counts until the events could be read as well.
	SettledPerSecond Spread `json:"settledPerSecond"`
	P50              Spread `json:"p50Seconds"`
	P99              Spread `json:"p99Seconds"`
	Max              Spread `json:"maxSeconds"`
	CPU              Spread `json:"cpuSeconds"`
	PeakRSS          Spread `json:"peakRSSBytes"`
	FinalRSS         Spread `json:"finalRSSBytes"`
	Events           Spread `json:"events"`
	Idle             Spread `json:"idleShare"`
	Others           Spread `json:"othersShare"`
	// MachineCPU is the CPU seconds of scheduler, API server, etcd and this program: with two CPUs for all of them it
	// bounds the pods per second, and it does not depend on what others do with the machine as much as time does.
	MachineCPU Spread `json:"machineCPUSeconds"`
	// Calls of the last run.
	Calls Calls `json:"calls"`
}

// Ratio compares a scheduler with another, round by round.
type Ratio struct {
	Of, To string
	// PodsPerSecond and the like of the one divided by that of the other.
	PodsPerSecond    Spread `json:"podsPerSecond"`
	QuietPerSecond   Spread `json:"quietPerSecond"`
	SettledPerSecond Spread `json:"settledPerSecond"`
	// MachineCPU of the other divided by that of the one: above 1 is better, as with the others.
	MachineCPU Spread `json:"machineCPU"`
}

// quiet is the pods per second of a run as if others had been still.
func quiet(run Run) float64 { return run.PodsPerSecond / (1 - run.Others) }

// machineCPU is what the machine spent on a run.
func machineCPU(run Run) float64 { return run.SchedulerCPU + run.ServersCPU + run.BenchCPU }

func lastCalls(runs []Run, name string) Calls {
	for _, run := range slices.Backward(runs) {
		if run.Scheduler == name {
			return run.Calls
		}
	}
	return nil
}

// summarize makes rows, in the order of schedulers, and the ratios to the null binder.
func summarize(o Options, runs []Run) Report {
	r := Report{Nodes: o.Nodes, Pods: o.Pods, Runs: runs, CPUs: runtime.NumCPU(), QPS: o.QPS, Burst: o.Burst}
	perSecond := func(run Run) float64 { return run.PodsPerSecond }
	settled := func(run Run) float64 { return float64(o.Pods) / run.SettleSeconds }
	for _, name := range o.Schedulers {
		of := func(f func(Run) float64) Spread { return spread(figures(runs, name, f)) }
		r.Rows = append(r.Rows, Row{
			Scheduler: name, Runs: len(figures(runs, name, perSecond)),
			PodsPerSecond:    of(perSecond),
			QuietPerSecond:   of(quiet),
			SettledPerSecond: of(settled),
			P50:              of(func(run Run) float64 { return run.P50 }),
			P99:              of(func(run Run) float64 { return run.P99 }),
			Max:              of(func(run Run) float64 { return run.Max }),
			CPU:              of(func(run Run) float64 { return run.SchedulerCPU }),
			PeakRSS:          of(func(run Run) float64 { return float64(run.PeakRSS) }),
			FinalRSS:         of(func(run Run) float64 { return float64(run.FinalRSS) }),
			Events:           of(func(run Run) float64 { return float64(run.Events) }),
			Idle:             of(func(run Run) float64 { return run.Idle }),
			Others:           of(func(run Run) float64 { return run.Others }),
			MachineCPU:       of(machineCPU),
			Calls:            lastCalls(runs, name),
		})
	}
	if slices.Contains(o.Schedulers, Null) {
		for _, name := range o.Schedulers {
			if name != Null {
				r.Ratios = append(r.Ratios, Ratio{Of: name, To: Null,
					PodsPerSecond:    spread(ratios(figures(runs, name, perSecond), figures(runs, Null, perSecond))),
					QuietPerSecond:   spread(ratios(figures(runs, name, quiet), figures(runs, Null, quiet))),
					SettledPerSecond: spread(ratios(figures(runs, name, settled), figures(runs, Null, settled))),
					MachineCPU:       spread(ratios(figures(runs, Null, machineCPU), figures(runs, name, machineCPU))),
				})
			}
		}
	}
	return r
}

// figures takes one figure of the runs of one scheduler, in order.
func figures(runs []Run, name string, f func(Run) float64) []float64 {
	var out []float64
	for _, run := range runs {
		if run.Scheduler == name {
			out = append(out, f(run))
		}
	}
	return out
}

// Formats of a report.
var formats = []string{"table", "json", "csv"}

func (r Report) write(w io.Writer, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "csv":
		return r.csv(w)
	}
	return r.table(w)
}

// table writes medians, with the ends where they matter.
func (r Report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d nodes, %d pods, %d CPUs for everything; medians (min..max)\n\n", r.Nodes, r.Pods, r.CPUs)
	fmt.Fprintln(t, "SCHEDULER\tRUNS\tPODS/S\tIF QUIET\tWITH EVENTS\tP50\tP99\tMAX\tCPU\tALL CPU\tPEAK RSS\tFINAL RSS\tEVENTS\tIDLE\tOTHERS\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.2fs\t%.2fs\t%.2fs\t%.1fs\t%.1fs\t%.0fMi\t%.0fMi\t%.0f\t%.0f%%\t%.0f%%\t\n",
			row.Scheduler, row.Runs, row.PodsPerSecond.text("%.0f"), row.QuietPerSecond.text("%.0f"), row.SettledPerSecond.text("%.0f"),
			row.P50.Median, row.P99.Median, row.Max.Median, row.CPU.Median, row.MachineCPU.Median, row.PeakRSS.Median/(1<<20), row.FinalRSS.Median/(1<<20),
			row.Events.Median, 100*row.Idle.Median, 100*row.Others.Median)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, ratio := range r.Ratios {
		fmt.Fprintf(w, "%s / %s: %s pods/s, %s if quiet, %s with events, %s by CPU of all\n", ratio.Of, ratio.To,
			ratio.PodsPerSecond.text("%.2f"), ratio.QuietPerSecond.text("%.2f"), ratio.SettledPerSecond.text("%.2f"), ratio.MachineCPU.text("%.2f"))
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		if _, err := fmt.Fprintf(w, "%s, writes per pod: %s\n", row.Scheduler, row.Calls.text(r.Pods)); err != nil {
			return err
		}
	}
	return nil
}

// text shows the middle, and the ends when there are any.
func (s Spread) text(verb string) string {
	if s.Min == s.Max {
		return fmt.Sprintf(verb, s.Median)
	}
	return fmt.Sprintf(verb+" ("+verb+".."+verb+")", s.Median, s.Min, s.Max)
}

// csv writes the single runs.
func (r Report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"scheduler", "round", "nodes", "pods", "create_seconds", "bind_seconds", "settle_seconds", "pods_per_second",
		"p50_seconds", "p99_seconds", "max_seconds", "events", "scheduler_cpu_seconds", "servers_cpu_seconds", "bench_cpu_seconds",
		"peak_rss_bytes", "final_rss_bytes", "idle_share", "others_share", "oversold"}}
	num := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	for _, run := range r.Runs {
		rows = append(rows, []string{run.Scheduler, strconv.Itoa(run.Round), strconv.Itoa(r.Nodes), strconv.Itoa(r.Pods),
			num(run.CreateSeconds), num(run.BindSeconds), num(run.SettleSeconds), num(run.PodsPerSecond),
			num(run.P50), num(run.P99), num(run.Max), strconv.FormatInt(run.Events, 10),
			num(run.SchedulerCPU), num(run.ServersCPU), num(run.BenchCPU),
			strconv.FormatInt(run.PeakRSS, 10), strconv.FormatInt(run.FinalRSS, 10), num(run.Idle), num(run.Others), strconv.Itoa(len(run.Oversold))})
	}
	return out.WriteAll(rows)
}
