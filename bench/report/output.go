// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Formats are the outputs of a comparison.
var Formats = []string{"table", "json", "csv", "html", "perfdash", "markdown"}

func (c *Comparison) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return WriteJSON(w, c)
	case "csv":
		return c.csv(w)
	case "html":
		return c.html(w)
	case "markdown":
		return c.Markdown(w)
	case "perfdash":
		return WriteJSON(w, c.perfdash())
	}
	return c.table(w)
}

func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// ofNull shows the ratio to null, in parentheses when it does not count.
func (r *WorkloadRow) ofNull() string {
	switch {
	case r.OfNull == nil:
		return "-"
	case !r.Counts:
		return "(" + r.OfNull.text() + ")"
	}
	return r.OfNull.text()
}

func (r *WorkloadRow) ofUpstream() string {
	if r.OfUpstream == nil {
		return "-"
	}
	return r.OfUpstream.text()
}

// threshold shows what was wanted and whether it was reached.
func (r *WorkloadRow) threshold() string {
	t := r.Threshold
	if t == nil {
		return "-"
	}
	sign, verdict := ">", "ok"
	if t.ExpectLower {
		sign = "<"
	}
	if t.Missed {
		verdict = "missed"
	}
	return fmt.Sprintf("%s %s%g", verdict, sign, t.Want)
}

func (r *WorkloadRow) gangP99() string {
	if r.Gangs == nil {
		return "-"
	}
	return r.Gangs.P99.Text()
}

// number shows a figure, or a dash for one that was not measured.
func number(verb string, f float64) string {
	if math.IsNaN(f) {
		return "-"
	}
	return fmt.Sprintf(verb, f)
}

// spreadText is Spread.text with a dash for what was not measured.
func spreadText(verb string, s Spread) string {
	if math.IsNaN(s.Median) {
		return "-"
	}
	return s.Text(verb)
}

// columns of a row, for the table and the page.
var columns = []struct {
	head, meaning string
	cell          func(*WorkloadRow) string
}{
	{"SCHEDULER", "each runs in its own process", func(r *WorkloadRow) string { return r.Scheduler }},
	{"RUNS", "complete runs", func(r *WorkloadRow) string {
		if r.Failed > 0 {
			return fmt.Sprintf("%d, %d failed", r.Rounds, r.Failed)
		}
		return strconv.Itoa(r.Rounds)
	}},
	{"PODS/S", "pods bound, from the first create to the last bind", func(r *WorkloadRow) string { return spreadText("%.0f", r.PodsPerSecond) }},
	{"OF NULL", "pods/s divided by those of null, round by round", (*WorkloadRow).ofNull},
	{"OF UPSTREAM", "pods/s divided by those of kube-scheduler, round by round", (*WorkloadRow).ofUpstream},
	{"P50", "percentile of the time from a pod's create call to its bind", func(r *WorkloadRow) string { return r.Latency.P50.Text() }},
	{"P99", "", func(r *WorkloadRow) string { return r.Latency.P99.Text() }},
	{"P99.9", "", func(r *WorkloadRow) string { return r.Latency.P999.Text() }},
	{"MAX", "inf: a pod was never bound", func(r *WorkloadRow) string { return r.Latency.Max.Text() }},
	{"GANG P99", "from the first create of a gang until all of it is bound", (*WorkloadRow).gangP99},
	{"TRIES", "attempts per pod, as the scheduler counts them", func(r *WorkloadRow) string { return number("%.2f", r.Attempts.Median) }},
	{"OVERSOLD", "number of times that the pods of a node request more than it has", func(r *WorkloadRow) string { return strconv.Itoa(r.Oversold) }},
	{"CPU", "seconds of the scheduler's process", func(r *WorkloadRow) string { return number("%.1fs", r.CPU.Median) }},
	{"ALL CPU", "seconds of scheduler, API server, etcd and this program", func(r *WorkloadRow) string { return number("%.1fs", r.MachineCPU.Median) }},
	{"PEAK RSS", "maximum memory of the scheduler's process", func(r *WorkloadRow) string { return number("%.0fMi", r.PeakRSS.Median/(1<<20)) }},
	{"RSS", "memory after the run has settled", func(r *WorkloadRow) string { return number("%.0fMi", r.SteadyRSS.Median/(1<<20)) }},
	{"IDLE", "idle share of the machine", func(r *WorkloadRow) string { return number("%.0f%%", 100*r.Idle.Median) }},
	{"OTHERS", "share of the machine that other programs used", func(r *WorkloadRow) string { return number("%.0f%%", 100*r.Others.Median) }},
	{"THRESHOLD", "as stated in the file of the workload", (*WorkloadRow).threshold},
}

