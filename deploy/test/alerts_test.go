// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestEveryAlertHasItsPanel: the metrics of each alert are on the dashboard, and a panel names each alert about gangs, preemption and
// evictions in its description and shows the metric that fires. It catches an alert after which there is nothing to look at.
func TestEveryAlertHasItsPanel(t *testing.T) {
	about := regexp.MustCompile(`Gang|Preempt|Evict|Victim`)
	panels := readDashboard(t).Panels
	shows := func(p panel, metric string) bool {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, metric+"{") {
				return true
			}
		}
		return false
	}
	named := 0
	for _, r := range rules(t) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			s, is := n.(*parser.VectorSelector)
			if !is {
				return nil
			}
			if first == "" {
				first = s.Name
			}
			for _, p := range panels {
				if shows(p, s.Name) {
					return nil
				}
			}
			t.Errorf("%s: no panel shows %s", r.Alert, s.Name)
			return nil
		})
		if !about.MatchString(r.Alert) {
			continue
		}
		named++
		found := false
		for _, p := range panels {
			found = found || strings.Contains(p.Description, "Alert: "+r.Alert) && shows(p, first)
		}
		if !found {
			t.Errorf("no panel names %s in its description and shows %s", r.Alert, first)
		}
	}
	if named < 4 {
		t.Errorf("only %d alerts are about gangs and evictions", named)
	}
}
