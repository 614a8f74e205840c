// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// podsShown is how many pods of a node the plain table lists; -o wide lists all.
const podsShown = 10

// Node writes a node's accounts.
func Node(w io.Writer, r record.NodeReport, wide bool) error {
	p := &page{w: w, wide: wide}
	p.printf("node %s: %s%s\n", r.Name, count(r.PodCount, "pod"), nodeState(r))

	p.section("")
	rows := [][]string{{"RESOURCE", "ALLOCATABLE", "CONFIRMED", "ASSUMED", "REQUESTED", "USE", "FREE", "SCORED"}}
	for _, a := range r.Resources {
		scored := "-"
		if a.HasScored {
			scored = Amount(a.Resource, a.Scored)
		}
		rows = append(rows, []string{a.Resource, Amount(a.Resource, a.Allocatable), Amount(a.Resource, a.Confirmed),
			Amount(a.Resource, a.Assumed), Amount(a.Resource, a.Requested), percent(a.Requested, a.Allocatable),
			Amount(a.Resource, a.Free), scored})
	}
	p.table(rows)
	for _, s := range r.Scores {
		p.printf("%s weighs %s by %s.\n", s.Plugin, strings.Join(s.Resources, ", "), strings.ToUpper(s.Reads))
	}

	p.section("")
	rows = [][]string{{"Taints:", list(r.Taints)}}
	if len(r.Ports) > 0 {
		rows = append(rows, []string{"Ports taken:", list(r.Ports)})
	}
	if wide {
		rows = append(rows, []string{"Store revision:", fmt.Sprint(r.Revision)})
	}
	p.table(rows)
	if wide && len(r.Labels) > 0 {
		p.section("Labels:")
		for _, l := range r.Labels {
			p.printf("  %s=%s\n", l.Key, l.Value)
		}
	}
	p.podsOnNode(r)
	return p.err
}

func nodeState(r record.NodeReport) string {
	var notes []string
	if r.Assumed > 0 {
		notes = append(notes, fmt.Sprintf("%d of them on the way", r.Assumed))
	}
	if r.Unschedulable {
		notes = append(notes, "cordoned")
	}
	if len(notes) == 0 {
		return ""
	}
	return ", " + strings.Join(notes, ", ")
}

func (p *page) podsOnNode(r record.NodeReport) {
	if len(r.Pods) == 0 {
		return
	}
	p.section("")
	rows := [][]string{{"NAMESPACE", "POD", "STATE", "PRIORITY", "HOLDS"}}
	shown := r.Pods
	if !p.wide && len(shown) > podsShown {
		shown = shown[:podsShown]
	}
	for _, pod := range shown {
		state := "confirmed"
		switch {
		case pod.Terminating:
			state = "terminating"
		case pod.Assumed:
			state = "assumed"
		}
		rows = append(rows, []string{pod.Pod.Namespace, pod.Pod.Name, state, fmt.Sprint(pod.Priority),
			dash(Amounts(pod.Holds))})
	}
	p.table(rows)
	if more := len(r.Pods) - len(shown); more > 0 {
		p.printf("and %s; -o wide lists all\n", count(more, "more pod"))
	}
}

// percent is the share of a in b, rounded down.
func percent(a, b int64) string {
	if b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", int64(float64(a)/float64(b)*100))
}

func list(items []string) string {
	if len(items) == 0 {
		return "<none>"
	}
	return strings.Join(items, ", ")
}
