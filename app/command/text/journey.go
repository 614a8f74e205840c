// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Journey writes where the time of a pod went. The wide form has a row for each phase where the other has one for those
// that repeat, and the audit IDs of requests.
func Journey(w io.Writer, r journey.Report, wide bool) error {
	p := &page{w: w, wide: wide}
	p.journeyHead(&r)
	p.section("")
	p.table(phaseRows(&r, wide))
	if r.LostSpans > 0 {
		p.printf("%s at the beginning were overwritten and are not shown\n", count(r.LostSpans, "phase"))
	}
	if g := r.GangTiming; g != nil {
		p.section("Gang:")
		p.table(gangPhaseRows(&r))
	}
	if len(r.Evictions) > 0 {
		p.section("Evictions:")
		p.table(evictionRows(&r))
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
	if r.ClockSet != 0 {
		p.printf("Clock:      the clock of the scheduler's machine was set by %s since it started: times are by the "+
			"clock before\n", relativeTo(r.ClockSet))
	}
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

// plain returns a text for one line, and says that it is empty.
func plain(text string) string { return dash(OneLine(text)) }

func ns(t record.Time) string { return timeSpan(time.Duration(t)) }

func moment(t record.Time) string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000000 UTC")
}

// phaseRows returns a row for each phase, or in the narrow form one for phases that repeat: a pod that is tried before
// its backoff is over has hundreds. The share is that of the time since the first observation.
func phaseRows(r *journey.Report, wide bool) [][]string {
	rows := [][]string{{"PHASE", "START", "DURATION", "SHARE", "ATTEMPT", "ENDED BY", "HINT", "PLUGINS"}}
	whole := time.Duration(r.Total())
	for next := 0; next < len(r.Spans); {
		first := r.Spans[next]
		last, sum, n := first, first.Took, 1
		for next++; !wide && next < len(r.Spans) && repeats(&first, &r.Spans[next]); next++ {
			last = r.Spans[next]
			sum += last.Took
			n++
		}
		took, part := ns(sum), time.Duration(sum)
		share := shareOf(&part, &whole) // a dash while the pod is on its way
		if r.Ended == 0 && next == len(r.Spans) {
			took = "-"
		}
		phase, attempt := first.Phase.String(), fmt.Sprint(first.Attempt)
		if n > 1 {
			phase = fmt.Sprintf("%s ×%d", phase, n)
			attempt = fmt.Sprintf("%d-%d", first.Attempt, last.Attempt)
		}
		rows = append(rows, []string{phase, "+" + ns(first.Start-r.Began), took, share, attempt,
			plain(first.Event), plain(first.Hint), plain(strings.Join(first.Plugins, ","))})
	}
	return rows
}

// repeats reports whether a phase is like one before it but for its attempt.
func repeats(a, b *record.PhaseSpan) bool {
	return a.Phase == b.Phase && a.Event == b.Event && a.Hint == b.Hint && slices.Equal(a.Plugins, b.Plugins)
}

// gangPhaseRows returns a row for each phase of the gang. The start is relative to the first observation of the pod: it
// is negative if other members came before.
func gangPhaseRows(r *journey.Report) [][]string {
	rows := [][]string{{"PHASE", "START", "DURATION"}}
	for _, s := range r.GangPhases {
		took := ns(s.Took)
		if s.Open {
			took = "-"
		}
		rows = append(rows, []string{plain(s.Phase), relativeTo(s.Start - r.Began), took})
	}
	total := "-"
	if g := r.GangTiming; g.Whole != 0 {
		total = ns(g.Whole - g.FirstMember)
	}
	return append(rows, []string{"first member to whole", relativeTo(r.GangTiming.FirstMember - r.Began), total})
}

// evictionRows returns a row for each eviction, and for each of its victims if there is more than one. Durations of
// phases that have not begun are dashes.
func evictionRows(r *journey.Report) [][]string {
	rows := [][]string{{"EVICTION", "OF", "START", "DECIDED", "SENT", "TERMINATING", "TOTAL", "OUTCOME"}}
	for i := range r.Evictions {
		e := &r.Evictions[i]
		of := count(e.Victims, "pod")
		if len(e.Pods) == 1 && e.Victims == 1 {
			of = plain(e.Pods[0].Pod.Key())
		}
		purpose := fmt.Sprintf("%d", e.Decision)
		if e.OfPod {
			purpose += " for " + plain(e.For.Key())
		}
		total := "-"
		if e.Ended() != 0 {
			total = ns(e.Ended() - e.Requested)
		}
		row := append([]string{purpose, of, relativeTo(e.Requested - r.Began)}, inPhases(e.Phases)...)
		rows = append(rows, append(row, total, outcome(&e.EvictionTiming)))
		if len(e.Pods) < 2 {
			continue
		}
		for k := range e.Pods {
			v := &e.Pods[k]
			total := "-"
			if v.Gone != 0 {
				total = ns(v.Gone - e.Requested)
			}
			row := append([]string{"", plain(v.Pod.Key()), ""}, inPhases(e.PhasesOf(v))...)
			rows = append(rows, append(row, total, ""))
		}
	}
	return rows
}

// inPhases returns the time in each phase of an eviction.
func inPhases(spans []record.MilestoneSpan) []string {
	out := []string{"-", "-", "-"}
	for _, s := range spans {
		at := slices.Index([]string{record.EvictionDecided, record.EvictionSent, record.EvictionTerminating}, s.Phase)
		if at >= 0 && !s.Open {
			out[at] = ns(s.Took)
		}
	}
	return out
}

func outcome(e *record.EvictionTiming) string {
	switch {
	case e.Failed != "":
		return "failed: " + plain(e.Failed)
	case e.Gone != 0:
		return "gone"
	case len(e.Phases()) == 0:
		return "-"
	}
	return e.Phases()[len(e.Phases())-1].Phase + " until now"
}

// relativeTo writes a time with its sign, such as one relative to the first observation of a pod.
func relativeTo(t record.Time) string {
	if t < 0 {
		return "-" + ns(-t)
	}
	return "+" + ns(t)
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
