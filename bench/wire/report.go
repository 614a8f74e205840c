// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// Report has all results.
type Report struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// Rate is pods created per second; 0 if all were created at once.
	Rate float64 `json:"rate"`
	// PodBytes is the size of a pod in protobuf.
	PodBytes int            `json:"podBytes"`
	Machine  report.Machine `json:"machine"`
	// Cores are those of the stand-in and of the scheduler. Siblings says that they are threads of one physical core.
	Cores    [2]int  `json:"cores"`
	Siblings bool    `json:"siblings"`
	Trials   []Trial `json:"trials"`
	Rows     []Row   `json:"rows"`
}

// Trial is one scheduler in one round.
type Trial struct {
	Scheduler string `json:"scheduler"`
	Round     int    `json:"round"`
	Pods      int    `json:"pods"`
	// CPU and StandinCPU are seconds of the two processes, user and system, from the first create until the last event.
	CPU        float64 `json:"cpuSeconds"`
	StandinCPU float64 `json:"standinCPUSeconds"`
	// Idle and StandinIdle are shares of that time in which the two cores did nothing, for these processes or others.
	Idle        float64 `json:"coreIdle"`
	StandinIdle float64 `json:"standinCoreIdle"`
	// Others is the share of the machine that other processes used.
	Others float64 `json:"othersShare"`
	served
}

// What limits the pods per second of a trial.
const (
	limitScheduler = "scheduler"
	limitStandin   = "stand-in"
	// limitNone is neither: a rate of creation, or a limit of writes in flight.
	limitNone = "neither"
)

// full is the idle share of a core below which its process has no time left. The rest is the resolution of the clock
// and the start of the run.
const full = 0.1

// perSecond counts a pod when its event is written, too.
func (t *Trial) perSecond() float64 { return float64(t.Binds) / t.seconds() }

func (t *Trial) bindsPerSecond() float64 { return float64(t.Binds) / t.BindSeconds }

// seconds is the time from the first create until the last bind and event.
func (t *Trial) seconds() float64 { return max(t.BindSeconds, t.EventSeconds) }

// perPod is microseconds of CPU for each pod.
func (t *Trial) perPod(cpu float64) float64 { return cpu / float64(t.Pods) * 1e6 }

// limit is the process whose core was full.
func (t *Trial) limit() string {
	switch {
	case min(t.Idle, t.StandinIdle) > full:
		return limitNone
	case t.StandinIdle < t.Idle:
		return limitStandin
	}
	return limitScheduler
}

func (t *Trial) text() string {
	return fmt.Sprintf("%.0f pods/s, %.0f µs of CPU per pod in the scheduler and %.0f in the stand-in, limit: %s, "+
		"others %.0f %%%s", t.perSecond(), t.perPod(t.CPU), t.perPod(t.StandinCPU), t.limit(), 100*t.Others,
		strings.Join(append([]string{""}, t.Problems...), "; "))
}

// Row is one scheduler over all rounds.
type Row struct {
	Scheduler string `json:"scheduler"`
	// PerSecond are pods bound and reported by an event, Binds are binds alone, which end earlier.
	PerSecond report.Spread `json:"podsPerSecond"`
	Binds     report.Spread `json:"bindsPerSecond"`
	// PerPod and StandinPerPod are microseconds of CPU.
	PerPod        report.Spread `json:"cpuPerPodMicroseconds"`
	StandinPerPod report.Spread `json:"standinCPUPerPodMicroseconds"`
	// Core and StandinCore are shares of a core.
	Core        report.Spread `json:"core"`
	StandinCore report.Spread `json:"standinCore"`
	Idle        report.Spread `json:"coreIdle"`
	StandinIdle report.Spread `json:"standinCoreIdle"`
	P50         report.Spread `json:"p50Seconds"`
	P99         report.Spread `json:"p99Seconds"`
	// Events are written events per pod.
	Events report.Spread `json:"eventsPerPod"`
	Others report.Spread `json:"othersShare"`
	// Limits are the limits of the trials, one for each.
	Limits []string `json:"limits"`
	// Problems counts the trials with problems.
	Problems int `json:"trialsWithProblems"`
}

