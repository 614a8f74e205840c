// SPDX-License-Identifier: Apache-2.0

package report

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

var page = template.Must(template.New("page").Funcs(template.FuncMap{"pair": marked}).Parse(pageText))

// markedBar is a bar with the marks that it has; a goal of 0 is none.
type markedBar struct {
	Bar       *bar
	Goal, One float64
}

func marked(b *bar, goal, one float64) markedBar { return markedBar{b, goal, one} }

// The size of a plot in its own units, and the space for its axes.
const (
	plotWidth, plotHeight           = 440, 230
	plotLeft, plotBottom, plotTop   = 54, 44, 10
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
	Title, Unit, Across    string
	Width, Height          int
	Left, Right, Top, Base int
	Lines                  []line // none: nothing was measured
	X, Y                   []tick
}

// section is one workload of the page.
type section struct {
	ID, Name string
	About    string
	Heads    []head
	Rows     [][]string
	Remarks  []string
	Plots    []plot
	Keys     []line // what the lines of all plots are
}

type head struct{ Name, Meaning string }

// bar shows a ratio with its interval between 0 and barMost.
type bar struct {
	Text             string
	Width, Low, High float64 // in units of the plot
	Counts, Good     bool
}

// overviewRow is a workload in the table at the top.
type overviewRow struct {
	ID, Name, Counts string
	Cells            []string // pods/s of the schedulers
	OfNull, OfOther  *bar
}

// A bar is barWidth wide and stands for ratios up to barMost.
const (
	barWidth = 150
	barMost  = 1.5
)

func barOf(i *Interval, counts bool, goal float64) *bar {
	if i == nil || !finite(i.Estimate) {
		return nil
	}
	at := func(v float64) float64 { return min(max(v, 0), barMost) / barMost * barWidth }
	return &bar{Text: i.text(), Width: at(i.Estimate), Low: at(i.Low), High: at(i.High), Counts: counts, Good: i.Estimate >= goal}
}

// html writes one page that needs nothing else: no script, no network.
func (c *Comparison) html(w io.Writer) error {
	view := struct {
		Headline, Machine string
		Schedulers        []string
		Overview          []overviewRow
		Heads             []head
		Sections          []section
		Summary           []string
		Goal, One         float64 // where a bar reaches what kumiki is to reach, and 1
	}{Headline: c.headline(), Schedulers: c.schedulers(), Goal: goalOfNull / barMost * barWidth, One: 1 / barMost * barWidth}
	if c.Machine != (Machine{}) {
		view.Machine = c.Machine.text() + ", " + c.Go
	}
	for _, line := range c.summary() {
		view.Summary = append(view.Summary, strings.TrimPrefix(line, "- "))
	}
	for _, col := range columns {
		view.Heads = append(view.Heads, head{col.head, col.meaning})
	}
	for i, name := range c.workloads() {
		id := fmt.Sprintf("w%d", i)
		view.Overview = append(view.Overview, c.overviewOf(id, name, view.Schedulers))
		view.Sections = append(view.Sections, c.sectionOf(id, name))
	}
	return page.Execute(w, view)
}

func (c *Comparison) overviewOf(id, name string, schedulers []string) overviewRow {
	row := overviewRow{ID: id, Name: name, Counts: "yes"}
	for _, s := range schedulers {
		cell := "-"
		if r := c.Row(name, s); r != nil {
			cell = number("%.0f", r.PodsPerSecond.Median)
		}
		row.Cells = append(row.Cells, cell)
	}
	if r := c.Row(name, Kumiki); r != nil {
		row.OfNull, row.OfOther = barOf(r.OfNull, r.Counts, goalOfNull), barOf(r.OfUpstream, true, 1)
		if !r.Counts {
			row.Counts = r.Why
		}
	}
	return row
}

func (c *Comparison) sectionOf(id, name string) section {
	rows := c.rowsOf(name)
	s := section{ID: id, Name: name, Remarks: append(remarks(rows), c.Failures(name)...), Plots: c.plots(name, rows)}
	for _, p := range s.Plots {
		for _, l := range p.Lines {
			if !slices.ContainsFunc(s.Keys, func(k line) bool { return k.Name == l.Name }) {
				s.Keys = append(s.Keys, line{Name: l.Name, Class: l.Class})
			}
		}
	}
	slices.SortFunc(s.Keys, func(a, b line) int { return strings.Compare(a.Class, b.Class) })
	s.About = fmt.Sprintf("%d pods measured", podsOf(rows))
	for _, size := range c.Workloads {
		if size.Name != name {
			continue
		}
		s.About = fmt.Sprintf("%d nodes, %d pods, %d of them measured", size.Nodes, size.Pods, podsOf(rows))
		if size.Upstream != "" {
			s.About += "; like upstream's " + size.Upstream
		}
		if size.Seed != nil {
			s.About += "; seed " + size.SeedText()
		}
	}
	s.Rows = make([][]string, len(rows))
	for _, col := range columns {
		filled := false // some row has a value
		for i := range rows {
			cell := col.cell(&rows[i])
			filled = filled || cell != "-"
		}
		if !filled {
			continue
		}
		s.Heads = append(s.Heads, head{col.head, col.meaning})
		for i := range rows {
			s.Rows[i] = append(s.Rows[i], col.cell(&rows[i]))
		}
	}
	return s
}

