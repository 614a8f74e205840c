// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Regret writes by how much chosen nodes scored below the best ones.
func Regret(w io.Writer, r record.Regret) error {
	p := &page{w: w}
	p.printf("Decisions:  %d, of which %d were compared, %d came to nothing (conflicts)\n", r.Decisions, r.Judged,
		r.Conflicts)
	for _, s := range r.Skipped {
		p.printf("            %d not compared: %s\n", s.Decisions, s.Why)
	}
	if r.Judged == 0 {
		return p.err
	}
	p.printf("Regret:     %d of %d have some; in all %d of %d points (%s)\n", r.WithRegret, r.Judged, r.Sum, r.Best,
		sharePart(r.Sum, r.Best))
	p.section("")
	p.table(causeRows(r, "CAUSE"))
	if len(r.Worst) > 0 {
		p.section("Worst:")
		rows := [][]string{{"DECISION", "POD", "NODE", "SCORE", "BEST NODE", "SCORE", "CAUSES"}}
		for _, e := range r.Worst {
			var causes []string
			for _, c := range record.RegretCauses {
				if part := e.Causes[c]; part != 0 {
					causes = append(causes, fmt.Sprintf("%s %d", c, part))
				}
			}
			rows = append(rows, []string{fmt.Sprint(e.Decision), plain(e.Pod.Key()), plain(e.Node), fmt.Sprint(e.Total),
				plain(e.Best), fmt.Sprint(e.BestHas), strings.Join(causes, ", ")})
		}
		p.table(rows)
	}
	return p.err
}

// profileRegret writes the regret of a profile; nil if it is not known.
func (p *page) profileRegret(r *record.Regret) {
	p.section("")
	if r == nil {
		p.printf("Regret:     -\n")
		return
	}
	p.printf("Regret:     %d of %d compared decisions (of %d) have some; in all %d of %d points (%s)\n", r.WithRegret,
		r.Judged, r.Decisions, r.Sum, r.Best, sharePart(r.Sum, r.Best))
	for _, s := range r.Skipped {
		p.printf("            %d not compared: %s\n", s.Decisions, s.Why)
	}
	if r.Judged+r.Conflicts > 0 {
		p.section("")
		p.table(causeRows(*r, "REGRET BY"))
	}
}

// causeRows has a row for each cause of regret. A conflict has no points: there is no node that the pod is on.
func causeRows(r record.Regret, head string) [][]string {
	rows := [][]string{{head, "DECISIONS", "POINTS", "SHARE", "MOST"}}
	for _, c := range r.Causes {
		rows = append(rows, []string{string(c.Cause), fmt.Sprint(c.Decisions), fmt.Sprint(c.Sum),
			sharePart(c.Sum, r.Sum), fmt.Sprint(c.Max)})
	}
	return append(rows, []string{"conflict", fmt.Sprint(r.Conflicts), "-", "-", "-"})
}

// sharePart writes a part of a whole; a dash without a whole.
func sharePart(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(whole))
}
