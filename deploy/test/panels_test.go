// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/kumiki-scheduler/kumiki/deploy/test/draw"
)

const (
	// runFile is what was scraped in a run of kumiki, written by make dashboard-record.
	runFile  = "testdata/run.txt.gz"
	imageDir = "../../docs/img"
	// scrapeInterval and runTime are those of the run; points is how many values of a line are drawn.
	scrapeInterval = time.Second
	runTime        = 240 * time.Second
	points         = 120
)

// images are the rows of the dashboard that the documents show.
var images = map[string]string{
	"Throughput and latency": "dashboard-throughput.svg", "From created to bound": "dashboard-phases.svg",
	"Gangs": "dashboard-gangs.svg", "Preemption": "dashboard-preemption.svg",
}

// noData is the panel that is empty in the run, whose gangs are declared by annotations and so have no objects.
const noData = "Gang statuses written"

// recordedRun reads the run as Prometheus would have stored it.
func recordedRun(t *testing.T) storage.Queryable {
	t.Helper()
	f, err := os.Open(runFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return storeEvery(t, scrapeInterval, string(text))
}

// TestImagesAreOfTheDashboard draws rows of the dashboard from the recorded run and compares them with the images in the
// documents. It catches a panel that was changed without its image, and a query without a result. With -update it writes them.
func TestImagesAreOfTheDashboard(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer engine.Close()
	run := recordedRun(t)
	rows, in := map[string][]draw.Panel{}, ""
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			in = p.Title
			continue
		}
		if images[in] != "" {
			rows[in] = append(rows[in], drawn(t, engine, run, p))
		}
	}
	for title, file := range images {
		if len(rows[title]) == 0 {
			t.Errorf("the dashboard has no row %q", title)
			continue
		}
		for _, p := range rows[title] {
			if len(p.Lines) == 0 && p.Title != noData {
				t.Errorf("row %q: panel %q has no data in the run", title, p.Title)
			}
		}
		got, path := draw.SVG(rows[title], runTime.Seconds()), filepath.Join(imageDir, file)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != string(got) {
			t.Errorf("%s is not drawn from the dashboard and the run (%v): make dashboard-images", path, err)
		}
		if len(got) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(got))
		}
	}
}

// drawn evaluates the queries of a panel.
func drawn(t *testing.T, engine *promql.Engine, run storage.Queryable, p panel) draw.Panel {
	t.Helper()
	out := draw.Panel{Title: p.Title, Unit: p.FieldConfig.Defaults.Unit, Single: p.Type == "stat", Texts: map[float64]string{},
		Stacked: p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal", X: p.GridPos.X, Y: p.GridPos.Y, W: p.GridPos.W, H: p.GridPos.H}
	for _, m := range p.FieldConfig.Defaults.Mappings {
		for value, option := range m.Options { // order: each for itself
			var v float64
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				t.Fatal(err)
			}
			out.Texts[v] = option.Text
		}
	}
	step := runTime / points
	for _, target := range p.Targets {
		query := strings.NewReplacer("$__rate_interval", "15s", "$job", ".*").Replace(target.Expr)
		start := time.UnixMilli(0)
		q, err := engine.NewRangeQuery(t.Context(), run, nil, query, start, start.Add(runTime), step)
		if err != nil {
			t.Fatalf("panel %q: %v", p.Title, err)
		}
		matrix, err := q.Exec(t.Context()).Matrix()
		if err != nil {
			t.Fatalf("panel %q: %v", p.Title, err)
		}
		for _, series := range matrix {
			line := draw.Line{Name: target.LegendFormat, Values: make([]float64, points+1)}
			for i := range line.Values {
				line.Values[i] = math.NaN()
			}
			found := false
			for _, point := range series.Floats {
				line.Values[point.T/step.Milliseconds()] = point.F
				found = found || !math.IsNaN(point.F)
			}
			line.Name = inLegend.ReplaceAllStringFunc(line.Name, func(label string) string {
				return series.Metric.Get(strings.Trim(label, "{}"))
			})
			if found {
				out.Lines = append(out.Lines, line)
			}
		}
		q.Close()
	}
	return out
}
