// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// gangPodsShown is how many pods of a gang the plain table lists; -o wide lists all.
const gangPodsShown = 16

// Gang writes the state of a gang and why it waits.
func Gang(w io.Writer, r record.GangReport, wide bool) error {
	p := &page{w: w, wide: wide}
	p.printf("gang %s (%s): %s\n", r.Name, r.Source, gangState(r))

	p.section("")
	needs := fmt.Sprintf("%d pods", r.Quorum)
	if !r.Stated {
		needs += ", all that existed; no declaration says how many"
	}
	if r.Desired > r.Quorum && r.Stated {
		needs += fmt.Sprintf(", and has or wants %d", r.Desired)
	}
	rows := [][]string{
		{"Needs:", needs},
		{"Has:", fmt.Sprintf("%d bound, %d on the way, %d waiting", r.Bound, r.Coming, r.Waiting)},
		{"Priority:", fmt.Sprint(r.Priority)},
	}
	if r.Missing > 0 {
		rows = append(rows, []string{"Missing:", count(r.Missing, "pod")})
	}
	if r.Gate != "" || r.Reason != "" {
		rows = append(rows, []string{"Held by:", strings.TrimPrefix(r.Gate+": "+r.Reason, ": ")})
	}
	if r.Attempts > 0 {
		rows = append(rows, []string{"Tried:", count(r.Attempts, "time")})
	}
	if r.SparedFor != "" {
		rows = append(rows, []string{"Leaves:", "places that gang " + r.SparedFor +
			" could use, which has not what it needs"})
	}
	if r.PartialSince != 0 {
		rows = append(rows, []string{"In part:", "some but not enough of its pods are bound, for " +
			span(r.At-r.PartialSince)})
	}
	if r.OneByOne {
		rows[0][1] = "nothing: its pods are scheduled one by one"
		rows = append(rows, []string{"Ask:", "kumiki why pod/NAME for each pod that waits"})
	}
	p.table(rows)
	p.gangFit(r)
	p.evictions(r.Last, r.Evicted, r.At)
	p.wouldEvict(nil, r.Preemption, r.At) // this page does not have the last try's text
	p.gangHolds(r)
	p.gangPods(r)
	p.limited(r.Only)
	return p.err
}

func gangState(r record.GangReport) string {
	return stateOfGang(record.GangEntry{
		OneByOne: r.OneByOne, Quorum: r.Quorum, Bound: r.Bound, Coming: r.Coming, Waiting: r.Waiting, Where: r.Where,
	})
}

func (p *page) gangFit(r record.GangReport) {
	f := r.Fit
	if f == nil {
		return
	}
	p.section("If it were tried now:")
	line := fmt.Sprintf("  %s: the best try places %d, %d are needed (%s looked at)", f.Verdict, f.Placed, f.Needed,
		count(f.Tried, "placement"))
	if r.Bound+r.Coming >= r.Quorum && r.Quorum > 0 {
		line = fmt.Sprintf("  the best try places %d of the %s that wait (%s looked at)", f.Placed,
			count(r.Waiting, "pod"), count(f.Tried, "placement"))
	}
	p.printf("%s\n", line)
	if f.Blocked != "" && f.Message != "" {
		p.printf("  %s: %s\n", f.Blocked, f.Message)
	}
	if f.Proof != "" {
		p.printf("  %s\n", f.Proof)
	}
	if len(f.Domains) > 0 {
		p.printf("  domains: %s\n", strings.Join(f.Domains, ", "))
	}
	switch {
	case r.Estimate > r.At:
		p.printf("  may start in about %s: %s\n", span(r.Estimate-r.At), r.Basis)
	case r.Basis != "":
		p.printf("  estimate of the start: %s\n", r.Basis)
	}
}

func (p *page) gangHolds(r record.GangReport) {
	if h := r.Holds; h != nil {
		p.section("")
		p.printf("Capacity for %s is reserved for it on %s, for %s more.\n", count(h.Pods, "pod"), list(h.Nodes),
			span(h.Until-r.At))
		if h.Start > r.At {
			p.printf("Pods that end within %s may use it until the gang starts; %d did.\n", span(h.Start-r.At),
				h.Backfilled)
		}
	}
	if h := r.HeldByOther; h != nil {
		p.section("")
		where := "gang " + h.Gang + " on " + list(h.Nodes)
		if h.Gang == record.OtherNamespace {
			where = "a gang of another namespace"
		}
		p.printf("Capacity for %s is reserved for %s, for %s more; this gang cannot use it.\n", count(h.Pods, "pod"),
			where, span(h.Until-r.At))
	}
}

func (p *page) gangPods(r record.GangReport) {
	p.section("")
	rows := [][]string{{"POD", "STATE", "NODE", "NOTE"}}
	for i, pod := range r.Pods {
		if i == gangPodsShown && !p.wide && len(r.Pods) > gangPodsShown+1 {
			break
		}
		node := pod.Node
		switch {
		case node == "":
			node = "-"
		case pod.State == "waiting":
			node = "(" + node + ")"
		}
		rows = append(rows, []string{pod.Pod.Name, pod.State, node, dash(pod.Note)})
	}
	p.table(rows)
	if n := len(r.Pods) - len(rows) + 1; n > 0 {
		p.printf("... and %d more (-o wide)\n", n)
	}
}

// span is a length of time.
func span(t record.Time) string { return Ago(0, t) }
