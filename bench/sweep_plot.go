// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/scaling"
)

// The sizes of the plot of a sweep, in pixels: the area of the curves and its margins.
const (
	sweepWidth, sweepHeight = 560, 360
	sweepLeft, sweepTop     = 80, 46
	sweepRight, sweepBelow  = 230, 56
)

var sweepColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

// Plot draws the throughput by the value of the setting, on a logarithmic axis, as an SVG: a dot for each run, a line
// through the medians, and the USL, or else Amdahl's law, as a dashed line where it was fitted.
func (s *Sweep) Plot() string {
	var values []int
	highest := 0.0
	for _, p := range s.Points {
		if !slices.Contains(values, p.Value) {
			values = append(values, p.Value)
		}
		for _, x := range p.Each {
			highest = max(highest, x)
		}
	}
	slices.Sort(values)
	step := math.Pow(10, math.Floor(math.Log10(max(highest, 1))))
	if highest/step < 3 {
		step /= 2
	}
	top := step * math.Ceil(highest/step)
	low, high := math.Log2(float64(values[0])), math.Log2(float64(values[len(values)-1]))
	x := func(v float64) float64 {
		if low == high {
			return sweepLeft + sweepWidth/2
		}
		return sweepLeft + (math.Log2(v)-low)/(high-low)*sweepWidth
	}
	y := func(v float64) float64 { return sweepTop + sweepHeight - v/top*sweepHeight }
	var b strings.Builder
	s.frame(&b, values, step, top, x, y)
	for i, f := range s.Fits {
		colour := sweepColours[i%len(sweepColours)]
		s.medians(&b, f.Scheduler, colour, x, y)
		law := s.law(&f)
		if law != nil {
			var path strings.Builder
			for k := range 65 {
				v := math.Exp2(low + (high-low)*float64(k)/64)
				fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[k == 0], x(v), y(law.At(v)))
			}
			fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-dasharray="6 4"/>`+"\n", path.String(), colour)
		}
		name := f.Scheduler
		if law != nil {
			name += ", dashed: " + string(law.Law)
		}
		fmt.Fprintf(&b, `<path d="M%d %dh24" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`+"\n",
			sweepLeft+sweepWidth+16, sweepTop+14+20*i, colour, sweepLeft+sweepWidth+46, sweepTop+18+20*i,
			html.EscapeString(name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// law returns the law to draw; nil if none was fitted.
func (s *Sweep) law(f *SweepFits) *scaling.Fit {
	switch {
	case f.USL.Why == "":
		return &f.USL
	case f.Amdahl.Why == "":
		return &f.Amdahl
	}
	return nil
}

func (s *Sweep) frame(b *strings.Builder, values []int, step, top float64, x, y func(float64) float64) {
	width, height := sweepLeft+sweepWidth+sweepRight, sweepTop+sweepHeight+sweepBelow
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="15">Pods bound per second: %s</text>`+"\n", sweepLeft,
		html.EscapeString(s.Workload))
	for v := 0.0; v <= top*1.001; v += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			sweepLeft, y(v), sweepLeft+sweepWidth, sweepLeft-8, y(v)+4, v)
	}
	for _, v := range values {
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+
			"\n", x(float64(v)), sweepTop, sweepTop+sweepHeight, x(float64(v)), sweepTop+sweepHeight+20, v)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", sweepLeft+sweepWidth/2,
		sweepTop+sweepHeight+42, html.EscapeString(s.Setting))
}

// medians draws the runs and the line through the medians of a scheduler.
func (s *Sweep) medians(b *strings.Builder, scheduler, colour string, x, y func(float64) float64) {
	var line, dots strings.Builder
	for _, p := range s.Points {
		if p.Scheduler != scheduler {
			continue
		}
		command := "L"
		if line.Len() == 0 {
			command = "M"
		}
		at := x(float64(p.Value))
		fmt.Fprintf(&line, "%s%.1f %.1f", command, at, y(p.PodsPerSecond.Median))
		for _, each := range p.Each {
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %d: %.0f pods/s</title>`+
				"</circle>\n", at, y(each), colour, html.EscapeString(scheduler), p.Value, each)
		}
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n%s", line.String(), colour,
		dots.String())
}