// typical is the trial whose throughput is the median one, the lower of two; nil without any that is good.
func typical(trials []Trial) *Trial {
	good := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return !t.Good() || len(t.Timeline) == 0 })
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

// plots shows the typical round of each scheduler: over time, and how its latencies are distributed. A plot in which
// nothing was measured is left out.
func (c *Comparison) plots(name string, rows []WorkloadRow) []plot {
	var trials []*Trial
	for _, r := range rows {
		if t := typical(c.TrialsOf(name, r.Scheduler)); t != nil {
			trials = append(trials, t)
		}
	}
	if len(trials) == 0 {
		return nil
	}
	all := []plot{
		newPlot("Pods bound in each second", "pods/s", trials, func(m Moment) float64 { return float64(m.Bound) }),
		latencyPlot(trials),
		newPlot("Slowest pod of those created in a second", "s", trials, func(m Moment) float64 { return float64(m.Slowest) }),
		newPlot("CPU of the scheduler", "CPUs", trials, func(m Moment) float64 {
			if m.RSS == 0 {
				return math.NaN()
			}
			return m.CPU
		}),
		newPlot("Memory of the scheduler", "MiB", trials, func(m Moment) float64 {
			if m.RSS == 0 {
				return math.NaN()
			}
			return Mebi(m.RSS)
		}),
	}
	return slices.DeleteFunc(all, func(p plot) bool { return len(p.Lines) == 0 })
}

// classOf is the same for a scheduler in all plots of a workload.
func classOf(i int) string { return fmt.Sprintf("s%d", i%colors) }

func frame(title, unit string) plot {
	return plot{Title: title, Unit: unit, Width: plotWidth, Height: plotHeight, Left: plotLeft, Right: plotLeft + plotInnerWidth, Top: plotTop,
		Base: plotTop + plotInnerHeight}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// newPlot draws one figure of all trials over time; what was not measured, or is infinite, is left out.
func newPlot(title, unit string, trials []*Trial, figure func(Moment) float64) plot {
	p := frame(title, unit)
	p.Across = "seconds"
	long, high := 1.0, 0.0
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
		zero := true
		for _, m := range t.Timeline {
			if v := figure(m); finite(v) {
				zero = zero && v == 0
				fmt.Fprintf(&points, "%.1f,%.1f ", x(float64(m.At)), y(v))
			}
		}
		if !zero { // a scheduler that did nothing has no line
			p.Lines = append(p.Lines, line{Name: t.Scheduler, Class: classOf(i), Points: drawn(points.String())})
		}
	}
	step := roundUp(long / 6)
	for at := 0.0; at <= long; at += step {
		p.X = append(p.X, tick{x(at), fmt.Sprintf("%.3g", at)})
	}
	for i := range plotTicks + 1 {
		share := float64(i) / plotTicks
		p.Y = append(p.Y, tick{y(high * share), fmt.Sprintf("%.3g", high*share)})
	}
	return p
}

// drawn are the points of a line; one point alone stands there twice, which makes a dot of it.
func drawn(points string) string {
	points = strings.TrimSpace(points)
	if !strings.Contains(points, " ") && points != "" {
		return points + " " + points
	}
	return points
}

// latencyPlot has the latency over the share of pods that took no longer. Both axes are logarithmic, that of the
// shares towards 1: from 90 % to 99 % is as far as from 99 % to 99.9 %, and no pod in a thousand hides.
func latencyPlot(trials []*Trial) plot {
	p := frame("Latency by share of pods", "s")
	p.Across = "share of pods that took no longer"
	low, high, nines := math.Inf(1), 0.0, 1.0
	for _, t := range trials {
		for _, q := range t.Spectrum {
			if v := float64(q.Seconds); finite(v) && v > 0 {
				low, high = min(low, v), max(high, v)
			}
			if q.Share < 1 {
				nines = max(nines, -math.Log10(1-q.Share))
			}
		}
	}
	if high == 0 {
		return p
	}
	bottom, top := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	top = max(top, bottom+1)
	long := nines + 0.3 // space for the slowest pod behind the last share
	x := func(share float64) float64 { return plotLeft + min(-math.Log10(1-share), long)/long*plotInnerWidth }
	y := func(v float64) float64 { return plotTop + (top-math.Log10(v))/(top-bottom)*plotInnerHeight }
	for i, t := range trials {
		var points strings.Builder
		for _, q := range t.Spectrum {
			if v := float64(q.Seconds); finite(v) && v > 0 {
				fmt.Fprintf(&points, "%.1f,%.1f ", x(q.Share), y(v))
			}
		}
		if points.Len() > 0 {
			p.Lines = append(p.Lines, line{Name: t.Scheduler, Class: classOf(i), Points: drawn(points.String())})
		}
	}
	for _, share := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		if -math.Log10(1-share) <= nines {
			p.X = append(p.X, tick{x(share), fmt.Sprintf("%.4g %%", 100*share)})
		}
	}
	p.X = append(p.X, tick{x(1), "max"})
	for power := bottom; power <= top; power++ {
		p.Y = append(p.Y, tick{y(math.Pow(10, power)), Seconds(math.Pow(10, power)).short()})
	}
	return p
}

// short is a time for an axis.
func (s Seconds) short() string {
	if s < 1 {
		return fmt.Sprintf("%.3g ms", 1000*float64(s))
	}
	return fmt.Sprintf("%.3g s", float64(s))
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
