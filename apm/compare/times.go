// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
)

// table has a value of each pod in each round of a side: round -> pod -> value. Pods have the same index in all rounds
// of both sides.
type table [][]float64

// statistic is a value of the pods of a round, each counted as often as weight says.
type statistic struct {
	name string
	of   func(o ordered, weight []int, total int) float64
}

var statistics = []statistic{
	{"mean", func(o ordered, weight []int, total int) float64 {
		sum := 0.0
		for i, v := range o.values {
			sum += v * float64(weight[i])
		}
		return sum / float64(total)
	}},
	{"median", func(o ordered, weight []int, total int) float64 { return o.quantile(0.5, weight, total) }},
	{"p99", func(o ordered, weight []int, total int) float64 { return o.quantile(0.99, weight, total) }},
}

// matched returns the pods that have a value in every round of both sides, sorted, and how many only one side has.
func matched(a, b []map[string]float64) (both []string, onlyA, onlyB int) {
	in := func(rounds []map[string]float64, pod string) bool {
		for _, r := range rounds {
			if _, has := r[pod]; !has {
				return false
			}
		}
		return true
	}
	some := func(rounds []map[string]float64) map[string]bool {
		all := map[string]bool{} // pod -> in at least one round
		for _, r := range rounds {
			for pod := range r { // order: a set
				all[pod] = true
			}
		}
		return all
	}
	inA, inB := some(a), some(b)
	for pod := range inA { // order: sorted below
		switch {
		case in(a, pod) && in(b, pod):
			both = append(both, pod)
		case !inB[pod]:
			onlyA++
		}
	}
	for pod := range inB { // order: a sum
		if !inA[pod] {
			onlyB++
		}
	}
	slices.Sort(both)
	return both, onlyA, onlyB
}

func tableOf(rounds []map[string]float64, names []string) table {
	t := make(table, len(rounds))
	for i, r := range rounds {
		for _, pod := range names {
			t[i] = append(t[i], r[pod])
		}
	}
	return t
}

// compare returns the row of a statistic over pods.
func (s *statistic) compare(name string, a, b table) Row {
	row := Row{Name: name, Unit: Nanoseconds}
	n := len(a[0])
	x, y := a.ordered(), b.ordered()
	ones := make([]int, n)
	for i := range ones {
		ones[i] = 1
	}
	all := func(side []ordered) []float64 {
		list := make([]float64, len(side))
		for i, o := range side {
			list[i] = s.of(o, ones, n)
		}
		return list
	}
	va, vb := mean(all(x)), mean(all(y))
	d := vb - va
	row.A, row.B, row.Diff = &va, &vb, &d
	if n < fewest {
		row.Why = fmt.Sprintf("no interval: %d pods are too few", n)
		return row
	}
	kind := FromPods
	if len(a) >= fewest && len(b) >= fewest {
		kind = FromRounds
	}
	weight := make([]int, n)
	row.Interval = bootstrap(kind, func(draw *draws) float64 {
		clear(weight)
		r := &draws{number: draw.number + resamples, made: map[int][]int{}} // so that pods and rounds are independent
		for _, i := range draw.of(n) {
			weight[i]++
		}
		side := func(list []ordered) float64 {
			sum := 0.0
			for i := range list {
				at := i
				if kind == FromRounds {
					at = r.of(len(list))[i]
				}
				sum += s.of(list[at], weight, n)
			}
			return sum / float64(len(list))
		}
		return side(y) - side(x)
	})
	return row
}

func (t table) ordered() []ordered {
	list := make([]ordered, len(t))
	for i := range t {
		list[i] = orderedOf(t[i])
	}
	return list
}

// addPods adds the time from creation to bind.
func (c *Comparison) addPods(a, b []Round) {
	times := func(rounds []Round) []map[string]float64 {
		list := make([]map[string]float64, len(rounds))
		for i := range rounds {
			list[i] = map[string]float64{}
			if rounds[i].Pods == nil {
				continue
			}
			for _, p := range rounds[i].Pods.Pods {
				if p.Bound != 0 {
					list[i][p.Key()] = float64(p.Bound - p.Created)
				}
			}
		}
		return list
	}
	x, y := times(a), times(b)
	c.A.Pods, c.B.Pods = different(x), different(y)
	var both []string
	both, c.OnlyA, c.OnlyB = matched(x, y)
	c.Matched = len(both)
	why := func(r *Round) string {
		if r.Pods == nil {
			return r.PodsWhy
		}
		return ""
	}
	c.Pods = rowsOf("created to bound", x, y, both, join(reason("A", a, why), reason("B", b, why)))
}

