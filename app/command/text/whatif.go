// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// WhatIf writes what would happen to a pod or a gang.
func WhatIf(w io.Writer, r record.WhatIf, wide bool) error {
	p := &page{w: w, wide: wide}
	p.printf("%s: %s; now %s\n", asked(r), wouldBe(r), is(r.Now))

	p.section("If:")
	var rows [][]string
	for _, c := range r.If {
		rows = append(rows, []string{"  " + c.If, c.Does})
	}
	p.table(rows)

	p.section("")
	p.table([][]string{
		{"", "FIT", "PLACE", "EVICTS"},
		append([]string{"Now"}, prospectRow(r.Now)...),
		append([]string{"Then"}, prospectRow(r.Then)...),
	})
	p.blocked(r)
	p.preemption(evictTitle(r.Then), r.Then.Preemption, r.At)
	p.moved(r.Moved)
	if len(r.Notes) > 0 {
		p.section("")
		for _, note := range r.Notes {
			p.printf("Note: %s.\n", note)
		}
	}
	p.section("")
	p.printf("Nothing was changed. It is judged as if it were tried next.\n")
	p.limited(r.Only)
	return p.err
}

func asked(r record.WhatIf) string {
	if r.Pod != nil {
		return "pod " + r.Pod.Key()
	}
	return "gang " + r.Gang
}

// wouldBe returns the answer in a few words.
func wouldBe(r record.WhatIf) string {
	then := r.Then
	switch then.Outcome {
	case record.Fits:
		return "would be placed on " + where(then)
	case record.FitsEvict:
		return fmt.Sprintf("would be placed on %s once %s evicted", where(then),
			were(then.Preemption.VictimCount(), "pod is", "pods are")) + earliest(then.Preemption)
	case record.HasPlace:
		return "would keep its place"
	case record.NoneLeft:
		return "would not wait any more"
	case record.MayNot:
		return "would not be tried: " + then.Reason
	case record.FitsNot:
		still := ""
		if r.Now.Outcome == record.FitsNot {
			still = "still "
		}
		if g := then.Gang; g != nil {
			return fmt.Sprintf("would %snot fit, with places for %d of the %d pods that it needs", still, g.Placed,
				g.Needed)
		}
		return "would " + still + "fit no node"
	}
	return "cannot be predicted: " + then.Reason
}

// is returns the present state.
func is(now record.Prospect) string {
	switch now.Outcome {
	case record.Fits:
		return "it fits"
	case record.FitsEvict:
		return fmt.Sprintf("it would evict %s", count(now.Preemption.VictimCount(), "pod")) + earliest(now.Preemption)
	case record.HasPlace:
		if now.Node == "" {
			return "it has its places"
		}
		return "it is on " + now.Node
	case record.NoneLeft:
		return "none of it waits"
	case record.MayNot:
		return "it is not tried: " + now.Reason
	case record.FitsNot:
		if g := now.Gang; g != nil {
			return fmt.Sprintf("there are places for %d of %d pods", g.Placed, g.Needed)
		}
		return "it fits no node"
	}
	return now.Reason
}

