// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"io"
	"time"
)

// otherwise is what two runs have in common that differ in their instances.
func (r Result) otherwise() string { return fmt.Sprint(r.Decision, r.Strategy, r.API, r.Pods, r.Nodes) }

// Table writes results as a table of Markdown. The column "speed-up" compares with the run of one instance that is
// otherwise the same.
func Table(w io.Writer, results []Result) {
	fmt.Fprintln(w, "| mode | instances | decision | strategy, prefer | pods/s | speed-up | refused % | last tenth % "+
		"| overcommits | stranded | max − min at half | nodes used at half |")
	fmt.Fprintln(w, "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	alone := map[string]float64{} // what is otherwise the same -> pods/s of one instance
	for _, r := range results {
		if r.Instances == 1 {
			alone[r.otherwise()] = r.PerSecond()
		}
	}
	for _, r := range results {
		speedup := ""
		if base := alone[r.otherwise()]; base > 0 {
			speedup = fmt.Sprintf("%.2f", r.PerSecond()/base)
		}
		const row = "| %s | %d | %s | %s, %s | %.0f | %s | %s | %s | %d | %d | %d | %d |\n"
		fmt.Fprintf(w, row,
			r.Mode, r.Instances, short(r.Decision), r.Strategy, r.Prefer, r.PerSecond(), speedup,
			percent(r.Refused, r.Pods), percent(r.RefusedLate, r.Pods/10),
			r.Overcommits, r.Stranded, r.SpreadHalf, r.OpenHalf)
	}
}

func percent(n, of int) string {
	if of == 0 || n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.2g", 100*float64(n)/float64(of))
}

func short(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%g µs", float64(d)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%g ms", float64(d)/float64(time.Millisecond))
}
