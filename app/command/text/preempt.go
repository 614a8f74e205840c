// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// victimsShown is how many victims and other choices the plain page lists; -o wide lists all.
const victimsShown = 8

// evictions writes which pods a decision had evicted: the last one, or one before it.
func (p *page) evictions(last, before *record.Decision, at record.Time) {
	d := before
	if last != nil && last.Preemption.Evicts() {
		d = last
	}
	if d != nil {
		p.preemption(fmt.Sprintf("Evicted for it %s ago, %s (decision %d):", Ago(d.At, at), freedOn(d.Preemption),
			d.Number), d.Preemption, at)
	}
}

// wouldEvict writes which pods a decision would evict now, and which stay, and why. It does not repeat the text of
// last.
func (p *page) wouldEvict(last *record.Decision, now *record.Preemption, at record.Time) {
	switch {
	case now == nil:
	case now.Node != "" && now.DelayedUntil > at:
		p.preemption("Evicts after a wait for new nodes, "+freedOn(now)+":", now, at)
	case now.Node != "":
		p.preemption("If tried now, it evicts, "+freedOn(now)+":", now, at)
	case last == nil || now.Message == "" || len(now.Considered) > 0 ||
		!strings.Contains(last.Message, now.Message) || p.wide:
		p.preemption("Preemption, if tried now:", now, at)
	}
}

// preemption writes which pods are evicted, the cost, and the alternatives; or why no pod is evicted.
func (p *page) preemption(title string, r *record.Preemption, at record.Time) {
	if r == nil {
		return
	}
	p.section(title)
	if r.Node == "" {
		p.printf("  %s\n", noVictims(r))
	} else {
		if r.DelayedUntil > at {
			p.printf("  Preemption is possible, but it waits until %s (%s more) for new nodes: preemption.after.\n",
				clock(r.DelayedUntil), span(r.DelayedUntil-at))
		}
		p.units("  EVICTED TOGETHER", r.Units, func(u record.VictimUnit) string { return against(u.Violations) })
		p.inOthers(elsewhere(r).Units, "unit", "")
		p.victims(r)
	}
	if r.Unproved > 0 {
		p.printf("  %s evicted without a proof that the eviction is needed: the proof takes too long.\n",
			were(r.Unproved, "unit was", "units were"))
	}
	if r.PausedUntil > at {
		p.printf("  Other pods took capacity that evictions freed, so no pods are evicted for %s more.\n",
			span(r.PausedUntil-at))
	}
	if r.Wasted > 0 {
		p.printf("  %s evicted for it before without effect.\n", were(r.Wasted, "pod was", "pods were"))
	}
	other := elsewhere(r)
	if n := len(r.Stuck) + other.Stuck; n > 0 {
		p.printf("  Does not count on %s whose grace period ended long ago: %s\n", count(n, "pod"),
			keys(r.Stuck, other.Stuck, p.wide))
	}
	if n := len(r.Awaited) + other.Awaited; n > 0 {
		p.printf("  Waits for the capacity of %s already being deleted: %s\n", count(n, "pod"),
			keys(r.Awaited, other.Awaited, p.wide))
	}
	p.others(r)
}

// clock writes the time of day.
func clock(t record.Time) string { return time.Unix(0, int64(t)).UTC().Format("15:04:05 UTC") }

// earliest writes when pods are evicted at the earliest, if that is not now.
func earliest(r *record.Preemption) string {
	if r.DelayedUntil == 0 {
		return ""
	}
	return fmt.Sprintf(", at %s at the earliest (preemption.after)", clock(r.DelayedUntil))
}

