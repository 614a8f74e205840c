// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Journey writes where the time of a pod went. The wide form has the audit IDs of requests too.
func Journey(w io.Writer, r journey.Report, wide bool) error {
	p := &page{w: w, wide: wide}
	p.journeyHead(&r)
	p.section("")
	p.table(phaseRows(&r))
	if r.LostSpans > 0 {
		p.printf("%s at the beginning were overwritten and are not shown\n", count(r.LostSpans, "phase"))
	}
	if g := r.GangTiming; g != nil {
		p.section("Gang:")
		p.table(milestones(g))
	}
	if len(r.Requests) > 0 {
		p.section("Requests:")
		p.table(requestRows(&r, wide))
	}
	return p.err
}

func (p *page) journeyHead(r *journey.Report) {
	p.printf("Pod:        %s (%s)\n", r.Pod.Key(), plain(r.Pod.UID))
	if r.Others > 0 {
		p.printf("            the newest of %d of this name\n", r.Others+1)
	}
	if r.Gang != "" {
		p.printf("Gang:       %s\n", plain(r.Gang))
	}
	p.printf("Node:       %s\n", plain(r.Node))
	listed := ""
	if r.Listed {
		listed = " (with the list at the scheduler's start: the pod is older)"
	}
	p.printf("Observed:   %s%s\n", moment(r.Began), listed)
	arriving := "- (" + r.ArrivingWhy + ")"
	if a := r.Arriving; a != nil {
		arriving = fmt.Sprintf("%s to %s from the commit to the observation", ns(a.Least), ns(a.Most))
	}
	p.printf("Arriving:   %s\n", arriving)
	ended := "- (on its way)"
	if r.Ended != 0 {
		ended = fmt.Sprintf("%s (%s), after %s and %s", moment(r.Ended), plain(string(r.End)), ns(r.Total()),
			count(r.Attempts, "attempt"))
	}
	p.printf("Ended:      %s\n", ended)
	lag := "-"
	if r.WatchLag != nil {
		lag = ns(*r.WatchLag) + " from the answer to the bind until the watch showed it"
	}
	p.printf("Watch lag:  %s\n", lag)
}

// plain replaces control characters, which a file of another machine may contain, and says that a text is empty.
func plain(text string) string {
	return dash(strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return '?'
		}
		return c
	}, text))
}

func ns(t record.Time) string { return timeSpan(time.Duration(t)) }

func moment(t record.Time) string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000000 UTC")
}

// phaseRows returns a row for each phase. The share is that of the time since the first observation.
func phaseRows(r *journey.Report) [][]string {
	rows := [][]string{{"PHASE", "START", "DURATION", "SHARE", "ATTEMPT", "ENDED BY", "HINT", "PLUGINS"}}
	whole := time.Duration(r.Total())
	for i, s := range r.Spans {
		took, part := ns(s.Took), time.Duration(s.Took)
		share := shareOf(&part, &whole) // a dash while the pod is on its way
		if r.Ended == 0 && i == len(r.Spans)-1 {
			took = "-"
		}
		rows = append(rows, []string{s.Phase.String(), "+" + ns(s.Start-r.Began), took, share, fmt.Sprint(s.Attempt),
			plain(s.Event), plain(s.Hint), plain(strings.Join(s.Plugins, ","))})
	}
	return rows
}

func milestones(g *record.GangTiming) [][]string {
	rows := [][]string{{"MILESTONE", "AT"}}
	for _, m := range []struct {
		name string
		at   record.Time
	}{{"first member", g.FirstMember}, {"quorum", g.Quorum}, {"placed", g.Placed}, {"first bound", g.FirstBound},
		{"whole", g.Whole}} {
		at := "-"
		if m.at != 0 {
			at = "+" + ns(m.at-g.FirstMember)
		}
		rows = append(rows, []string{m.name, at})
	}
	return rows
}

func requestRows(r *journey.Report, wide bool) [][]string {
	head := []string{"REQUEST", "START", "STATUS", "THROTTLE", "CONNECT", "SEND", "SERVER", "ANSWER"}
	if wide {
		head = append(head, "AUDIT ID")
	}
	rows := [][]string{head}
	for _, q := range r.Requests {
		status := fmt.Sprint(q.Status)
		if q.Status == 0 {
			status = "none: " + plain(q.Failed)
		}
		row := []string{plain(q.Verb + " " + q.Resource), "+" + ns(q.Start-r.Began), status, ns(q.Throttle),
			ns(q.Connect), ns(q.Send), ns(q.Server), ns(q.Answer)}
		if wide {
			row = append(row, plain(q.AuditID))
		}
		rows = append(rows, row)
	}
	return rows
}