// where returns the nodes of a prospect, the one with the most pods first.
func where(p record.Prospect) string {
	if len(p.Places) == 0 {
		return p.Node
	}
	pods := map[string]int{} // node -> pods that go there
	var nodes []string
	for _, at := range p.Places {
		if pods[at.Node]++; pods[at.Node] == 1 {
			nodes = append(nodes, at.Node)
		}
	}
	slices.SortStableFunc(nodes, func(a, b string) int {
		return cmp.Or(cmp.Compare(pods[b], pods[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, node := range nodes {
		if i == victimsShown && len(nodes) > victimsShown+1 {
			parts = append(parts, fmt.Sprintf("and %d nodes more", len(nodes)-i))
			break
		}
		if pods[node] > 1 {
			node += fmt.Sprintf(" (%d)", pods[node])
		}
		parts = append(parts, node)
	}
	return strings.Join(parts, ", ")
}

func prospectRow(p record.Prospect) []string {
	fit := "-"
	switch {
	case p.Gang != nil:
		fit = fmt.Sprintf("%d of %d pods", p.Gang.Placed, p.Gang.Needed)
	case p.Fit != nil:
		fit = fmt.Sprintf("%d of %s", p.Fit.Feasible, count(p.Fit.Nodes, "node"))
	}
	evicts := "-"
	if v := p.Preemption; v != nil {
		evicts = "no pod"
		if v.VictimCount() > 0 {
			evicts = count(v.VictimCount(), "pod")
		}
	}
	return []string{fit, dash(where(p)), evicts}
}

// blocked writes what still prevents its placement.
func (p *page) blocked(r record.WhatIf) {
	switch then := r.Then; {
	case then.Outcome != record.FitsNot && then.Outcome != record.FitsEvict && !p.wide:
	case then.Fit != nil && then.Fit.PreFilterReason != "":
		p.section("")
		p.printf("Every node is refused: %s\n", then.Fit.PreFilterReason)
	case then.Fit != nil:
		if len(then.Fit.Reasons) > 0 {
			p.section("Then, what keeps it off nodes:")
			rows := [][]string{{"  NODES", "PLUGIN", "REASON", "EXAMPLES"}}
			for _, reason := range then.Fit.Reasons {
				rows = append(rows, []string{"  " + fmt.Sprint(reason.Nodes), reason.Plugin, reason.Reason,
					examples(reason)})
			}
			p.table(rows)
		}
		p.remedies(then.Fit)
	case then.Gang != nil && then.Outcome == record.FitsNot:
		p.section("")
		p.printf("Then: %s", then.Gang.Verdict)
		if then.Gang.Blocked != "" {
			p.printf("; %s: %s", then.Gang.Blocked, then.Gang.Message)
		}
		p.printf("\n")
		if then.Gang.Proof != "" {
			p.printf("%s\n", then.Gang.Proof)
		}
	}
	if p.wide && len(r.Then.Places) > 0 {
		p.section("Then, where its pods go:")
		var rows [][]string
		for _, at := range r.Then.Places {
			rows = append(rows, []string{"  " + at.Pod.Name, at.Node})
		}
		p.table(rows)
	}
}

func evictTitle(then record.Prospect) string {
	if then.Preemption != nil && then.Preemption.Node != "" {
		return "Then it evicts, " + freedOn(then.Preemption) + ":"
	}
	return "Then, preemption:"
}

// freedOn returns where evictions free capacity: the victims of a pod are on one node, a gang is placed on several.
func freedOn(r *record.Preemption) string {
	if len(r.Places) > 0 {
		return "for capacity on " + where(record.Prospect{Places: r.Places})
	}
	return "from " + r.Node
}

// moved writes what happens to the pods that leave.
func (p *page) moved(m *record.Moved) {
	if m == nil || m.Tried+m.OtherSchedulers == 0 { // the conditions show already that no pod is created again
		return
	}
	p.section("")
	if m.Pods == 1 {
		p.printf("Of the pod that leaves:")
	} else {
		p.printf("Of the %d pods that leave:", m.Pods)
	}
	var parts []string
	if m.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d %s gone for good (no controller)", m.Lost, verb(m.Lost, "is", "are")))
	}
	if m.Tried > 0 {
		parts = append(parts, fmt.Sprintf("%d %s another place, %d %s none", m.Fit, verb(m.Fit, "finds", "find"),
			m.Tried-m.Fit, verb(m.Tried-m.Fit, "finds", "find")))
	}
	if m.OtherSchedulers > 0 {
		parts = append(parts, fmt.Sprintf("%d %s placed by other schedulers", m.OtherSchedulers,
			verb(m.OtherSchedulers, "is", "are")))
	}
	p.printf(" %s.", strings.Join(parts, "; "))
	if m.First > 0 {
		p.printf(" %s higher priority, and %s first.", were(m.First, "of them has", "of them have"),
			verb(m.First, "goes", "go"))
	}
	p.printf("\n")
	for _, b := range m.Blocked {
		p.printf("  %s: %s\n", b.Pod.Key(), b.Message)
	}
	if more := m.Tried - m.Fit - len(m.Blocked); more > 0 && len(m.Blocked)+m.BlockedElsewhere > 0 {
		p.printf("  and %d more without a place\n", more)
	}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