func were(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// noVictims returns why no pod is evicted.
func noVictims(r *record.Preemption) string {
	why := strings.TrimPrefix(strings.TrimPrefix(r.Message, "pod group "), "preemption: ")
	if why == "" {
		return "Evicts no pod."
	}
	return "Evicts no pod: " + why
}

// elsewhere returns the counts of what is in namespaces that the reader may not see.
func elsewhere(r *record.Preemption) record.Elsewhere {
	if r.Elsewhere == nil {
		return record.Elsewhere{}
	}
	return *r.Elsewhere
}

// inOthers writes how many items of a list are in namespaces that the reader may not see.
func (p *page) inOthers(n int, noun, then string) {
	if n > 0 {
		p.printf("  and %s of other namespaces%s\n", count(n, noun), then)
	}
}

// victims lists pods; of units, only on the wide page.
func (p *page) victims(r *record.Preemption) {
	rows := [][]string{{"  POD", "PRIORITY", "NOTE"}}
	if len(r.Units)+elsewhere(r).Units > 0 && !p.wide {
		p.victimsCost(r)
		return
	}
	for i, v := range r.Victims {
		if i == victimsShown && !p.wide && len(r.Victims) > victimsShown+1 {
			break
		}
		rows = append(rows, []string{"  " + v.Pod.Key(), fmt.Sprint(v.Priority), dash(victimNote(v))})
	}
	if len(rows) > 1 || r.VictimCount() == 0 {
		p.table(rows)
	}
	if more := len(r.Victims) - len(rows) + 1; more > 0 {
		p.printf("  and %s; -o wide lists all\n", count(more, "more pod"))
	}
	p.inOthers(elsewhere(r).Victims, "pod", "")
	p.victimsCost(r)
}

func (p *page) victimsCost(r *record.Preemption) {
	if l := r.Loss; l != nil {
		p.printf("  Cost: %s.\n", cost(l))
	}
	if r.Nodes > 1 && len(r.Units) == 0 {
		p.printf("  The cheapest choice; evictions might help on %d nodes.\n", r.Nodes)
	}
	if other := elsewhere(r).Denominated; len(r.Denominated)+other > 0 {
		p.printf("  Lose their nomination there: %s\n", keys(r.Denominated, other, p.wide))
	}
}

func victimNote(v record.Victim) string {
	var notes []string
	if v.Shielded {
		notes = append(notes, "against a disruption budget")
	}
	if v.Agreed {
		notes = append(notes, "as it allows")
	}
	if v.TurnedBack {
		notes = append(notes, "on its way there; waits for a place again")
	}
	if v.Going {
		notes = append(notes, "going already")
	}
	return strings.Join(notes, ", ")
}

// cost returns a loss in the order in which losses are compared.
func cost(l *record.UnitsLoss) string {
	text := "no disruption budget violated"
	if l.Violations > 0 {
		text = "against disruption budgets: " + count(l.Violations, "pod")
	}
	text += fmt.Sprintf("; highest priority %d; ", l.Highest)
	if l.Units != l.Pods {
		text += count(l.Units, "unit") + " of "
	}
	return text + count(l.Pods, "pod")
}

// others writes the alternatives that were not chosen.
func (p *page) others(r *record.Preemption) {
	if len(r.Others) > 0 {
		rows := [][]string{{"  NOT FROM", "VICTIMS", "BUDGETS", "HIGHEST", "WHY NOT"}}
		for i, o := range r.Others {
			if i == victimsShown && !p.wide && len(r.Others) > victimsShown+1 {
				break
			}
			rows = append(rows, []string{"  " + o.Node, fmt.Sprint(o.Victims), fmt.Sprint(o.Violations),
				fmt.Sprint(o.Highest), o.Why})
		}
		p.table(rows)
	}
	p.units("  STAYS", r.Considered, func(u record.VictimUnit) string { return u.Why })
	p.inOthers(elsewhere(r).Considered, "unit", verb(elsewhere(r).Considered, " stays", " stay"))
}

func against(violations int) string {
	if violations == 0 {
		return "-"
	}
	return count(violations, "pod") + " against a disruption budget"
}

// units lists preemption units, if any of them is a gang; single victims have been listed.
func (p *page) units(head string, units []record.VictimUnit, note func(record.VictimUnit) string) {
	if len(units) == 0 {
		return
	}
	rows := [][]string{{head, "PODS", "PRIORITY", "NOTE"}}
	for i, u := range units {
		if i == victimsShown && !p.wide && len(units) > victimsShown+1 {
			break
		}
		name := "pod " + u.Name
		if u.Gang {
			name = "gang " + u.Name
		}
		rows = append(rows, []string{"  " + name, fmt.Sprint(u.Pods), fmt.Sprint(u.Priority), note(u)})
	}
	p.table(rows)
	if more := len(units) - len(rows) + 1; more > 0 {
		p.printf("  and %d more; -o wide lists all\n", more)
	}
}

// keys lists pods by namespace/name, and counts those of namespaces that the reader may not see.
func keys(pods []record.PodRef, others int, all bool) string {
	names := make([]string, 0, len(pods)+1)
	for i, ref := range pods {
		if i == victimsShown && !all && len(pods) > victimsShown+1 {
			names = append(names, fmt.Sprintf("and %d more", len(pods)-i))
			break
		}
		names = append(names, ref.Key())
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d of other namespaces", others))
	}
	return strings.Join(names, ", ")
}
