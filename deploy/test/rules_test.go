// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

const (
	rulesFile   = "../monitoring/rules.yaml"
	runbookFile = "../../docs/runbook.md"
)

// rules reads the alerts as Prometheus does, in order.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	all, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() || len(all.Groups) != 1 || len(all.Groups[0].Rules) < 12 {
		t.Fatalf("%s does not hold one group of alerts: %+v", rulesFile, all)
	}
	return all.Groups[0].Rules
}

// scenario is what Prometheus scraped, every 30 seconds, and what of an alert fires after how long.
type scenario struct {
	alert, what string
	scraped     string   // series as in promtool's test files
	after       string   // how long after the first scrape
	fires       []string // summaries; nil if the alert is silent
}

// A process is kumiki because it serves the heartbeat. This one beats and is scraped as kumiki, replica a.
const beats = `kumiki_loop_heartbeat_seconds{job="kumiki",instance="a"} 1+30x240`

// leads is one that holds the lease.
const leads = beats + `
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 1x240`

var scenarios = []scenario{
	{"KumikiDown", "no replica is scraped", `up{job="other",instance="x"} 1x60`, "6m", []string{"No replica of kumiki is scraped."}},
	{"KumikiDown", "one replica is", beats, "6m", nil},
	{"KumikiDown", "away for a moment", `kumiki_loop_heartbeat_seconds{job="kumiki",instance="a"} 1 1 _x4 _x4 200 200`, "4m", nil},

	{"KumikiNoLeader", "all stand by", beats + `
		kumiki_loop_heartbeat_seconds{job="kumiki",instance="b"} 1+30x240
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 0x60
		leader_election_master_status{job="kumiki",instance="b",name="kube-scheduler"} 0x60`, "3m", []string{"No replica of kumiki holds the lease."}},
	{"KumikiNoLeader", "one leads", beats + `
		kumiki_loop_heartbeat_seconds{job="kumiki",instance="b"} 1+30x240
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 0x60
		leader_election_master_status{job="kumiki",instance="b",name="kube-scheduler"} 1x60`, "3m", nil},
	{"KumikiNoLeader", "controllers that are not kumiki stand by", beats + `
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 1x60
		leader_election_master_status{job="controllers",instance="c",name="kube-controller-manager"} 0x60`, "3m", nil},
	{"KumikiNoLeader", "the lease changes hands", beats + `
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 1 1 0 1x20`, "3m", nil},

	{"KumikiLoopStalled", "the loop stopped at 10 s", `kumiki_loop_heartbeat_seconds{job="kumiki",instance="a"} 10x60`, "3m",
		[]string{"The scheduling loop of a is stalled."}},
	{"KumikiLoopStalled", "it goes on", beats, "3m", nil},
	{"KumikiLoopStalled", "it has not begun", `kumiki_loop_heartbeat_seconds{job="kumiki",instance="a"} 0x60`, "3m", nil},

	{"KumikiNotBinding", "pods wait and attempts stopped", leads + `
		scheduler_pending_pods{job="kumiki",instance="a",queue="active"} 7x60
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="scheduled"} 90x60`, "11m",
		[]string{"Pods wait for kumiki and there are no scheduling attempts."}},
	{"KumikiNotBinding", "pods wait and there never was an attempt", leads + `
		scheduler_pending_pods{job="kumiki",instance="a",queue="active"} 7x60`, "11m", []string{"Pods wait for kumiki and there are no scheduling attempts."}},
	{"KumikiNotBinding", "attempts go on", leads + `
		scheduler_pending_pods{job="kumiki",instance="a",queue="active"} 7x60
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="scheduled"} 90+1x60`, "11m", nil},
	{"KumikiNotBinding", "someone paused it", leads + `
		kumiki_paused{job="kumiki",instance="a"} 1x60
		scheduler_pending_pods{job="kumiki",instance="a",queue="active"} 7x60`, "11m", nil},
	{"KumikiNotBinding", "only pods that fit nowhere wait", leads + `
		scheduler_pending_pods{job="kumiki",instance="a",queue="unschedulable"} 7x60`, "11m", nil},
	{"KumikiNotBinding", "a replica that stands by, or a shadow, has them in its queue", beats + `
		leader_election_master_status{job="kumiki",instance="a",name="kube-scheduler"} 0x60
		kumiki_loop_heartbeat_seconds{job="shadow",instance="s"} 1+30x240
		scheduler_pending_pods{job="shadow",instance="s",queue="active"} 7x60
		scheduler_pending_pods{job="kumiki",instance="a",queue="active"} 7x60`, "11m", nil},
	{"KumikiNotBinding", "it is kube-scheduler that stands still", leads + `
		leader_election_master_status{job="kube-scheduler",instance="k",name="kube-scheduler"} 1x60
		scheduler_pending_pods{job="kube-scheduler",instance="k",queue="active"} 7x60`, "11m", nil},

	{"KumikiTakeoverSlow", "half a minute", `kumiki_takeover_seconds{job="kumiki",instance="a"} 0 0 30x60`, "5m", []string{"a took 30s to take over."}},
	{"KumikiTakeoverSlow", "a process that began with one", `kumiki_takeover_seconds{job="kumiki",instance="a"} _ _ 30x60`, "5m", []string{"a took 30s to take over."}},
	{"KumikiTakeoverSlow", "long ago", `kumiki_takeover_seconds{job="kumiki",instance="a"} 0 0 30x60`, "20m", nil},
	{"KumikiTakeoverSlow", "at once", `kumiki_takeover_seconds{job="kumiki",instance="a"} 0 0 0.4x60`, "5m", nil},

	{"KumikiNodeOversold", "two nodes", `kumiki_oversold_nodes{job="kumiki",instance="a"} 2x60`, "2m", []string{"2 nodes are overcommitted."}},
	{"KumikiNodeOversold", "none", `kumiki_oversold_nodes{job="kumiki",instance="a"} 0x60`, "2m", nil},
	{"KumikiNodeOversold", "between two looks", `kumiki_oversold_nodes{job="kumiki",instance="a"} 0 2 0x60`, "2m", nil},

	{"KumikiGangInPart", "for a long time", `kumiki_gang_partially_bound_longest_seconds{job="kumiki",instance="a"} 0 30+30x60`, "5m",
		[]string{"A gang of kumiki has been bound in part for 5m 0s."}},
	{"KumikiGangInPart", "one after the other for a moment", `kumiki_gang_partially_bound_longest_seconds{job="kumiki",instance="a"} 0 20 0 5 30 0x60`, "5m", nil},

	{"KumikiForeignConflicts", "two pods", `kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="too_late"} 0 0 2x60
		kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="recalled"} 0+1x60`, "5m",
		[]string{"kumiki and another scheduler placed pods on the same capacity."}},
	{"KumikiForeignConflicts", "the first one", `kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="too_late"} _x3 1x60`, "5m",
		[]string{"kumiki and another scheduler placed pods on the same capacity."}},
	{"KumikiForeignConflicts", "long ago", `kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="too_late"} _x3 1x60`, "20m", nil},
	{"KumikiForeignConflicts", "all were called back", `kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="recalled"} 0+1x60
		kumiki_foreign_conflicts_total{job="kumiki",instance="a",result="too_late"} 0x60`, "5m", nil},

	{"KumikiPreemptionPaused", "once", `kumiki_preemption_pauses_total{job="kumiki",instance="a"} 0 0 1x60`, "5m",
		[]string{"kumiki and another scheduler preempt each other repeatedly."}},
	{"KumikiPreemptionPaused", "long ago", `kumiki_preemption_pauses_total{job="kumiki",instance="a"} 0 0 1x60`, "20m", nil},
	{"KumikiPreemptionPaused", "never", `kumiki_preemption_pauses_total{job="kumiki",instance="a"} 0x60`, "5m", nil},

	{"KumikiEvictionsWasted", "each second one", `kumiki_evictions_wasted_total{job="kumiki",instance="a"} 0+1x60
		scheduler_preemption_victims_sum{job="kumiki",instance="a"} 0+2x60`, "25m", []string{"Evictions by kumiki have no effect."}},
	{"KumikiEvictionsWasted", "some of very many", `kumiki_evictions_wasted_total{job="kumiki",instance="a"} 0+1x60
		scheduler_preemption_victims_sum{job="kumiki",instance="a"} 0+20x60`, "25m", nil},
	{"KumikiEvictionsWasted", "a few", `kumiki_evictions_wasted_total{job="kumiki",instance="a"} 0 1 2 4x60
		scheduler_preemption_victims_sum{job="kumiki",instance="a"} 0 1 2 4x60`, "25m", nil},

	{"KumikiVictimsStuck", "one", `kumiki_victims_stuck_total{job="kumiki",instance="a"} 0 0 1x60`, "5m", []string{"Pods that kumiki evicted do not terminate."}},
	{"KumikiVictimsStuck", "long ago", `kumiki_victims_stuck_total{job="kumiki",instance="a"} 0 0 1x60`, "20m", nil},

	{"KumikiWatchStale", "pods are not heard of", `kumiki_watch_staleness_seconds{job="kumiki",instance="a",watch="pods"} 0+30x60
		kumiki_watch_staleness_seconds{job="kumiki",instance="a",watch="nodes"} 59x60`, "8m", []string{"The watch of pods by a is stale."}},
	{"KumikiWatchStale", "bookmarks come", `kumiki_watch_staleness_seconds{job="kumiki",instance="a",watch="pods"} 59x60`, "8m", nil},

	{"KumikiWatchGaps", "the first one", `kumiki_watch_gaps_total{job="kumiki",instance="a",watch="pods"} _x3 1x60`, "5m",
		[]string{"A watch of kumiki missed changes of pods."}},
	{"KumikiWatchGaps", "another one", `kumiki_watch_gaps_total{job="kumiki",instance="a",watch="pods"} 1x50 2x30`, "29m",
		[]string{"A watch of kumiki missed changes of pods."}},
	{"KumikiWatchGaps", "long ago", `kumiki_watch_gaps_total{job="kumiki",instance="a",watch="pods"} _x3 1x60`, "25m", nil},

	{"KumikiPodsSetAside", "one pod", `kumiki_pods_set_aside{job="kumiki",instance="a"} 1x60`, "2m", []string{"a has set 1 pods aside."}},
	{"KumikiPodsSetAside", "none", `kumiki_pods_set_aside{job="kumiki",instance="a"} 0x60`, "2m", nil},

	{"KumikiTroubles", "one", `kumiki_troubles_total{job="kumiki",instance="a"} 0 0 1x60`, "5m", []string{"a recovered from an internal error."}},
	{"KumikiTroubles", "one, long ago", `kumiki_troubles_total{job="kumiki",instance="a"} 0 0 1x60`, "25m", nil},

	{"KumikiBindOutcomesUnknown", "twenty in ten minutes", `kumiki_bind_unknown_outcomes_total{job="kumiki",instance="a",outcome="bound"} 0+1x60`, "12m",
		[]string{"Responses to binds are lost."}},
	{"KumikiBindOutcomesUnknown", "twenty at once, the first", `kumiki_bind_unknown_outcomes_total{job="kumiki",instance="a",outcome="bound"} _x4 20x60`, "5m",
		[]string{"Responses to binds are lost."}},
	{"KumikiBindOutcomesUnknown", "one", `kumiki_bind_unknown_outcomes_total{job="kumiki",instance="a",outcome="bound"} 0 0 1x60`, "12m", nil},

	{"KumikiAttemptErrors", "one in ten", beats + `
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="scheduled"} 0+9x60
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="error"} 0+1x60`, "20m",
		[]string{"10% of the attempts of kumiki end in an error."}},
	{"KumikiAttemptErrors", "one in a hundred", beats + `
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="scheduled"} 0+99x60
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="error"} 0+1x60`, "20m", nil},
	{"KumikiAttemptErrors", "all of kube-scheduler's", beats + `
		scheduler_schedule_attempts_total{job="kube-scheduler",instance="k",profile="p",result="error"} 0+1x60`, "20m", nil},
	{"KumikiAttemptErrors", "pods that fit nowhere are no errors", beats + `
		scheduler_schedule_attempts_total{job="kumiki",instance="a",profile="p",result="unschedulable"} 0+9x60`, "20m", nil},

	{"KumikiSchedulingSlow", "five in a hundred wait 10 to 20 s", beats + `
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="5.12"} 0+95x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="10.24"} 0+95x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="20.48"} 0+100x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="+Inf"} 0+100x60`, "25m",
		[]string{"Pods wait too long for kumiki."}},
	{"KumikiSchedulingSlow", "all within a second", beats + `
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="0.64"} 0+100x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="1",le="+Inf"} 0+100x60`, "25m", nil},
	{"KumikiSchedulingSlow", "pods that had to wait for capacity", beats + `
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="2",le="5.12"} 0x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="2",le="163.84"} 0+100x60
		scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kumiki",instance="a",attempts="2",le="+Inf"} 0+100x60`, "25m", nil},

	{"KumikiIncident", "first of its cause", `kumiki_incidents_total{job="kumiki",instance="a",cause="no-binds"} _ _ 1x60`, "5m", []string{"kumiki had an incident: no-binds."}},
	{"KumikiIncident", "long ago", `kumiki_incidents_total{job="kumiki",instance="a",cause="no-binds"} 0 0 1x60`, "25m", nil},
	{"KumikiIncident", "by hand", `kumiki_incidents_total{job="kumiki",instance="a",cause="by-hand"} 0 0 1x60`, "5m", nil},
	{"KumikiEventsDropped", "some", `kumiki_events_dropped_total{job="kumiki",instance="a"} 0 0 40x60`, "5m", []string{"a drops events about pods."}},
	{"KumikiEventsDropped", "none", `kumiki_events_dropped_total{job="kumiki",instance="a"} 0x60`, "5m", nil},

	{"KumikiPausedTooLong", "since more than an hour", `kumiki_paused{job="kumiki",instance="a"} 1x240
		kumiki_paused{job="kumiki",instance="b"} 0x240`, "62m", []string{"Scheduling by kumiki has been paused for an hour."}},
	{"KumikiPausedTooLong", "for 40 minutes", `kumiki_paused{job="kumiki",instance="a"} 1x240`, "40m", nil},
}