func (r *Report) summarize(schedulers []string) {
	for _, name := range schedulers {
		row := Row{Scheduler: name}
		over := func(f func(t *Trial) float64) report.Spread {
			var values []float64
			for i := range r.Trials {
				if t := &r.Trials[i]; t.Scheduler == name {
					values = append(values, f(t))
				}
			}
			return report.SpreadOf(values)
		}
		row.PerSecond = over((*Trial).perSecond)
		row.Binds = over((*Trial).bindsPerSecond)
		row.Idle = over(func(t *Trial) float64 { return t.Idle })
		row.StandinIdle = over(func(t *Trial) float64 { return t.StandinIdle })
		row.PerPod = over(func(t *Trial) float64 { return t.perPod(t.CPU) })
		row.StandinPerPod = over(func(t *Trial) float64 { return t.perPod(t.StandinCPU) })
		row.Core = over(func(t *Trial) float64 { return t.CPU / t.seconds() })
		row.StandinCore = over(func(t *Trial) float64 { return t.StandinCPU / t.seconds() })
		row.P50 = over(func(t *Trial) float64 { return float64(t.P50) })
		row.P99 = over(func(t *Trial) float64 { return float64(t.P99) })
		row.Events = over(func(t *Trial) float64 { return float64(total(t.Events)) / float64(t.Pods) })
		row.Others = over(func(t *Trial) float64 { return t.Others })
		for i := range r.Trials {
			if t := &r.Trials[i]; t.Scheduler == name {
				row.Limits = append(row.Limits, t.limit())
				if len(t.Problems) > 0 {
					row.Problems++
				}
			}
		}
		r.Rows = append(r.Rows, row)
	}
}

func (r *Report) write(w io.Writer, format string) error {
	if format == "json" {
		return report.WriteJSON(w, r)
	}
	created := "all created at once"
	if r.Rate > 0 {
		created = fmt.Sprintf("%g created per second", r.Rate)
	}
	physical := ""
	if r.Siblings {
		physical = ", threads of one physical core"
	}
	fmt.Fprintf(w, "%d pods of %d bytes on %d nodes, %s\n", r.Pods, r.PodBytes, r.Nodes, created)
	fmt.Fprintf(w, "stand-in of the API server on core %d, scheduler on core %d%s\n", r.Cores[0], r.Cores[1], physical)
	fmt.Fprintln(w, "A bound on the scheduler, not the throughput of a cluster. Medians (min..max); CPU in µs per pod,")
	fmt.Fprintln(w, "IDLE of its core; PODS/S until the last event, BINDS/S until the last bind.")
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "SCHEDULER\tPODS/S\tBINDS/S\tCPU\tIDLE\tSTAND-IN CPU\tIDLE\tP50\tP99\tEVENTS/POD\t"+
		"OTHERS\tLIMIT\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%.0f%%\t%s\t%.0f%%\t%.3fs\t%.3fs\t%.2f\t%.0f%%\t%s\t\n", row.Scheduler,
			row.PerSecond.Text("%.0f"), row.Binds.Median, row.PerPod.Text("%.0f"), 100*row.Idle.Median,
			row.StandinPerPod.Text("%.0f"), 100*row.StandinIdle.Median, row.P50.Median, row.P99.Median,
			row.Events.Median, 100*row.Others.Median,
			strings.Join(compact(row.Limits), ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Trials {
		for _, problem := range r.Trials[i].Problems {
			fmt.Fprintf(w, "%s, round %d: %s\n", r.Trials[i].Scheduler, r.Trials[i].Round, problem)
		}
	}
	return nil
}

// compact returns each limit once.
func compact(limits []string) []string {
	var out []string
	for _, l := range []string{limitScheduler, limitStandin, limitNone} {
		for _, of := range limits {
			if of == l {
				out = append(out, l)
				break
			}
		}
	}
	return out
}

// verdict is an error if a scheduler left problems.
func (r *Report) verdict() error {
	n := 0
	for _, row := range r.Rows {
		n += row.Problems
	}
	if n > 0 {
		return fmt.Errorf("%d of %d runs left problems", n, len(r.Trials))
	}
	return nil
}
