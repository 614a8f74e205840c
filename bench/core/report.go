// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Spread is the middle and the ends of a figure over runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread takes the median as the mean of the two middle values when their number is even. There is at least one value.
func spread(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Report is what all runs gave.
type Report struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// Contenders in the order in which they took turns; ratios are to the first.
	Contenders []string `json:"contenders"`
	Rows       []Row    `json:"rows"`
	// Ablations tell what a plugin costs; empty unless that was asked for.
	Ablations []Ablation `json:"ablations,omitempty"`
	Runs      []Run      `json:"runs"`
}

// Row is one contender with one family at one size over its runs.
type Row struct {
	Contender      string `json:"contender"`
	Family         string `json:"family"`
	Nodes          int    `json:"nodes"`
	Runs           int    `json:"runs"`
	PodsPerSecond  Spread `json:"podsPerSecond"`
	Nanoseconds    Spread `json:"nanoseconds"`
	CPUNanoseconds Spread `json:"cpuNanoseconds"`
	P99Nanoseconds Spread `json:"p99Nanoseconds"`
	Allocations    Spread `json:"allocations"`
	AllocatedBytes Spread `json:"allocatedBytes"`
	HeapBytes      Spread `json:"heapBytes"`
	// Paths: how nodes were looked at -> share of the pods of all runs.
	Paths map[record.Path]float64 `json:"paths,omitempty"`
	// Times is the pods per second of the first contender divided by those of this one, run by run, and TimesCPU the CPU time
	// of this one divided by that of the first; nil for the first.
	Times    *Spread `json:"timesSlowerThanFirst,omitempty"`
	TimesCPU *Spread `json:"timesTheCPUOfFirst,omitempty"`
}

type rowKey struct {
	contender, family string
	nodes             int
}

// Summarize makes a row of each contender, family and size, in the order of the runs.
func Summarize(contenders []string, runs []Run) Report {
	r := Report{CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), Contenders: contenders, Runs: runs}
	of := map[rowKey][]Run{}
	var order []rowKey
	for _, run := range runs {
		k := rowKey{run.Contender, run.Family, run.Nodes}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], run)
	}
	for _, k := range order {
		row := summary(of[k])
		if k.contender != contenders[0] {
			first := of[rowKey{contenders[0], k.family, k.nodes}]
			row.Times = times(first, of[k], func(r *Run) float64 { return 1 / r.PodsPerSecond })
			row.TimesCPU = times(first, of[k], func(r *Run) float64 { return r.CPUNanoseconds })
		}
		r.Rows = append(r.Rows, row)
	}
	for _, k := range order {
		if name, ok := strings.CutPrefix(k.contender, withoutPrefix); ok {
			if with := of[rowKey{KumikiName, k.family, k.nodes}]; with != nil {
				r.Ablations = append(r.Ablations, ablation(name, with, of[k]))
			}
		}
	}
	return r
}

func summary(runs []Run) Row {
	figure := func(f func(*Run) float64) Spread {
		var values []float64
		for i := range runs {
			values = append(values, f(&runs[i]))
		}
		return spread(values)
	}
	row := Row{
		Contender: runs[0].Contender, Family: runs[0].Family, Nodes: runs[0].Nodes, Runs: len(runs),
		PodsPerSecond:  figure(func(r *Run) float64 { return r.PodsPerSecond }),
		Nanoseconds:    figure(func(r *Run) float64 { return r.Nanoseconds }),
		CPUNanoseconds: figure(func(r *Run) float64 { return r.CPUNanoseconds }),
		P99Nanoseconds: figure(func(r *Run) float64 { return r.P99Nanoseconds }),
		Allocations:    figure(func(r *Run) float64 { return r.Allocations }),
		AllocatedBytes: figure(func(r *Run) float64 { return r.AllocatedBytes }),
		HeapBytes:      figure(func(r *Run) float64 { return r.HeapBytes }),
	}
	pods, paths := 0, map[record.Path]int{}
	for _, r := range runs {
		pods += r.Pods
		for path, n := range r.Paths { // order: sums
			paths[path] += n
		}
	}
	for path, n := range paths { // order: each has its place
		if row.Paths == nil {
			row.Paths = map[record.Path]float64{}
		}
		row.Paths[path] = float64(n) / float64(pods)
	}
	return row
}

// times divides run by run: what was measured next to each other is compared with each other.
func times(first, other []Run, cost func(*Run) float64) *Spread {
	var values []float64
	for i := range min(len(first), len(other)) {
		values = append(values, cost(&other[i])/cost(&first[i]))
	}
	if values == nil {
		return nil
	}
	s := spread(values)
	return &s
}

// formats of a report.
var formats = []string{"table", "json", "svg"}

func (r *Report) write(w io.Writer, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "svg":
		return r.plot(w)
	}
	if len(r.Ablations) > 0 {
		return r.ablationTable(w)
	}
	return r.table(w)
}

func (r *Report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	head := "FAMILY\tNODES\tSCHEDULER\tPODS/S\tMIN..MAX\tCPU µS/POD\tALLOCS\tBYTES\tHEAP MIB\tPATHS"
	if len(r.Contenders) > 1 {
		head += "\tTIMES " + r.Contenders[0] + "'S TIME\tTIMES ITS CPU"
	}
	fmt.Fprintln(t, head)
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.0f..%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%s", row.Family, row.Nodes, row.Contender,
			row.PodsPerSecond.Median, row.PodsPerSecond.Min, row.PodsPerSecond.Max, row.CPUNanoseconds.Median/1000,
			row.Allocations.Median, row.AllocatedBytes.Median, row.HeapBytes.Median/(1<<20), shares(row.Paths))
		if row.Times != nil {
			fmt.Fprintf(t, "\t%.0f (%.0f..%.0f)\t%.0f (%.0f..%.0f)", row.Times.Median, row.Times.Min, row.Times.Max,
				row.TimesCPU.Median, row.TimesCPU.Min, row.TimesCPU.Max)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// shares lists paths with their share in percent, the cheapest first.
func shares(paths map[record.Path]float64) string {
	var parts []string
	for _, path := range []record.Path{record.Ranked, record.Grouped, record.Scanned} {
		if share, ok := paths[path]; ok {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", path, 100*share))
		}
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}