// TestAlertsFireWhenTheyShould, and stay silent when they should: each rule is evaluated by Prometheus' own engine on
// given series, with its waiting time, as `promtool test rules` does. It catches a comparison turned round, a threshold or
// a time that is wrong by a factor of two, a label that is summed away, and a rule that fires for kube-scheduler.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer engine.Close()
	byName := map[string]rulefmt.Rule{} // name -> rule
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	for _, s := range scenarios {
		rule, there := byName[s.alert]
		if !there {
			t.Errorf("a scenario is about %s, which is not there", s.alert)
			continue
		}
		got := firing(t, engine, storeOf(t, s.scraped), rule, s.after)
		if !slices.Equal(got, s.fires) {
			t.Errorf("%s, %s: after %s %q fires, want %q", s.alert, s.what, s.after, got, s.fires)
		}
		fires[s.alert], silent[s.alert] = fires[s.alert] || s.fires != nil, silent[s.alert] || s.fires == nil
	}
	for name := range byName {
		if !fires[name] || !silent[name] {
			t.Errorf("of %s there is no scenario in which it fires, or none in which it is silent", name)
		}
	}
}

// firing evaluates a rule every 30 seconds and returns the summaries of those alerts that fire at the end: those that
// were there at each evaluation for as long as the rule says.
func firing(t *testing.T, engine *promql.Engine, store storage.Queryable, rule rulefmt.Rule, after string) []string {
	t.Helper()
	end, err := time.ParseDuration(after)
	if err != nil {
		t.Fatal(err)
	}
	since := map[uint64]time.Duration{} // labels, hashed -> when it was there first
	var summaries []string
	for at := time.Duration(0); at <= end; at += 30 * time.Second {
		query, err := engine.NewInstantQuery(t.Context(), store, nil, rule.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		samples, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		before := since
		since, summaries = map[uint64]time.Duration{}, nil
		for _, s := range samples {
			key := s.Metric.Hash()
			first, was := before[key]
			if !was {
				first = at
			}
			since[key] = first
			if at-first >= time.Duration(rule.For) {
				summaries = append(summaries, told(t, rule, s))
			}
		}
		query.Close()
	}
	slices.Sort(summaries)
	return summaries
}

// noQuery is for texts, which ask nothing.
func noQuery(_ context.Context, q string, _ time.Time) (promql.Vector, error) {
	return nil, fmt.Errorf("a text asks %q", q)
}

// told expands the texts of an alert as Prometheus does and returns the summary.
func told(t *testing.T, rule rulefmt.Rule, s promql.Sample) string {
	t.Helper()
	var summary string
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)

	for name, text := range rule.Annotations {
		e := template.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, rule.Alert, data, 0,
			noQuery, &url.URL{}, nil)
		got, err := e.Expand()
		if err != nil || strings.Contains(got, "<no value>") || strings.Contains(got, "  ") {
			t.Errorf("%s, %s: %q, %v", rule.Alert, name, got, err)
		}
		if name == "summary" {
			summary = got
		}
	}
	return summary
}