// headline says what all rows have in common.
func (c *Comparison) headline() string {
	pace := "created as fast as the API server takes them"
	if c.Rate > 0 {
		pace = fmt.Sprintf("%g of them created per second", c.Rate)
	}
	return fmt.Sprintf("%s, %d CPUs for everything, %s, pods %s; medians (min..max), ratios with their 95 %% interval", c.Date, c.CPUs, c.Limits.text(), pace)
}

// workloads are their names in the order of the rows.
func (c *Comparison) workloads() []string {
	var names []string
	for _, r := range c.Rows {
		if !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	return names
}

// rowsOf are the rows of a workload.
func (c *Comparison) rowsOf(name string) []WorkloadRow {
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r WorkloadRow) bool { return r.Workload != name })
}

// table writes one table for each workload.
func (c *Comparison) table(w io.Writer) error {
	fmt.Fprintln(w, c.headline())
	for _, name := range c.workloads() {
		rows := c.rowsOf(name)
		fmt.Fprintf(w, "\n%s, %d pods\n", name, podsOf(rows))
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, col := range columns {
			fmt.Fprintf(t, "%s\t", col.head)
		}
		fmt.Fprintln(t)
		for i := range rows {
			for _, col := range columns {
				fmt.Fprintf(t, "%s\t", col.cell(&rows[i]))
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, line := range remarks(rows) {
			fmt.Fprintln(w, line)
		}
		for _, line := range c.Failures(name) {
			fmt.Fprintln(w, line)
		}
	}
	return nil
}

func podsOf(rows []WorkloadRow) int {
	most := 0
	for _, r := range rows {
		most = max(most, r.Latency.Count)
	}
	return most
}

// remarks say what a table has no column for.
func remarks(rows []WorkloadRow) []string {
	var out []string
	if r := rows[0]; !r.Counts {
		out = append(out, "ratios to null do not count: "+r.Why)
	}
	for _, r := range rows {
		if len(r.Calls) > 0 {
			out = append(out, fmt.Sprintf("%s, writes per pod: %s", r.Scheduler, callsText(r.Calls)))
		}
	}
	for i := range rows {
		if differ := writesDiffer(rows, &rows[i]); len(differ) > 0 {
			out = append(out, fmt.Sprintf("%s writes otherwise than kube-scheduler, per pod: %s", rows[i].Scheduler, strings.Join(differ, ", ")))
		}
	}
	return append(out, costs(rows)...)
}

// writesDiffer is what a scheduler writes otherwise than kube-scheduler in the same workload, if both were measured.
func writesDiffer(rows []WorkloadRow, r *WorkloadRow) []string {
	at := slices.IndexFunc(rows, func(of WorkloadRow) bool { return of.Scheduler == Upstream })
	if at < 0 || r.Scheduler == Upstream || r.Scheduler == CreateOnly || len(r.Calls) == 0 || len(rows[at].Calls) == 0 {
		return nil
	}
	return callsDiffer(r.Calls, rows[at].Calls)
}

// callsText leaves what is too rare to matter to the JSON.
func callsText(calls map[string]float64) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		if calls[what] >= 0.005 {
			parts = append(parts, fmt.Sprintf("%.2f %s", calls[what], what))
		}
	}
	return strings.Join(parts, ", ")
}

