// SPDX-License-Identifier: Apache-2.0

// Package draw owns the images of the dashboard in the documents: it draws panels as SVG, time series with axes and a
// legend, and single numbers. It is not Grafana, which cannot be built from the modules of the registries.
package draw

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Line is one series of a panel. Values are at equal distances over the time of the image; NaN is a gap.
type Line struct {
	Name   string
	Values []float64
}

// Panel is one panel with its data.
type Panel struct {
	Title string
	Unit  string // of Grafana: s, short, ops, none, bytes
	Lines []Line
	// Stacked puts the lines on top of each other. Single shows the last value as a number.
	Stacked, Single bool
	// Texts replace values of a Single panel.
	Texts map[float64]string
	// X, Y, W and H are in units of Grafana's grid: 24 columns.
	X, Y, W, H int
}

const (
	column, row = 50, 34 // pixels of a unit of the grid
	gap         = 4
)

// colours of lines, in order; readable on white and for colour-blind readers (Okabe and Ito).
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a7a00", "#555555"}

// SVG draws panels at their places. seconds is the time from the first to the last value.
func SVG(panels []Panel, seconds float64) []byte {
	top, bottom := math.MaxInt, 0
	for _, p := range panels {
		top, bottom = min(top, p.Y), max(bottom, p.Y+p.H)
	}
	var b strings.Builder
	width, height := 24*column, (bottom-top)*row
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `,
		width, height, width, height)
	b.WriteString(`font-family="Helvetica,Arial,sans-serif" font-size="10" fill="#555">` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#f4f5f5"/>`+"\n", width, height)
	for _, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", p.X*column+gap, (p.Y-top)*row+gap)
		w, h := float64(p.W*column-2*gap), float64(p.H*row-2*gap)
		fmt.Fprintf(&b, `<rect width="%g" height="%g" rx="2" fill="#fff" stroke="#dcdcdc"/>`+"\n", w, h)
		fmt.Fprintf(&b, `<text x="8" y="17" font-size="12" font-weight="600" fill="#222">%s</text>`+"\n",
			html.EscapeString(p.Title))
		if p.Single {
			p.number(&b, w, h)
		} else {
			p.plot(&b, w, h, seconds)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (p *Panel) number(b *strings.Builder, w, h float64) {
	text := "no data"
	if len(p.Lines) > 0 {
		v := p.Lines[0].Values[len(p.Lines[0].Values)-1]
		text = Format(v, p.Unit)
		if named := p.Texts[v]; named != "" {
			text = named
		}
	}
	fmt.Fprintf(b, `<text x="%g" y="%g" font-size="28" text-anchor="middle" fill="#0a7a4a">%s</text>`+"\n",
		w/2, h/2+18, html.EscapeString(text))
}

// The legend has at most legendEntries lines, legendColumns beside each other, in rows of legendRow pixels.
const legendEntries, legendColumns, legendRow = 9, 3, 13.0

// axes is where a panel draws: the edges in pixels, and the value of the upper one.
type axes struct{ left, right, upper, lower, most float64 }

func (a axes) y(v float64) float64 { return a.lower - (a.lower-a.upper)*v/a.most }

func (p *Panel) plot(b *strings.Builder, w, h, seconds float64) {
	shown := p.Lines[:min(len(p.Lines), legendEntries)]
	legendRows := (len(shown) + legendColumns - 1) / legendColumns
	a := axes{left: 48, right: w - 10, upper: 30, lower: h - 22 - legendRow*float64(legendRows)}
	drawn := p.stack()
	a.draw(b, drawn, p.Unit, seconds)
	for i := len(drawn) - 1; i >= 0; i-- {
		if !p.Stacked || p.Lines[i].isPositive() {
			p.line(b, drawn[i], colours[i%len(colours)], a)
		}
	}
	for i, l := range shown {
		x := a.left + float64(i%legendColumns)*(a.right-a.left)/legendColumns
		y := h - 8 - legendRow*float64(legendRows-1-i/legendColumns)
		fmt.Fprintf(b, `<path d="M%.1f %.1fh10" stroke="%s" stroke-width="2"/>`, x, y-3, colours[i%len(colours)])
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+13, y, html.EscapeString(l.Name))
	}
}