// TestEveryAlertHasItsPage: severity, texts, and a section of the runbook behind the link. The list of the runbook has the
// alerts in their order, and no section is about an alert that does not exist. It catches an alert that was renamed in one
// of the places.
func TestEveryAlertHasItsPage(t *testing.T) {
	index, pages := runbookSections(t)
	var listed, alerts []string
	row := regexp.MustCompile(`(?m)^\| <a id="(\w+)"></a>\[(Kumiki\w+)\]\(runbook/([\w-]+\.md)#(\w+)\) \| .+ \|$`)
	for _, m := range row.FindAllStringSubmatch(index, -1) {
		listed = append(listed, m[2])
		if anchor := strings.ToLower(m[2]); m[1] != anchor || m[4] != anchor || pages[m[2]] != m[3] {
			t.Errorf("the list of the runbook leads from %s to %s, its section is in %q", m[2], m[3]+"#"+m[4], pages[m[2]])
		}
	}
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", r.Alert, s)
		}
		want := "https://github.com/kumiki-scheduler/kumiki/blob/main/docs/runbook/" + pages[r.Alert] + "#" + strings.ToLower(r.Alert)
		if r.Annotations["runbook_url"] != want {
			t.Errorf("%s points to %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says too little: %v", r.Alert, r.Annotations)
		}
	}
	if !slices.Equal(listed, alerts) {
		t.Errorf("the runbook lists\n%v\nand alerts are, in order,\n%v", listed, alerts)
	}
	if len(pages) != len(alerts) {
		t.Errorf("the runbook has sections on %d alerts, of %d", len(pages), len(alerts))
	}
}

// runbookSections returns the first page of the runbook, and the page with the section on each alert.
func runbookSections(t *testing.T) (index string, pages map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(strings.TrimSuffix(runbookFile, ".md") + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = map[string]string{} // alert -> page
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^## (Kumiki\w+)$`).FindAllStringSubmatch(string(page), -1) {
			if other, twice := pages[m[1]]; twice {
				t.Errorf("%s has sections in %s and %s", m[1], other, filepath.Base(file))
			}
			pages[m[1]] = filepath.Base(file)
		}
	}
	return string(raw), pages
}
