// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kumiki-scheduler/kumiki/record"
)

// page writes sections with one blank line between them. The first error sticks.
type page struct {
	w     io.Writer
	wide  bool
	dirty bool // something was written
	err   error
}

// printf writes a format with its arguments, texts among them by OneLine.
func (p *page) printf(format string, args ...any) {
	p.dirty = true
	if p.err != nil {
		return
	}
	for i, arg := range args {
		if v := reflect.ValueOf(arg); v.IsValid() && v.Kind() == reflect.String {
			args[i] = OneLine(fmt.Sprint(arg))
		}
	}
	_, p.err = fmt.Fprintf(p.w, format, args...)
}

// OneLine replaces characters that are not printed by a question mark: line ends, terminal escapes, and marks that hide
// or reorder text. Names in a file of another machine may contain them.
func OneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, text)
}

// Lines is OneLine for a text that may have several lines and tabs.
func Lines(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, text)
}

// section begins a section.
func (p *page) section(title string) {
	if p.dirty {
		p.printf("\n")
	}
	if title != "" {
		p.printf("%s\n", title)
	}
}

// table writes rows of cells in columns.
func (p *page) table(rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	p.dirty = true
	tw := printers.GetNewTabWriter(p.w)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, OneLine(cell))
		}
		fmt.Fprintln(tw)
	}
	p.err = tw.Flush()
}

// Pod writes why a pod is pending or why it is on its node.
func Pod(w io.Writer, r record.PodReport, wide bool) error {
	p := &page{w: w, wide: wide}
	p.printf("%s\n", Headline(r))
	if r.Node != "" {
		p.placed(r)
	} else {
		if line := paused(r.Paused, r.At); line != "" {
			p.printf("%s\n", line)
		}
		p.pending(r)
	}
	if wide {
		p.details(r)
	}
	p.limited(r.Only)
	return p.err
}

// limited writes that an answer is limited to a namespace, if it is.
func (p *page) limited(namespace string) {
	if namespace != "" {
		p.section("")
		p.printf("You may see namespace %s: what is in other namespaces is counted and not named.\n", namespace)
	}
}

// Headline returns the answer in one line.
func Headline(r record.PodReport) string {
	name := r.Pod.Key()
	switch {
	case r.Node != "" && len(r.Before) > 0:
		return fmt.Sprintf("pod %s: Decided for %s, waits for %s", name, r.Node, strings.Join(r.Before, ", "))
	case r.Node != "" && r.Assumed:
		return fmt.Sprintf("pod %s: Binding to %s", name, r.Node)
	case r.Node != "":
		return fmt.Sprintf("pod %s: Placed on %s", name, r.Node)
	case len(r.Gates) > 0:
		return fmt.Sprintf("pod %s: Gated, waiting for %s to be removed: %s", name,
			count(len(r.Gates), "scheduling gate"), strings.Join(r.Gates, ", "))
	case r.Fit == nil:
		return fmt.Sprintf("pod %s: Pending, %s", name, place(r))
	case r.Fit.PreFilterReason != "":
		return fmt.Sprintf("pod %s: Pending, fits no node: %s", name, r.Fit.PreFilterReason)
	case r.Fit.Nodes == 0:
		return fmt.Sprintf("pod %s: Pending, the cluster has no nodes", name)
	}
	if r.Gang != "" {
		return fmt.Sprintf("pod %s: Pending with gang %s; %d/%d nodes fit it alone", name, r.Gang, r.Fit.Feasible,
			r.Fit.Nodes)
	}
	return fmt.Sprintf("pod %s: Pending, %d/%d nodes fit", name, r.Fit.Feasible, r.Fit.Nodes)
}

// place returns where a pod waits.
func place(r record.PodReport) string {
	switch r.Where {
	case record.Active:
		return "next in line to be tried"
	case record.InFlight:
		return "being tried now"
	case record.Backoff:
		return "backing off"
	case record.Unschedulable:
		return "waiting for a change that helps"
	case record.Gated:
		return "gated"
	}
	return "not in the queue"
}

func (p *page) pending(r record.PodReport) {
	if f := r.Fit; f != nil {
		p.reasons(f)
		p.remedies(f)
	}
	p.evictions(r.Last, r.Evicted, r.At)
	p.wouldEvict(r.Last, r.Preemption, r.At)
	if len(r.WaitsFor) > 0 {
		p.section("Waits for any of:")
		var rows [][]string
		for _, w := range r.WaitsFor {
			rows = append(rows, []string{"  " + w.Plugin, strings.Join(w.Events, ", ")})
		}
		p.table(rows)
	}
	p.section("")
	p.table(waitRows(r))
}