// draw sets the upper value and draws both axes.
func (a *axes) draw(b *strings.Builder, lines []Line, unit string, seconds float64) {
	highest := 0.0
	for _, l := range lines {
		for _, v := range l.Values {
			if !math.IsNaN(v) {
				highest = max(highest, v)
			}
		}
	}
	step := tick(highest)
	a.most = step * math.Max(1, math.Ceil(highest/step-1e-9))
	for v := 0.0; v <= a.most*1.001; v += step {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#e8e8e8"/>`, a.left, a.y(v), a.right)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", a.left-4, a.y(v)+3, Format(v, unit))
	}
	for i, anchor := range []string{"start", "middle", "end"} {
		at := float64(i) / 2
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
			a.left+at*(a.right-a.left), a.lower+13, anchor, Format(at*seconds, "s"))
	}
	if len(lines) == 0 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="12" text-anchor="middle">no data</text>`+"\n",
			(a.left+a.right)/2, (a.upper+a.lower)/2)
	}
}

// isPositive reports whether a stack is higher with the line.
func (l Line) isPositive() bool {
	return slices.ContainsFunc(l.Values, func(v float64) bool { return v > 0 })
}

// stack returns the lines as they are drawn.
func (p *Panel) stack() []Line {
	if !p.Stacked {
		return p.Lines
	}
	out := make([]Line, len(p.Lines))
	for i, l := range p.Lines {
		out[i] = Line{l.Name, make([]float64, len(l.Values))}
		for k, v := range l.Values {
			if math.IsNaN(v) {
				v = 0
			}
			if i > 0 {
				v += out[i-1].Values[k]
			}
			out[i].Values[k] = v
		}
	}
	return out
}

func (p *Panel) line(b *strings.Builder, l Line, colour string, a axes) {
	var path strings.Builder
	command := 'M'
	for k, v := range l.Values {
		if math.IsNaN(v) {
			command = 'M'
			continue
		}
		// A point on a horizontal line is left out, which makes most files half as large.
		if command == 'L' && k+1 < len(l.Values) && l.Values[k-1] == v && l.Values[k+1] == v {
			continue
		}
		x := a.left + (a.right-a.left)*float64(k)/float64(max(1, len(l.Values)-1))
		fmt.Fprintf(&path, "%c%.1f %.1f", command, x, a.y(v))
		command = 'L'
	}
	if path.Len() == 0 {
		return
	}
	if p.Stacked {
		fmt.Fprintf(b, `<path d="%sL%.1f %.1fL%.1f %.1fZ" fill="%s" fill-opacity=".25"/>`+"\n",
			path.String(), a.right, a.y(0), a.left, a.y(0), colour)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(), colour)
}

// tick returns a distance of about three lines that is 1, 2 or 5 times a power of ten.
func tick(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/3)))
	for _, f := range []float64{1, 2, 5} {
		if highest/(f*power) <= 4 {
			return f * power
		}
	}
	return 10 * power
}

// Format writes a value with its unit.
func Format(v float64, unit string) string {
	trim := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.3g", v), ".0") }
	switch {
	case math.IsNaN(v):
		return "no data"
	case unit == "s" && v > 0 && v < 0.001:
		return trim(v*1e6) + " µs"
	case unit == "s" && v > 0 && v < 1:
		return trim(v*1e3) + " ms"
	case unit == "s" && v >= 120:
		return trim(v/60) + " min"
	case unit == "s":
		return trim(v) + " s"
	case unit == "bytes":
		return trim(v/(1<<20)) + " MiB"
	case unit == "ops":
		return trim(v) + "/s"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return trim(v)
}
