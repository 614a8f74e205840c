// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// curve is a line of a plot.
type curve struct {
	Name, Colour, Points string
}

// plot is a chart over virtual time, as SVG.
type plot struct {
	Title  string
	Top    string // the value at the upper edge
	End    string // the time at the right edge
	Curves []curve
}

// The size of a plot, in pixels.
const (
	plotWidth  = 640
	plotHeight = 180
)

var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf"}

// series is a value of each sample.
type series struct {
	name  string
	value func(*sim.Sample) float64
}

// draw makes a plot of series of all profiles, under the first seed.
func (r *Report) draw(title string, top float64, list func(*sim.Result) []series) plot {
	p := plot{Title: title}
	end := 0.0
	for i := range r.Profiles {
		run := &r.Results[i*len(r.Seeds)]
		for k := range run.Samples {
			end = max(end, run.Samples[k].Seconds)
			for _, s := range list(run) {
				top = max(top, s.value(&run.Samples[k]))
			}
		}
	}
	for i, profile := range r.Profiles {
		run := &r.Results[i*len(r.Seeds)]
		for _, s := range list(run) {
			var points []string
			for k := range run.Samples {
				x := run.Samples[k].Seconds / max(end, 1e-9) * plotWidth
				y := plotHeight - s.value(&run.Samples[k])/max(top, 1e-9)*plotHeight
				points = append(points, strconv.FormatFloat(x, 'f', 1, 64)+","+strconv.FormatFloat(y, 'f', 1, 64))
			}
			name := s.name
			if len(r.Profiles) > 1 {
				name = profile + ": " + s.name
			}
			p.Curves = append(p.Curves, curve{name, colours[len(p.Curves)%len(colours)], strings.Join(points, " ")})
		}
	}
	p.Top, p.End = Number(top), Number(end)
	return p
}

// plots are those of a page.
func (r *Report) plots() []plot {
	one := func(list ...series) func(*sim.Result) []series {
		return func(*sim.Result) []series { return list }
	}
	shares := func(of func(*sim.Sample) []float64) func(*sim.Result) []series {
		return func(run *sim.Result) (list []series) {
			for i, name := range run.Resources {
				list = append(list, series{name, func(s *sim.Sample) float64 { return of(s)[i] }})
			}
			return list
		}
	}
	return []plot{
		r.draw("Nodes", 1, one(
			series{"nodes", func(s *sim.Sample) float64 { return float64(s.Nodes) }},
			series{"nodes with pods", func(s *sim.Sample) float64 { return float64(s.NodesUsed) }},
			series{"lower bound", func(s *sim.Sample) float64 { return float64(s.Fewest) }})),
		r.draw("Pods", 1, one(
			series{"pending", func(s *sim.Sample) float64 { return float64(s.Pending) }},
			series{"running", func(s *sim.Sample) float64 { return float64(s.Running) }})),
		r.draw("Utilisation: requested share of the capacity", 1,
			shares(func(s *sim.Sample) []float64 { return s.Used })),
		r.draw("Fragmentation: free share that the mix of pods cannot use", 0.01,
			shares(func(s *sim.Sample) []float64 { return s.Fragments })),
		r.draw("Conflicts and overcommits of each scheduler, so far", 1, func(run *sim.Result) (list []series) {
			for i, t := range run.Schedulers {
				list = append(list, series{t.Name, func(s *sim.Sample) float64 { return float64(s.Conflicts[i]) }})
			}
			return list
		}),
	}
}

// html writes a page that needs no other file.
func (r *Report) html(w io.Writer) error {
	type line struct{ Cells []string }
	data := struct {
		*Report
		Plots         []plot
		Head          []string
		Lines         []line
		Width, Height int
	}{Report: r, Plots: r.plots(), Width: plotWidth, Height: plotHeight}
	data.Head = append([]string{"metric"}, r.Profiles...)
	for _, name := range r.Profiles[1:] {
		data.Head = append(data.Head, name+" less "+r.Profiles[0])
	}
	for _, row := range r.Rows {
		if !row.shown() {
			continue
		}
		l := line{[]string{row.Name}}
		for _, c := range row.Cells {
			l.Cells = append(l.Cells, c.text(row.Unit, len(r.Seeds)))
		}
		for _, c := range row.Cells[1:] {
			l.Cells = append(l.Cells, c.difference())
		}
		data.Lines = append(data.Lines, l)
	}
	if err := page.Execute(w, data); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	return nil
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Scenario}}</title>
<style>
body{font:14px/1.4 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
svg{background:#fafafa;border:1px solid #ccc;overflow:visible}
figure{margin:1.5em 0}figcaption{font-weight:bold}
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.key{margin-right:1em}.failed{color:#b00}
</style></head><body>
<h1>{{.Scenario}}</h1>
<p>Seeds: {{range .Seeds}}{{.}} {{end}}. The plots show the first seed; times are virtual seconds.</p>
{{range .Failed}}<p class="failed">Failed in {{.Profile}}, seed {{.Seed}}: {{.What}}</p>
{{end}}{{$w := .Width}}{{$h := .Height}}{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>
<svg width="{{$w}}" height="{{$h}}" viewBox="0 0 {{$w}} {{$h}}" role="img" aria-label="{{.Title}}">
<text x="2" y="12" font-size="11">{{.Top}}</text>
<text x="{{$w}}" y="{{$h}}" dy="14" text-anchor="end" font-size="11">{{.End}} s</text>
{{range .Curves}}<polyline fill="none" stroke="{{.Colour}}" stroke-width="1.5" points="{{.Points}}"/>
{{end}}</svg><div>{{range .Curves}}<span class="key" style="color:{{.Colour}}">{{.Name}}</span>{{end}}</div></figure>
{{end}}<table><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Lines}}<tr>{{range .Cells}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table></body></html>
`))
