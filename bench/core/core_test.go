// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestNoFamilyIsScanned: every pod of every family finds a node without a look at each, and plain pods without a look at
// any. Catches a plugin that loses its facets or its way of being ranked, a family of which a pod finds no node, and paths
// that are not told.
func TestNoFamilyIsScanned(t *testing.T) {
	runs, err := Measure(context.Background(), Options{Nodes: []int{120}, Families: regexp.MustCompile(""), Pods: 60, Warmup: 10, Runs: 1,
		Contenders: []Contender{Kumiki(0)}, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ranked := []string{"basic", "20 templates", "1000 templates"}
	for _, r := range runs {
		want := map[record.Path]int{record.Grouped: 60}
		if slices.Contains(ranked, r.Family) {
			want = map[record.Path]int{record.Ranked: 60}
		}
		if r.Family == "mixed" {
			want = map[record.Path]int{record.Ranked: 12, record.Grouped: 48}
		}
		if !maps.Equal(r.Paths, want) || r.Pods != 60 {
			t.Errorf("%s: %d pods, %v, want %v", r.Family, r.Pods, r.Paths, want)
		}
		if r.Allocations <= 0 || r.Allocations > 100 {
			t.Errorf("%s: %v allocations for a pod at 120 nodes, so there are some per node", r.Family, r.Allocations)
		}
	}
	if len(runs) != len(Families()) {
		t.Errorf("%d runs of %d families", len(runs), len(Families()))
	}
}

// TestBoundPodsAreWhereTheyMayBe: on existing nodes without a taint, on different nodes as long as there are enough,
// and in one zone if the family requires that. Catches an index past the last node, and a start at which pods crowd
// on a few nodes, which would make anti-affinity cheap to judge.
func TestBoundPodsAreWhereTheyMayBe(t *testing.T) {
	for _, nodes := range []int{100, 120, 1000} {
		all := map[string]*v1.Node{}
		for i := range nodes {
			n := Node(i)
			all[n.Name] = n
		}
		for _, f := range Families() {
			on, inZone := map[string]int{}, map[string]bool{}
			for i := range nodes / 2 {
				p := f.Bound(i, nodes)
				n := all[p.Spec.NodeName]
				if n == nil || len(n.Spec.Taints) > 0 {
					t.Fatalf("%s, %d nodes: pod %d is on %s, %v", f.Name, nodes, i, p.Spec.NodeName, n)
				}
				on[n.Name]++
				inZone[n.Labels[v1.LabelTopologyZone]] = true
			}
			most := slices.Max(slices.Collect(maps.Values(on)))
			wantMost, wantZones := 1, zones
			if f.oneZone {
				wantMost, wantZones = 2, 1
			}
			if most != wantMost || len(inZone) != wantZones {
				t.Errorf("%s, %d nodes: up to %d pods on a node, want %d; in %d zones, want %d", f.Name, nodes, most, wantMost, len(inZone), wantZones)
			}
		}
	}
}

// TestTemplatesTakeTurns: as many specs as the family says, in turn. Catches templates that differ in nothing the scheduler
// looks at, which would be one class.
func TestTemplatesTakeTurns(t *testing.T) {
	for _, f := range Families() {
		specs := map[string]int{}
		for i := range f.Templates {
			text, err := json.Marshal(f.Pod(i).Spec)
			if err != nil {
				t.Fatal(err)
			}
			specs[string(text)]++
			if !reflect.DeepEqual(f.Pod(i).Spec, f.Pod(i+f.Templates).Spec) {
				t.Errorf("%s: pods %d and %d are of different templates", f.Name, i, i+f.Templates)
			}
		}
		if len(specs) != f.Templates {
			t.Errorf("%s: %d different specs of %d templates", f.Name, len(specs), f.Templates)
		}
	}
}

// callLog is a scheduler that logs the calls that it receives.
type callLog struct {
	name  string
	lines *[]string
	taken int
	fail  bool
}

func (s *callLog) say(format string, a ...any) {
	*s.lines = append(*s.lines, s.name+": "+fmt.Sprintf(format, a...))
}
func (s *callLog) AddNode(n *v1.Node)  { s.say("node") }
func (s *callLog) AddBound(p *v1.Pod)  { s.say("bound") }
func (s *callLog) Take(pods []*v1.Pod) { s.taken = len(pods); s.say("take %d", len(pods)) }
func (s *callLog) Retire()             { s.say("retire") }
func (s *callLog) Close()              { s.say("close") }
func (s *callLog) Place(i int) (Placed, error) {
	s.say("place %d", i)
	if s.fail {
		return Placed{}, errors.New("no capacity")
	}
	return Placed{Node: "n"}, nil
}

func measureLogged(t *testing.T, o Options, fail bool) ([]string, []Run, error) {
	t.Helper()
	var lines []string
	for _, name := range []string{"a", "b"} {
		o.Contenders = append(o.Contenders, Contender{name, func() (Subject, error) { return &callLog{name: name, lines: &lines, fail: fail}, nil }})
	}
	o.Progress = io.Discard
	runs, err := Measure(context.Background(), o)
	return slices.Compact(lines), runs, err
}

// TestContendersTakeTurns: both receive the same objects, run by run, and a pod is deleted for each that is created.
// Catches all runs of one before those of the other, warm-up pods that count, and a cluster that fills while it is
// measured.
func TestContendersTakeTurns(t *testing.T) {
	lines, runs, err := measureLogged(t, Options{Nodes: []int{100}, Families: regexp.MustCompile("^basic$"), Pods: 2, Warmup: 1, Runs: 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"a", "b", "a", "b"} {
		for _, line := range []string{"node", "bound", "take 1", "place 0", "retire", "take 2", "place 0", "retire", "place 1", "retire", "close"} {
			want = append(want, name+": "+line)
		}
	}
	if !slices.Equal(lines, want) {
		t.Errorf("calls:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for i, r := range runs {
		if r.Pods != 2 || r.Run != i/2+1 {
			t.Errorf("run %d counts %d pods and is number %d", i, r.Pods, r.Run)
		}
	}
}

// TestTheLimitEndsARun: what was placed until then counts, one pod at least. Catches a rate of the pods that were asked for.
func TestTheLimitEndsARun(t *testing.T) {
	_, runs, err := measureLogged(t, Options{Nodes: []int{100}, Families: regexp.MustCompile("^basic$"), Pods: 10, Warmup: 1, Runs: 1, Limit: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Pods != 1 {
			t.Errorf("%d pods count", r.Pods)
		}
	}
}

// TestAPodWithoutANodeFailsTheRun, and the failure names what was measured. Catches a run that is fast because it gives up.
func TestAPodWithoutANodeFailsTheRun(t *testing.T) {
	_, _, err := measureLogged(t, Options{Nodes: []int{100}, Families: regexp.MustCompile("^basic$"), Pods: 2, Runs: 1}, true)
	if err == nil || err.Error() != "basic, 100 nodes, a, run 1: no capacity" {
		t.Errorf("the error is %v", err)
	}
}

// report has two runs of two contenders at two sizes. The second is 10 and 40 times slower.
func report() Report {
	var runs []Run
	for _, nodes := range []int{100, 1000} {
		for run, slower := range []float64{10, 40} {
			first := 1000 * float64(run+1)
			runs = append(runs,
				Run{Contender: "a", Family: "basic", Nodes: nodes, Run: run + 1, Pods: 4, PodsPerSecond: first, Nanoseconds: 1e9 / first, CPUNanoseconds: 1e9 / first,
					Paths: map[record.Path]int{record.Ranked: 3, record.Scanned: 1}},
				Run{Contender: "b", Family: "basic", Nodes: nodes, Run: run + 1, Pods: 4, PodsPerSecond: first / slower, Nanoseconds: 1e9 * slower / first, CPUNanoseconds: 2e9 * slower / first})
		}
	}
	return Summarize([]string{"a", "b"}, runs)
}

// TestRatiosAreTakenRunByRun. Catches a ratio of medians (1500/75 is 20, not 25), and shares of runs in place of pods.
func TestRatiosAreTakenRunByRun(t *testing.T) {
	r := report()
	if len(r.Rows) != 4 || r.Rows[0].Contender != "a" || r.Rows[1].Contender != "b" || r.Rows[3].Nodes != 1000 {
		t.Fatalf("rows %+v", r.Rows)
	}
	a, b := r.Rows[0], r.Rows[1]
	if a.Times != nil || b.Times == nil || *b.Times != (Spread{25, 10, 40}) || *b.TimesCPU != (Spread{50, 20, 80}) {
		t.Errorf("the ratios are %v and %v", a.Times, b.Times)
	}
	if a.PodsPerSecond != (Spread{1500, 1000, 2000}) {
		t.Errorf("pods per second %v", a.PodsPerSecond)
	}
	if want := map[record.Path]float64{record.Ranked: 0.75, record.Scanned: 0.25}; !maps.Equal(a.Paths, want) {
		t.Errorf("shares %v", a.Paths)
	}
}

// TestThePlotHasACurveForEach contender and family, and is XML. Catches names that are not escaped, and points that are off
// the page (a logarithm of a range of one value).
func TestThePlotHasACurveForEach(t *testing.T) {
	r := report()
	for i := range r.Rows {
		r.Rows[i].Family = "<basic> & more"
	}
	for _, rows := range [][]Row{r.Rows, r.Rows[:2]} {
		r.Rows = rows
		var out bytes.Buffer
		if err := r.write(&out, "svg"); err != nil {
			t.Fatal(err)
		}
		dots := 0
		for d := xml.NewDecoder(&out); ; {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, is := tok.(xml.StartElement); is && e.Name.Local == "circle" {
				dots++
				var x, y float64
				fmt.Sscan(e.Attr[0].Value, &x)
				fmt.Sscan(e.Attr[1].Value, &y)
				if !(x >= plotLeft && x <= plotLeft+plotWidth && y >= plotTop && y <= plotTop+plotHeight) {
					t.Errorf("a point at %v, %v", x, y)
				}
			}
		}
		if dots != len(rows) {
			t.Errorf("%d points of %d rows", dots, len(rows))
		}
	}
}

// TestTheCommand: a saved report is shown again as it was, and mistakes are reported before anything is measured.
// Catches JSON names that differ between writing and reading, and a format that is refused after an hour of runs.
func TestTheCommand(t *testing.T) {
	run := func(a ...string) (string, error) {
		var out bytes.Buffer
		cmd := NewCommand()
		cmd.SetArgs(a)
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.ExecuteContext(context.Background())
		return out.String(), err
	}
	kept, err := run("--nodes", "100", "--families", "^basic$", "--pods", "20", "--runs", "1", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "core.json")
	if err := os.WriteFile(file, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := run("--from", file, "-o", "json"); err != nil || again != kept {
		t.Errorf("shown again (%v):\n%s\nfirst\n%s", err, again, kept)
	}
	table, err := run("--from", file)
	if err != nil || !strings.Contains(table, "ranked 100 %") || strings.Count(table, "\n") != 2 {
		t.Errorf("the table (%v):\n%s", err, table)
	}
	for _, c := range []struct{ want, args string }{
		{`output "xml" is unknown; there are table, json, svg`, "-o xml"},
		{`scheduler "other" is unknown; there are kumiki`, "--scheduler other"},
		{`scheduler kumiki is named twice`, "--schedulers kumiki,kumiki"},
		{`99 nodes are too few, the families need 100`, "--nodes 99"},
		{`no family matches "nothing"`, "--families nothing"},
	} {
		if _, err := run(strings.Fields(c.args)...); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}
