// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Decision writes one attempt: rejections by plugin, the best scores, the result.
func Decision(w io.Writer, d record.Decision) error {
	p := &page{w: w, wide: true}
	p.printf("  decision %d", d.Number)
	if d.Instance != "" {
		p.printf(" of %s", d.Instance)
	}
	p.printf(": pod %s, attempt %d: %s", d.Pod.Key(), d.Attempt, d.Verdict)
	if d.Nodes > 0 { // an attempt that failed at its bind searched none again
		p.printf(", %d of %s fit", d.Feasible, count(d.Nodes, "node"))
		if d.Path != "" {
			p.printf(" (%s)", d.Path)
		}
	}
	if g := d.Gang; g != nil {
		p.printf(", in gang %s: %d of %s placed, %d needed (decision %d)", g.Name, g.Placed, count(g.Members, "pod"),
			g.Quorum, g.Decision)
	}
	p.printf("\n")
	for _, r := range d.Reasons {
		p.printf("    filter %s: %s, %s (%s)\n", r.Plugin, count(r.Nodes, "node"), r.Reason, examples(r))
	}
	if d.Winner != nil && len(d.Winner.Scores) > 0 {
		rows := scoreRows(&d, true)
		for i := range rows {
			rows[i][0] = "    " + rows[i][0]
		}
		p.table(rows)
	}
	if d.Message != "" {
		p.printf("    %s\n", d.Message)
	}
	if v := d.Preemption; v != nil && v.Node != "" {
		var victims []string
		for _, one := range v.Victims {
			victims = append(victims, fmt.Sprintf("%s (priority %d)", one.Pod.Key(), one.Priority))
		}
		p.printf("    evicts, %s: %s\n", freedOn(v), strings.Join(victims, ", "))
	}
	return p.err
}
