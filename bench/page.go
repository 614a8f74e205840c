// SPDX-License-Identifier: Apache-2.0

package bench

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// The size of a plot in its own units, and the room for its axes.
const (
	plotWidth, plotHeight           = 560, 220
	plotLeft, plotBottom, plotTop   = 64, 28, 10
	plotInnerWidth, plotInnerHeight = plotWidth - plotLeft - 10, plotHeight - plotBottom - plotTop
	plotTicks                       = 4
	colors                          = 6 // classes s0 to s5 of the page
)

// line is one scheduler in a plot.
type line struct {
	Name   string
	Class  string
	Points string // of an SVG polyline
}

// tick is a mark of an axis.
type tick struct {
	At   float64
	Text string
}

// plot is a figure over time.
type plot struct {
	Title, Unit            string
	Width, Height          int
	Left, Right, Top, Base int
	Lines                  []line
	X, Y                   []tick
}

// section is one workload of the page.
type section struct {
	Name    string
	Pods    int
	Rows    [][]string
	Remarks []string
	Plots   []plot
}

// html writes one page that needs nothing else: no script, no network.
func (c *Comparison) html(w io.Writer) error {
	type head struct{ Name, Meaning string }
	view := struct {
		Headline string
		Heads    []head
		Sections []section
	}{Headline: c.headline()}
	for _, col := range columns {
		view.Heads = append(view.Heads, head{col.head, col.meaning})
	}
	for _, name := range c.workloads() {
		rows := c.rowsOf(name)
		s := section{Name: name, Pods: podsOf(rows), Remarks: append(remarks(rows), c.failures(name)...), Plots: c.plots(name, rows)}
		for i := range rows {
			var cells []string
			for _, col := range columns {
				cells = append(cells, col.cell(&rows[i]))
			}
			s.Rows = append(s.Rows, cells)
		}
		view.Sections = append(view.Sections, s)
	}
	return page.Execute(w, view)
}

// typical is the trial whose throughput is the median one, the lower of two; nil without any that is good.
func typical(trials []Trial) *Trial {
	good := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return !t.good() || len(t.Timeline) == 0 })
	if len(good) == 0 {
		return nil
	}
	slices.SortStableFunc(good, func(a, b Trial) int {
		switch {
		case a.PodsPerSecond < b.PodsPerSecond:
			return -1
		case a.PodsPerSecond > b.PodsPerSecond:
			return 1
		}
		return 0
	})
	return &good[(len(good)-1)/2]
}

// plots shows the typical round of each scheduler over time.
func (c *Comparison) plots(name string, rows []WorkloadRow) []plot {
	var trials []*Trial
	for _, r := range rows {
		if t := typical(c.trialsOf(name, r.Scheduler)); t != nil {
			trials = append(trials, t)
		}
	}
	if len(trials) == 0 {
		return nil
	}
	return []plot{
		newPlot("Pods bound per second", "pods/s", trials, func(m Moment) float64 { return float64(m.Bound) }),
		newPlot("Slowest pod of those created in a second", "s", trials, func(m Moment) float64 { return float64(m.Slowest) }),
		newPlot("Memory of the scheduler", "MiB", trials, func(m Moment) float64 {
			if m.RSS == 0 {
				return math.NaN()
			}
			return mebi(m.RSS)
		}),
		newPlot("CPU of the scheduler", "CPUs", trials, func(m Moment) float64 { return m.CPU }),
	}
}

// newPlot draws one figure of all trials; what was not measured, or is infinite, is left out.
func newPlot(title, unit string, trials []*Trial, figure func(Moment) float64) plot {
	p := plot{Title: title, Unit: unit, Width: plotWidth, Height: plotHeight, Left: plotLeft, Right: plotLeft + plotInnerWidth, Top: plotTop,
		Base: plotTop + plotInnerHeight}
	long, high := 1.0, 0.0
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, t := range trials {
		for _, m := range t.Timeline {
			long = max(long, float64(m.At))
			if v := figure(m); finite(v) {
				high = max(high, v)
			}
		}
	}
	high = roundUp(high)
	x := func(v float64) float64 { return plotLeft + v/long*plotInnerWidth }
	y := func(v float64) float64 { return plotTop + (1-v/high)*plotInnerHeight }
	for i, t := range trials {
		var points strings.Builder
		for _, m := range t.Timeline {
			if v := figure(m); finite(v) {
				fmt.Fprintf(&points, "%.1f,%.1f ", x(float64(m.At)), y(v))
			}
		}
		p.Lines = append(p.Lines, line{Name: t.Scheduler, Class: fmt.Sprintf("s%d", i%colors), Points: strings.TrimSpace(points.String())})
	}
	for i := range plotTicks + 1 {
		share := float64(i) / plotTicks
		p.X = append(p.X, tick{x(long * share), fmt.Sprintf("%.3gs", long*share)})
		p.Y = append(p.Y, tick{y(high * share), fmt.Sprintf("%.3g", high*share)})
	}
	return p
}

// roundUp is the next 1, 2, 4 or 8 times a power of ten, so that an axis has marks that can be read.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 4, 8} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
