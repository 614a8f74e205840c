// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	dashboardFile = "../monitoring/dashboard.json"
	listFile      = "../monitoring/metrics.txt"
)

// metric is what the list says of one.
type metric struct {
	kind   string
	labels []string
}

// served reads the list of what a running kumiki serves, which a test of the root module holds to the truth.
func served(t *testing.T) map[string]metric {
	t.Helper()
	raw, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{} // name as in queries -> metric
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := append(strings.Fields(line), "")
		labels := strings.FieldsFunc(f[2], func(r rune) bool { return r == ',' })
		if f[1] != "histogram" {
			all[f[0]] = metric{f[1], labels}
			continue
		}
		all[f[0]+"_sum"], all[f[0]+"_count"] = metric{"counter", labels}, metric{"counter", labels}
		all[f[0]+"_bucket"] = metric{"counter", append(slices.Clone(labels), "le")}
	}
	if len(all) < 50 {
		t.Fatalf("only %d metrics in %s", len(all), listFile)
	}
	return all
}

// ofTarget are labels that Prometheus adds to what it scrapes.
var ofTarget = []string{"job", "instance", "namespace", "pod"}

// judge returns what is wrong with a query: that it does not parse, or names a metric or a label that kumiki does not
// serve, or takes the rate of something that also falls, or none of something that only grows.
func judge(query string, all map[string]metric) (wrong []string) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	named := slices.Clone(ofTarget)
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		s, is := n.(*parser.VectorSelector)
		if !is {
			return nil
		}
		m, known := all[s.Name]
		if !known {
			wrong = append(wrong, "no metric "+s.Name)
			return nil
		}
		named = append(named, m.labels...)
		for _, l := range s.LabelMatchers {
			if l.Name != "__name__" && !slices.Contains(append(m.labels, ofTarget...), l.Name) {
				wrong = append(wrong, s.Name+" has no label "+l.Name)
			}
		}
		ranged, compared := false, false
		if len(path) > 0 {
			_, ranged = path[len(path)-1].(*parser.MatrixSelector)
			b, binary := path[len(path)-1].(*parser.BinaryExpr)
			compared = binary && b.Op == parser.LUNLESS // whether the series is there at all
		}
		if ranged != (m.kind == "counter") && !compared {
			wrong = append(wrong, s.Name+" is a "+m.kind)
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		var by []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = n.VectorMatching.MatchingLabels
			}
		}
		for _, l := range by {
			if !slices.Contains(named, l) {
				wrong = append(wrong, "by "+l+", which nothing in it has")
			}
		}
		return nil
	})
	return wrong
}

// TestAlertsAskForWhatIsServed. It catches an alert about a metric that was renamed: it would never fire again.
func TestAlertsAskForWhatIsServed(t *testing.T) {
	all := served(t)
	for _, r := range rules(t) {
		for _, wrong := range judge(r.Expr, all) {
			t.Errorf("%s: %s", r.Alert, wrong)
		}
	}
}

// TestWrongQueriesAreSeen: what the judge of queries claims to see, it sees.
func TestWrongQueriesAreSeen(t *testing.T) {
	all := served(t)
	for query, want := range map[string]string{
		`sum(`:                          "unclosed",
		`kumiki_nothing`:                "no metric kumiki_nothing",
		`kumiki_paused{node="a"}`:       "kumiki_paused has no label node",
		`sum by (node) (kumiki_paused)`: "by node, which nothing in it has",
		`rate(kumiki_paused[5m])`:       "kumiki_paused is a gauge",
		`kumiki_troubles_total`:         "kumiki_troubles_total is a counter",
		`kumiki_paused and on (le) kumiki_oversold_nodes`:               "by le, which nothing in it has",
		`kumiki_troubles_total unless kumiki_troubles_total offset 5m`:  "",
		`sum by (le) (rate(kumiki_step_duration_seconds_bucket[5m]))`:   "",
		`scheduler_pending_pods{job="a",queue="active",namespace!="x"}`: "",
	} {
		wrong := strings.Join(judge(query, all), "; ")
		if (want == "") != (wrong == "") || !strings.Contains(wrong, want) {
			t.Errorf("%s: %q, want %q", query, wrong, want)
		}
	}
}

