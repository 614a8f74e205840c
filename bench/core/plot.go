// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// The sizes of the plot, in pixels: the area of the curves, its margins, and the list of names beside it.
const (
	plotWidth, plotHeight = 620, 420
	plotLeft, plotTop     = 80, 46
	plotNames             = 330
	plotBelow             = 56
)

// colours of families, in turn.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a07800", "#56b4e9", "#6a3d9a", "#b15928"}

// dashes of contenders, in turn; the first is drawn through.
var dashes = []string{"", "7 5", "2 4"}

// scale maps values to pixels by their logarithm, so that a curve of a cost that grows with the nodes has the slope 1.
type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	return s.from + (math.Log10(v)-math.Log10(s.low))/(math.Log10(s.high)-math.Log10(s.low))*(s.to-s.from)
}

// plot draws the cost of a pod by the number of nodes: a colour for each family, a line style for each contender.
func (r *Report) plot(w io.Writer) error {
	if len(r.Rows) == 0 {
		return fmt.Errorf("nothing was measured, so nothing can be drawn")
	}
	var families []string
	var sizes []int
	low, high := math.Inf(1), 0.0
	for _, row := range r.Rows {
		if !slices.Contains(families, row.Family) {
			families = append(families, row.Family)
		}
		if !slices.Contains(sizes, row.Nodes) {
			sizes = append(sizes, row.Nodes)
		}
		us := row.CPUNanoseconds.Median / 1000
		low, high = min(low, us), max(high, us)
	}
	slices.Sort(sizes)
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	first, last := float64(sizes[0]), float64(sizes[len(sizes)-1])
	if first == last {
		first, last = first/2, last*2
	}
	x := scale{first, last, plotLeft, plotLeft + plotWidth}
	y := scale{low, high, plotTop + plotHeight, plotTop}
	var b strings.Builder
	plotFrame(&b, x, y, sizes)
	for i, f := range families {
		for j, c := range r.Contenders {
			r.curve(&b, x, y, f, c, colours[i%len(colours)], dashes[j%len(dashes)])
		}
	}
	r.names(&b, families)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func plotFrame(b *strings.Builder, x, y scale, sizes []int) {
	width, height := plotLeft+plotWidth+plotNames, plotTop+plotHeight+plotBelow
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(b, `<text x="%d" y="24" font-size="15">CPU time of a pod from pending to seen bound, without an API server</text>`+"\n", plotLeft)
	for v := y.low; v <= y.high*1.001; v *= 10 {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%s µs</text>`+"\n",
			plotLeft, y.at(v), plotLeft+plotWidth, plotLeft-8, y.at(v)+4, thousands(v))
	}
	for _, n := range sizes {
		at := x.at(float64(n))
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			at, plotTop, plotTop+plotHeight, at, plotTop+plotHeight+20, thousands(float64(n)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">nodes</text>`+"\n", plotLeft+plotWidth/2, plotTop+plotHeight+42)
}

// curve draws one family of one contender, a dot for each size.
func (r *Report) curve(b *strings.Builder, x, y scale, family, contender, colour, dash string) {
	var line, dots strings.Builder
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Family != family || row.Contender != contender })
	slices.SortStableFunc(rows, func(a, b Row) int { return a.Nodes - b.Nodes })
	for i, row := range rows {
		px, py := x.at(float64(row.Nodes)), y.at(row.CPUNanoseconds.Median/1000)
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", command, px, py)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s, %s nodes: %.1f µs</title></circle>`+"\n",
			px, py, colour, html.EscapeString(family), html.EscapeString(contender), thousands(float64(row.Nodes)), row.CPUNanoseconds.Median/1000)
	}
	if line.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n%s", line.String(), colour, dash, dots.String())
	}
}

// names tells which colour and which line stands for what.
func (r *Report) names(b *strings.Builder, families []string) {
	left, top := plotLeft+plotWidth+24, plotTop+10
	entry := func(colour, dash, name string) {
		fmt.Fprintf(b, `<path d="M%d %dh30" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left, top-4, colour, dash, left+38, top, html.EscapeString(name))
		top += 20
	}
	for i, f := range families {
		entry(colours[i%len(colours)], "", f)
	}
	if len(r.Contenders) < 2 {
		return
	}
	top += 14
	for j, c := range r.Contenders {
		entry("#444444", dashes[j%len(dashes)], c)
	}
}

// thousands writes a number with commas; numbers below 1 as they are.
func thousands(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%g", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