// Failures are the trials that did not finish, and those that overcommitted a node.
func (c *Comparison) Failures(name string) []string {
	var out []string
	for i := range c.Trials {
		t := &c.Trials[i]
		if t.Workload != name {
			continue
		}
		if t.Failure != "" {
			out = append(out, fmt.Sprintf("%s, round %d, failed: %s", t.Scheduler, t.Round, t.Failure))
		}
		if len(t.Oversold) > 0 {
			out = append(out, fmt.Sprintf("%s, round %d, oversold: %s", t.Scheduler, t.Round, strings.Join(t.Oversold[:min(3, len(t.Oversold))], "; ")))
		}
	}
	return out
}

// csv writes the single trials.
func (c *Comparison) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"workload", "scheduler", "round", "failure", "pods", "bound", "bind_seconds", "settle_seconds", "pods_per_second",
		"p50_seconds", "p90_seconds", "p95_seconds", "p99_seconds", "p99.9_seconds", "max_seconds", "gangs", "gang_p50_seconds", "gang_p99_seconds",
		"attempts", "events", "scheduler_cpu_seconds", "servers_cpu_seconds", "bench_cpu_seconds", "peak_rss_bytes", "steady_rss_bytes",
		"idle_share", "others_share", "oversold"}}
	num := func(f float64) string {
		if math.IsNaN(f) {
			return ""
		}
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
	sec := func(s Seconds) string { return num(float64(s)) }
	for i := range c.Trials {
		t := &c.Trials[i]
		gangs := LatencyOf(nil)
		if t.Gangs != nil {
			gangs = *t.Gangs
		}
		l, bound, settled, perSecond := t.Latency, t.BindSeconds, t.SettleSeconds, t.PodsPerSecond
		if t.Pods == 0 && t.Failure != "" { // nothing was measured, which is not 0 seconds
			l, bound, settled, perSecond = LatencyOf(nil), Seconds(math.NaN()), Seconds(math.NaN()), math.NaN()
		} else if l.Count == 0 {
			l = LatencyOf(nil)
		}
		rows = append(rows, []string{t.Workload, t.Scheduler, strconv.Itoa(t.Round), t.Failure, strconv.Itoa(t.Pods), strconv.Itoa(t.Bound),
			sec(bound), sec(settled), num(perSecond), sec(l.P50), sec(l.P90), sec(l.P95), sec(l.P99), sec(l.P999), sec(l.Max),
			strconv.Itoa(gangs.Count), sec(gangs.P50), sec(gangs.P99), strconv.FormatInt(t.Attempts, 10), strconv.FormatInt(t.Events, 10),
			num(t.SchedulerCPU), num(t.ServersCPU), num(t.BenchCPU), strconv.FormatInt(t.PeakRSS, 10), strconv.FormatInt(t.SteadyRSS, 10),
			num(t.Idle), num(t.Others), strconv.Itoa(len(t.Oversold))})
	}
	return out.WriteAll(rows)
}

// notApplicable is the value of a label that an item has not (scheduler_perf: perf-dash hides items that lack a label).
const notApplicable = "not applicable"

// perfItems is what perf-dash reads.
type perfItems struct {
	Version   string     `json:"version"`
	DataItems []DataItem `json:"dataItems"`
}

// perfdash gives the medians of all items, with the label Scheduler beside those of scheduler_perf, and the threshold
// as a bucket of the item that it is about.
func (c *Comparison) perfdash() perfItems {
	out := perfItems{Version: "v1", DataItems: []DataItem{}}
	labels := map[string]bool{} // label -> some item has it
	for i := range c.Rows {
		r := &c.Rows[i]
		for _, item := range r.Items {
			item.Data, item.Labels = maps.Clone(item.Data), maps.Clone(item.Labels)
			if item.Labels["Name"] == "" {
				item.Labels["Name"] = r.Workload
			}
			item.Labels["Scheduler"] = r.Scheduler
			if t := r.Threshold; t != nil && FindItem([]DataItem{item}, t.Metric, t.Labels) != nil {
				item.Data[t.Bucket+"Threshold"] = t.Want
			}
			for label := range item.Labels { // order: a set
				labels[label] = true
			}
			out.DataItems = append(out.DataItems, item)
		}
	}
	for _, item := range out.DataItems {
		for label := range labels { // order: into a map
			if _, has := item.Labels[label]; !has {
				item.Labels[label] = notApplicable
			}
		}
	}
	return out
}
