// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Gangs writes the number of gangs, and the given ones with why they wait.
func Gangs(w io.Writer, r record.GangList, wide bool) error {
	p := &page{w: w, wide: wide}
	if line := paused(r.Paused, r.At); line != "" {
		p.printf("%s\n\n", line)
	}
	p.table([][]string{
		{"GANGS", "WAITING", "BOUND IN PART"},
		{fmt.Sprint(r.Counts.Gangs), fmt.Sprint(r.Counts.Waiting), fmt.Sprint(r.Counts.Partial)},
	})
	if len(r.Gangs) > 0 {
		p.section("")
		p.table(gangRows(r, wide))
	}
	p.limited(r.Only)
	return p.err
}

// gangRows returns the head and a row for each gang. HAS counts the pods that exist, BOUND those of them that are
// bound.
func gangRows(r record.GangList, wide bool) [][]string {
	head := []string{"NAMESPACE", "GANG", "SOURCE", "NEEDS", "HAS", "BOUND", "STATE", "SINCE", "RESERVED", "WHY"}
	if wide {
		head = append(head, "PRIORITY", "ATTEMPTS", "NEXT TRY", "REJECTED BY", "RESERVED NODES")
	}
	rows := [][]string{head}
	for _, e := range r.Gangs {
		namespace, name, _ := strings.Cut(e.Name, "/")
		since, reserved, nodes, next := "-", "-", "-", "-"
		if e.Since > 0 && e.Waiting > 0 {
			since = Ago(e.Since, r.At)
		}
		if h := e.Holds; h != nil {
			reserved, nodes = fmt.Sprintf("%s, %s more", count(h.Pods, "pod"), span(h.Until-r.At)), list(h.Nodes)
		}
		needs := fmt.Sprint(e.Quorum)
		if e.OneByOne {
			needs = "-"
		}
		row := []string{namespace, name, e.Source, needs, fmt.Sprint(e.Bound + e.Coming + e.Waiting),
			fmt.Sprint(e.Bound), stateOfGang(e), since, reserved, dash(whyGangWaits(e))}
		if wide {
			if e.BackoffUntil > r.At {
				next = "in " + Ago(r.At, e.BackoffUntil)
			}
			row = append(row, fmt.Sprint(e.Priority), fmt.Sprint(e.Attempts), next,
				dash(strings.Join(e.Plugins, ",")), nodes)
		}
		rows = append(rows, row)
	}
	return rows
}

// whyGangWaits returns the reason in short; empty for a gang that does not wait.
func whyGangWaits(e record.GangEntry) string {
	switch {
	case e.Waiting == 0:
		return ""
	case e.OneByOne:
		return "ask kumiki why pod/NAME"
	case e.Reason != "":
		return e.Reason
	case e.Verdict != "":
		return e.Verdict
	}
	return strings.Join(e.Plugins, ",")
}

// stateOfGang returns the state of a gang in words.
func stateOfGang(e record.GangEntry) string {
	switch {
	case e.OneByOne && e.Waiting > 0:
		return fmt.Sprintf("scheduled one by one; %s", count(e.Waiting, "pod")+" waiting")
	case e.Waiting == 0 && e.Bound >= e.Quorum && e.Quorum > 0:
		return "running"
	case e.Where == record.Gated:
		return "waits for its pods"
	case e.Waiting == 0 && e.Coming > 0:
		return "being bound"
	case e.Waiting == 0:
		return "has no pods that wait"
	case e.Bound+e.Coming >= e.Quorum:
		return "has what it needs; more of its pods wait"
	}
	return "waits for capacity (" + string(e.Where) + ")"
}