// reasons writes the table of rejections: plugin, number of nodes, reason.
func (p *page) reasons(f *record.Fit) {
	if f.Feasible > 0 {
		p.section("")
		p.printf("Fits now: %s. It is placed when it is tried next.\n", strings.Join(f.FeasibleExamples, ", "))
	}
	if len(f.Reasons) == 0 {
		return
	}
	p.section("")
	rows := [][]string{{"NODES", "PLUGIN", "REASON", "EXAMPLES"}}
	for _, reason := range f.Reasons {
		rows = append(rows, []string{fmt.Sprint(reason.Nodes), reason.Plugin, reason.Reason, examples(reason)})
	}
	p.table(rows)
}

// examples lists nodes, and the number of others.
func examples(r record.Reason) string {
	text := strings.Join(r.Examples, ", ")
	if more := r.Nodes - len(r.Examples); more > 0 && len(r.Examples) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (p *page) remedies(f *record.Fit) {
	if len(f.Remedies) == 0 {
		return
	}
	p.section("What would make it fit:")
	for _, r := range f.Remedies {
		line := "  - " + r.Do
		if r.Short > 0 {
			line += fmt.Sprintf(" (needs %s %s, %s free)", r.Resource, Amount(r.Resource, r.Need),
				Amount(r.Resource, r.Free))
		}
		switch {
		case len(r.Also) > 0:
			line += "; " + strings.Join(r.Also, ", ") + " would still say no there"
		case r.Nodes > 1:
			line += fmt.Sprintf("; only %s keeps it off %s", r.Plugin, count(r.Nodes, "node"))
		}
		p.printf("%s\n", line)
	}
}

// waitRows returns where the pod waits and what happens next.
func waitRows(r record.PodReport) [][]string {
	rows := [][]string{{"Queue:", place(r) + sinceText(r)}}
	if r.Attempts > 0 {
		tries := fmt.Sprint(r.Attempts)
		if r.Errors > 0 {
			tries += fmt.Sprintf(", %s in a row", count(r.Errors, "error"))
		}
		rows = append(rows, []string{"Attempts:", tries})
	}
	latest := r.FlushAt
	if r.Last != nil && r.Last.Preemption != nil && r.Last.Preemption.DelayedUntil > r.At {
		latest = min(latest, r.Last.Preemption.DelayedUntil)
	}
	switch {
	case r.BackoffUntil > r.At:
		rows = append(rows, []string{"Next try:", "in " + Ago(r.At, r.BackoffUntil) + ", when the backoff ends"})
	case latest > r.At:
		rows = append(rows, []string{"Next try:", "on a change that helps, in " + Ago(r.At, latest) + " at the latest"})
	}
	if r.Gate != "" && len(r.Gates) == 0 {
		rows = append(rows, []string{"Held by:", r.Gate})
	}
	if r.Nominated != "" {
		rows = append(rows, []string{"Nominated:", r.Nominated})
	}
	if r.Group != "" {
		rows = append(rows, []string{"In a group:", r.Group + ", whose pods are scheduled one by one"})
	}
	if r.Gang != "" {
		rows = append(rows, []string{"In a gang:", r.Gang + ", whose pods get a place together (kumiki why gang/" +
			strings.TrimPrefix(r.Gang, r.Pod.Namespace+"/") + ")"})
	}
	if len(r.Requests) > 0 {
		rows = append(rows, []string{"Requests:", Amounts(r.Requests)})
	}
	if r.Last != nil && r.Last.Verdict != record.Placed && r.Last.Message != "" {
		by := ""
		if r.Last.Instance != "" {
			by = " by " + r.Last.Instance
		}
		rows = append(rows, []string{"Last try:", Ago(r.Last.At, r.At) + " ago" + by + ": " + r.Last.Message})
	}
	return rows
}

func sinceText(r record.PodReport) string {
	if r.Since == 0 {
		return ""
	}
	return " for " + Ago(r.Since, r.At)
}

// placed writes why a pod is on its node.
func (p *page) placed(r record.PodReport) {
	d := r.Last
	if d == nil || d.Verdict != record.Placed || d.Winner == nil {
		p.section("")
		p.printf("The decision is not in this scheduler's memory: it was made before its start, by another " +
			"scheduler, or too long ago.\n")
		return
	}
	p.section("")
	p.printf("Because %s.\n", because(d))
	if len(d.Winner.Scores) > 0 {
		p.section("")
		p.table(scoreRows(d, p.wide))
	}
	p.section("")
	rows := [][]string{{"Decided:", fmt.Sprintf("%s ago, decision %d, attempt %d", Ago(d.At, r.At), d.Number,
		d.Attempt)}}
	if len(r.Requests) > 0 {
		rows = append(rows, []string{"Requests:", Amounts(r.Requests)})
	}
	p.table(rows)
	p.evictions(d, r.Evicted, r.At)
}

// because returns in words why the node won.
func because(d *record.Decision) string {
	switch {
	case d.Feasible == 1 && d.Nodes == 1:
		return "it is the only node"
	case d.Feasible == 1:
		return fmt.Sprintf("it is the only one of %s that fits", count(d.Nodes, "node"))
	case d.Tied > 1:
		return fmt.Sprintf("%d of %d nodes fit, %d had the best score of %d, and it was drawn among them", d.Feasible,
			d.Nodes, d.Tied, d.Winner.Total)
	case d.RunnerUp != nil:
		return fmt.Sprintf("%d of %d nodes fit and its score is the best: %d, the next has %d", d.Feasible, d.Nodes,
			d.Winner.Total, d.RunnerUp.Total)
	}
	return fmt.Sprintf("%d of %d nodes fit and its score is the best: %d", d.Feasible, d.Nodes, d.Winner.Total)
}

// scoreRows returns the winner beside the runner-up, plugin by plugin.
func scoreRows(d *record.Decision, wide bool) [][]string {
	head := []string{"SCORE", d.Winner.Node}
	if wide {
		head = append(head, "RAW")
	}
	if d.RunnerUp != nil {
		head = append(head, d.RunnerUp.Node)
		if wide {
			head = append(head, "RAW")
		}
	}
	rows := [][]string{head}
	for _, s := range d.Winner.Scores {
		row := []string{s.Plugin, fmt.Sprint(s.Weighted)}
		if wide {
			row = append(row, fmt.Sprint(s.Raw))
		}
		if d.RunnerUp != nil {
			i := slices.IndexFunc(d.RunnerUp.Scores, func(o record.PluginScore) bool { return o.Plugin == s.Plugin })
			if i >= 0 {
				row = append(row, fmt.Sprint(d.RunnerUp.Scores[i].Weighted))
				if wide {
					row = append(row, fmt.Sprint(d.RunnerUp.Scores[i].Raw))
				}
			}
		}
		rows = append(rows, row)
	}
	total := []string{"total", fmt.Sprint(d.Winner.Total)}
	if wide {
		total = append(total, "")
	}
	if d.RunnerUp != nil {
		total = append(total, fmt.Sprint(d.RunnerUp.Total))
	}
	return append(rows, total)
}

// details writes what -o wide adds.
func (p *page) details(r record.PodReport) {
	p.section("")
	rows := [][]string{
		{"UID:", r.Pod.UID},
		{"Scheduler:", r.Profile},
		{"Priority:", fmt.Sprint(r.Priority)},
		{"Store revision:", fmt.Sprint(r.Revision)},
	}
	if r.Created > 0 {
		rows = append(rows, []string{"Created:", Ago(r.Created, r.At) + " ago"})
	}
	if r.Last != nil && r.Last.Path != "" {
		rows = append(rows, []string{"Last search:", searched(r.Last.Path)})
	}
	p.table(rows)
	if len(r.Moves) == 0 {
		return
	}
	p.section("Moves:")
	moves := [][]string{{"  AGO", "FROM", "TO", "EVENT", "HINT", "CAUSE"}}
	for _, m := range r.Moves {
		moves = append(moves, []string{"  " + Ago(m.At, r.At), string(m.From), string(m.To), m.Event, dash(m.Hint),
			m.Cause})
	}
	p.table(moves)
}

// searched returns how a decision evaluated the nodes.
func searched(path record.Path) string {
	switch path {
	case record.Ranked:
		return "ranked, from the order of nodes that is kept for pods like this one"
	case record.Grouped:
		return "grouped, one node of each group that the pod cannot tell apart"
	case record.Scanned:
		return "scanned, node by node"
	}
	return string(path)
}

// dash returns "-" for an empty cell.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