// different returns the number of different pods.
func different(rounds []map[string]float64) int {
	all := map[string]bool{} // pod -> in a round
	for _, r := range rounds {
		for pod := range r { // order: a set
			all[pod] = true
		}
	}
	return len(all)
}

// rowsOf returns a row for each statistic. Without common pods, they have no values, for a reason.
func rowsOf(name string, a, b []map[string]float64, both []string, why string) []Row {
	if len(both) == 0 && why == "" {
		why = "no pod has the same namespace and name in all recordings"
	}
	var rows []Row
	for i := range statistics {
		s := &statistics[i]
		full := name + ", " + s.name
		if len(both) == 0 {
			rows = append(rows, Row{Name: full, Unit: Nanoseconds, Why: why})
			continue
		}
		rows = append(rows, s.compare(full, tableOf(a, both), tableOf(b, both)))
	}
	return rows
}

// addPhases adds the mean time of each phase, of the pods whose phases are complete in all rounds of both sides. A pod
// that was never in a phase was in it for 0.
func (c *Comparison) addPhases(a, b []Round) {
	why := func(r *Round) string {
		if r.Journeys == nil {
			return r.JourneysWhy
		}
		return ""
	}
	if text := join(reason("A", a, why), reason("B", b, why)); text != "" {
		c.Phases = []Row{{Name: "phases", Unit: Nanoseconds, Why: text}}
		return
	}
	totals := func(rounds []Round) (list []map[string]float64, order []string) {
		for i := range rounds {
			per := map[string]float64{}
			for k := range rounds[i].Journeys {
				if j := &rounds[i].Journeys[k]; j.Whole() {
					per[j.Key()] = float64(j.Ended - j.Began)
					for _, s := range j.Spans {
						if !slices.Contains(order, s.Phase) {
							order = append(order, s.Phase)
						}
					}
				}
			}
			list = append(list, per)
		}
		return list, order
	}
	x, orderA := totals(a)
	y, orderB := totals(b)
	both, _, _ := matched(x, y)
	if len(both) == 0 {
		c.Phases = rowsOf("phases", x, y, nil, "")[:1]
		return
	}
	names := map[string]bool{} // pod -> matched
	for _, pod := range both {
		names[pod] = true
	}
	for _, phase := range phaseOrder(orderA, orderB) {
		inA, inB := inPhase(a, names, phase), inPhase(b, names, phase)
		c.Phases = append(c.Phases, statistics[0].compare(phase, tableOf(inA, both), tableOf(inB, both)))
	}
	c.Phases = append(c.Phases, statistics[0].compare("all phases", tableOf(x, both), tableOf(y, both)))
}

// knownPhases are kumiki's phases in the order in which an attempt goes through them.
var knownPhases = []string{"inbox", "gated", "unschedulable", "backoff", "active", "deciding", "preparing",
	"bind-queued", "limited", "sent", "answered", "confirming"}

// phaseOrder returns the phases of both sides: known ones in their order, then others by name.
func phaseOrder(a, b []string) []string {
	var known, others []string
	for _, p := range knownPhases {
		if slices.Contains(a, p) || slices.Contains(b, p) {
			known = append(known, p)
		}
	}
	for _, p := range slices.Concat(a, b) {
		if !slices.Contains(knownPhases, p) && !slices.Contains(others, p) {
			others = append(others, p)
		}
	}
	slices.Sort(others)
	return append(known, others...)
}

// inPhase returns the time of pods in a phase.
func inPhase(rounds []Round, names map[string]bool, phase string) []map[string]float64 {
	list := make([]map[string]float64, len(rounds))
	for i := range rounds {
		list[i] = map[string]float64{}
		for k := range rounds[i].Journeys {
			j := &rounds[i].Journeys[k]
			if !j.Whole() || !names[j.Key()] {
				continue
			}
			sum := 0.0
			for _, s := range j.Spans {
				if s.Phase == phase {
					sum += float64(s.Took)
				}
			}
			list[i][j.Key()] = sum
		}
	}
	return list
}