// dashboard is what the tests read of a Grafana dashboard.
type dashboard struct {
	Title, UID string
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ UID string }
	FieldConfig              struct {
		Defaults struct {
			Unit     string
			Mappings []struct {
				Options map[string]struct{ Text string }
			}
			Custom struct{ Stacking struct{ Mode string } }
		}
	}
	Targets []struct{ RefID, Expr, LegendFormat string }
}

var (
	variable = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)\})`)
	inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile(dashboardFile)
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardQueriesWhatIsServed: every query parses and names metrics and labels of the list, with variables that the
// dashboard has; panels have a description and a unit, and do not cover each other. It catches a renamed metric (the
// panel would be empty), a removed variable, and a panel that was pasted with the id of another.
func TestDashboardQueriesWhatIsServed(t *testing.T) {
	b := readDashboard(t)
	variables := []string{"__rate_interval"}
	for _, v := range b.Templating.List {
		variables = append(variables, v.Name)
	}
	all := served(t)
	asked := map[string]bool{} // metric -> some panel shows it
	for i, p := range b.Panels {
		for _, other := range b.Panels[:i] {
			g, h := p.GridPos, other.GridPos
			if p.ID == other.ID || (g.X < h.X+h.W && h.X < g.X+g.W && g.Y < h.Y+h.H && h.Y < g.Y+g.H) {
				t.Errorf("panels %q and %q have the same id or overlap", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q says too little: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			query := variable.ReplaceAllStringFunc(target.Expr, func(v string) string {
				name := strings.Trim(v, "${}")
				if !slices.Contains(variables, name) {
					t.Errorf("panel %q: no variable %s", p.Title, v)
				}
				if name == "__rate_interval" {
					return "5m"
				}
				return "x"
			})
			for _, wrong := range judge(query, all) {
				t.Errorf("panel %q: %s in %s", p.Title, wrong, target.Expr)
			}
			for _, l := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if l[1] != "instance" && !regexp.MustCompile(`by \([^)]*\b`+l[1]+`\b[^)]*\)`).MatchString(query) {
					t.Errorf("panel %q: the legend names %s, which %s does not keep", p.Title, l[1], query)
				}
			}
			for name := range all {
				if strings.Contains(query, name+"{") {
					asked[name] = true
				}
			}
		}
	}
	for _, name := range dashboardShows {
		if !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// dashboardShows is what the dashboard of a scheduler must have: throughput, latency, queue, results, time per plugin, writes,
// overcommitment, staleness, memory, gangs, preemption.
var dashboardShows = []string{
	"scheduler_schedule_attempts_total", "scheduler_pod_scheduling_sli_duration_seconds_bucket", "scheduler_pending_pods",
	"scheduler_plugin_execution_duration_seconds_sum", "rest_client_requests_total", "kumiki_oversold_nodes",
	"kumiki_watch_staleness_seconds", "process_resident_memory_bytes", "kumiki_paused", "leader_election_master_status",
	"kumiki_gangs_waiting", "kumiki_gangs_partially_bound", "kumiki_gang_held_pods", "kumiki_gang_partially_bound_seconds_bucket",
	"scheduler_preemption_victims_sum", "kumiki_evictions_wasted_total", "kumiki_preemption_pauses_total",
}

var update = flag.Bool("update", false, "write the copies instead of comparing them")

// TestCopiesAreCopies: the operator needs the rules as an object, and a chart may read only files of its own. It catches an
// alert that was changed in one place alone. With -update it writes the copies.
func TestCopiesAreCopies(t *testing.T) {
	plain, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	board, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	head, groups, found := strings.Cut(string(plain), "\ngroups:\n")
	if !found || !strings.HasPrefix(head, "#") {
		t.Fatal("the rules do not begin with a comment and their groups")
	}
	object := `# rules.yaml as an object of the Prometheus operator. Made by GOWORK=off go -C deploy/test test -run Copies -update
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kumiki
  namespace: kube-system
spec:
  groups:
` + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(groups, "  $1")
	copies := map[string]string{
		"../monitoring/prometheusrule.yaml":   object,
		"../helm/kumiki/files/rules.yaml":     "groups:\n" + groups,
		"../helm/kumiki/files/dashboard.json": string(board),
	}
	for _, role := range []string{"viewer.yaml", "operator.yaml"} {
		text, err := os.ReadFile("../" + role)
		if err != nil {
			t.Fatal(err)
		}
		copies["../helm/kumiki/files/"+role] = string(text)
	}
	for file, want := range copies {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not a copy of its source (%v): run the test with -update", file, err)
		}
	}
}
