// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// tolerated is how much of its throughput a scheduler may lose from one report to the other without a word. What the
// same program does on the same machine differs by that much from hour to hour, also when its rounds agree with each
// other.
const tolerated = 0.05

// Change is what became of one row from a report to the next.
type Change struct {
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	// Figure is what was compared: pods/s of null's where both reports have a null that counts, else plain pods/s,
	// which the machine moves as well.
	Figure string `json:"figure"`
	// Speed is the figure of the second report divided by that of the first; nil when one of them has none. P99 and
	// CPU are divided likewise: above 1 the second needs more.
	Speed *Interval `json:"speed,omitempty"`
	P99   *Interval `json:"p99,omitempty"`
	CPU   *Interval `json:"cpu,omitempty"`
	// Lost is set if the whole interval of Speed lies below what is tolerated; Missed, if the second missed its
	// threshold.
	Lost   bool `json:"lost"`
	Missed bool `json:"missed"`
}

// figuresOf are the throughputs of a row's rounds, and whether they are relative to null.
func (c *Comparison) figuresOf(r *WorkloadRow) (values []float64, ofNull bool) {
	trials := c.TrialsOf(r.Workload, r.Scheduler)
	if !r.Counts || r.Scheduler == Null {
		return Figures(trials, func(t *Trial) float64 { return t.PodsPerSecond }), false
	}
	for i := range trials {
		for _, null := range c.TrialsOf(r.Workload, Null) {
			if null.Round == trials[i].Round && null.Good() && trials[i].Good() && null.PodsPerSecond > 0 {
				values = append(values, trials[i].PodsPerSecond/null.PodsPerSecond)
			}
		}
	}
	return values, true
}

// Compare compares the rows that both reports have, in the order of the second.
func Compare(a, b *Comparison) []Change {
	var out []Change
	for i := range b.Rows {
		now := &b.Rows[i]
		change := Change{Workload: now.Workload, Scheduler: now.Scheduler, Figure: "pods/s", Missed: now.Threshold != nil && now.Threshold.Missed}
		before := a.Row(now.Workload, now.Scheduler)
		if before == nil {
			if change.Missed {
				out = append(out, change)
			}
			continue
		}
		was, wasOfNull := a.figuresOf(before)
		is, isOfNull := b.figuresOf(now)
		if wasOfNull && isOfNull {
			change.Figure = "of null"
		} else {
			was, is = plain(a, before), plain(b, now)
		}
		change.Speed = free(is, was)
		change.Lost = change.Speed != nil && change.Speed.Known && change.Speed.High < 1-tolerated
		of := func(f func(*Trial) float64) *Interval {
			return free(Figures(b.TrialsOf(now.Workload, now.Scheduler), f), Figures(a.TrialsOf(now.Workload, now.Scheduler), f))
		}
		change.P99 = of(func(t *Trial) float64 { return float64(t.Latency.P99) })
		change.CPU = of(func(t *Trial) float64 { return t.SchedulerCPU })
		// A scheduler that binds nothing any more has no figures to lose.
		change.Lost = change.Lost || before.Rounds > 0 && now.Rounds == 0
		out = append(out, change)
	}
	return out
}

func plain(c *Comparison, r *WorkloadRow) []float64 {
	return Figures(c.TrialsOf(r.Workload, r.Scheduler), func(t *Trial) float64 { return t.PodsPerSecond })
}

// free is the ratio, or nil when there is none that is finite.
func free(of, to []float64) *Interval {
	m := Median(to)
	if len(of) == 0 || !(m > 0) || m*0 != 0 || Median(of)*0 != 0 {
		return nil
	}
	r := freeRatio(of, to)
	return &r
}

func (c *Comparison) Row(workload, scheduler string) *WorkloadRow {
	for i := range c.Rows {
		if c.Rows[i].Workload == workload && c.Rows[i].Scheduler == scheduler {
			return &c.Rows[i]
		}
	}
	return nil
}

func Read(path string) (*Comparison, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c Comparison
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%s: not a report of bench -o json: %w", path, err)
	}
	if len(c.Rows) == 0 {
		return nil, fmt.Errorf("%s: a report without rows", path)
	}
	return &c, nil
}

// verdict of a change.
func (c *Change) verdict() string {
	switch {
	case c.Lost && c.Missed:
		return "LOST, threshold missed"
	case c.Lost:
		return "LOST"
	case c.Missed:
		return "threshold missed"
	case c.Speed == nil:
		return "not measured in both"
	case !c.Speed.Known:
		return fmt.Sprintf("fewer than %d rounds", fewest)
	case c.Speed.Low > 1+tolerated:
		return "gained"
	default:
		return "no difference"
	}
}

func (i *Interval) orDash() string {
	if i == nil {
		return "-"
	}
	return i.text()
}

func WriteChanges(w io.Writer, changes []Change) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tSCHEDULER\tFIGURE\tSPEED\tP99\tCPU\tVERDICT")
	for i := range changes {
		c := &changes[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Workload, c.Scheduler, c.Figure, c.Speed.orDash(), c.P99.orDash(), c.CPU.orDash(), c.verdict())
	}
	return t.Flush()
}
