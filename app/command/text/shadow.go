// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// examplesShown is the number of worst cases on a page that is not wide.
const examplesShown = 5

// Shadow writes how another scheduler's choices compare with kumiki's.
func Shadow(w io.Writer, r record.ShadowReport, wide bool) error {
	p := &page{w: w, wide: wide}
	p.printf("Shadow of %s for %s, judged by the profile %s, %s\n", r.Scheduler, Ago(r.Started, r.At), r.Profile,
		count(r.Nodes, "node"))
	if !r.Synced {
		p.printf("The cluster is not listed yet: nothing was judged.\n")
		return p.err
	}
	p.printf("%s judged; %d first seen when bound, %d met an error; %s pending\n",
		count(r.Pods.Judged, "bind"), r.Pods.Unseen, r.Pods.Unjudged, count(r.Pods.Pending, "pod"))
	p.agreement(r)
	p.regret(r)
	p.disputes(r)
	p.latency(r.Latency)
	p.worst(r.Examples)
	return p.err
}

func (p *page) agreement(r record.ShadowReport) {
	a, q := r.Agreement, r.Quiet
	row := func(name string, all, quiet int) []string {
		return []string{name, strconv.Itoa(all), strconv.Itoa(quiet)}
	}
	p.section("")
	p.table([][]string{
		{"CHOICE OF NODE", "ALL", "QUIET"},
		row("pods compared", a.Pods, q.Pods),
		row("same node", a.Same, q.Same),
		row("other node, equal score", a.Tied, q.Tied),
		row("the node it was nominated to", a.Nominated, q.Nominated),
		row("node of lower score", a.Worse, q.Worse),
		row("node that we do not allow", a.Rejected, q.Rejected),
		{"agreement", share(a), share(q)},
	})
	if p.wide {
		p.printf("QUIET counts the pods during whose decision nothing else happened, so that both certainly saw " +
			"the same cluster.\n")
	}
}

// share rounds down: only a complete share is 100.0%.
func share(a record.ShadowAgreement) string {
	if a.Pods == 0 {
		return "-"
	}
	agreed := a.Same + a.Tied + a.Nominated
	return fmt.Sprintf("%d.%d%%", agreed*100/a.Pods, agreed*1000/a.Pods%10)
}

func (p *page) regret(r record.ShadowReport) {
	row := func(name string, q record.Quantiles) []string {
		return []string{name, points(q.P50), points(q.P90), points(q.P99), points(q.Max)}
	}
	p.section("")
	p.table([][]string{
		{"SCORE BELOW THE BEST", "P50", "P90", "P99", "MAX"},
		row("theirs, all", r.Agreement.Regret.Quantiles),
		row("theirs, quiet", r.Quiet.Regret.Quantiles),
	})
	if len(r.Agreement.Regret.ByPlugin) == 0 {
		return
	}
	p.section("")
	rows := [][]string{{"PLUGIN", "MAIN CAUSE FOR", "SUM"}}
	for _, by := range r.Agreement.Regret.ByPlugin {
		rows = append(rows, []string{by.Plugin, count(by.Pods, "pod"), strconv.FormatInt(by.Sum, 10)})
	}
	p.table(rows)
}

func points(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (p *page) disputes(r record.ShadowReport) {
	row := func(name string, d record.ShadowDispute) []string {
		return []string{name, strconv.Itoa(d.Pods), strconv.Itoa(d.Open), strconv.Itoa(d.Settled), strconv.Itoa(d.Lost)}
	}
	p.section("")
	p.table([][]string{
		{"DISPUTES ABOUT WHAT FITS", "PODS", "OPEN", "SETTLED", "LOST"},
		row("they bind where we do not allow", r.RejectedByUs),
		row("they refuse, we see a node", r.RefusedByThem),
	})
	if p.wide {
		p.printf("SETTLED went away within seconds: one side had seen a change that the other had not. LOST could " +
			"not be looked at again.\n")
	}
	if n := r.RejectedByUs.Nowhere; n > 0 {
		p.printf("For %s that they bound, no node fits by our filters.\n", count(n, "pod"))
	}
	if len(r.RejectedByUs.Reasons) == 0 {
		return
	}
	p.section("")
	rows := [][]string{{"REJECTED BY", "REASON", "PODS"}}
	for _, why := range r.RejectedByUs.Reasons {
		rows = append(rows, []string{dash(why.Plugin), why.Reason, strconv.Itoa(why.Pods)})
	}
	p.table(rows)
}

func (p *page) latency(l record.ShadowLatency) {
	row := func(name string, q record.Quantiles) []string {
		return []string{name, strconv.Itoa(q.Count), seconds(q.P50), seconds(q.P90), seconds(q.P99), seconds(q.Max)}
	}
	p.section("")
	p.table([][]string{
		{"LATENCY", "COUNT", "P50", "P90", "P99", "MAX"},
		row("ours, to decide", l.Ours),
		row("theirs, from seen pending to seen bound", l.Theirs),
	})
}

// seconds writes a duration with three digits.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

func (p *page) worst(list []record.ShadowExample) {
	if len(list) == 0 {
		return
	}
	if !p.wide {
		list = list[:min(len(list), examplesShown)]
	}
	p.section("Worst cases:")
	rows := [][]string{{"POD", "THEIRS", "OURS", "WHY"}}
	for _, e := range list {
		j := e.Judgement
		rows = append(rows, []string{j.Pod.Key(), candidate(j.Theirs), candidate(j.Ours), why(e)})
	}
	p.table(rows)
}

func candidate(c *record.Candidate) string {
	switch {
	case c == nil:
		return "-"
	case len(c.Scores) == 0:
		return c.Node
	}
	return fmt.Sprintf("%s (%d)", c.Node, c.Total)
}

// why returns what an example shows.
func why(e record.ShadowExample) string {
	j := e.Judgement
	text := ""
	switch e.Kind {
	case record.ShadowRejected:
		text = "not allowed by " + dash(j.Plugin) + ": " + strings.Join(j.Reasons, ", ")
		if j.Feasible == 0 {
			text += "; no node fits"
		}
	case record.ShadowRefused:
		text = fmt.Sprintf("we see %s; they say: %s", count(j.Feasible, "node"), e.TheirMessage)
	default:
		text = fmt.Sprintf("%d below, most by %s", j.Regret, dash(j.Cause))
		for i, sc := range j.Ours.Scores {
			if sc.Plugin == j.Cause {
				text += fmt.Sprintf(" (%d, ours %d)", j.Theirs.Scores[i].Weighted, sc.Weighted)
			}
		}
	}
	if e.Quiet {
		text += " [quiet]"
	}
	return text
}
