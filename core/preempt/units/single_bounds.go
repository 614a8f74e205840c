// SPDX-License-Identifier: Apache-2.0

package units

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// boundRows computes a lower bound for each row. `room` reports that a row has enough capacity already once terminating
// pods are gone; sure is false if more than sums decide.
func (o *singlePod) boundRows() (room, sure bool) {
	for n := range cluster.NodeIdx(len(o.index.rows)) {
		row := &o.index.rows[n]
		for _, p := range row.terminating {
			if o.isStuck(p) {
				o.stuck = append(o.stuck, p)
			} else {
				o.terminating = append(o.terminating, p)
			}
		}
		if room || o.s.Node(n) == nil {
			continue
		}
		fits := o.out.Verdict(n) == plugin.Fits
		switch {
		case fits, o.whatIf.AmountsReject(n):
		case o.whatIf.Hopeless(n):
			continue
		default:
			return false, false
		}
		if row.tooLarge || !o.measure(n) {
			return false, false
		}
		if fits || o.met() {
			room = true
			continue
		}
		o.boundRow(n)
	}
	return room, true
}

// boundRow computes the lower bound of a row. A set that costs no more than the bound is the row's cheapest one;
// otherwise the row is queued.
func (o *singlePod) boundRow(n cluster.NodeIdx) {
	least := Loss{}
	whole := o.lacks
	enough := o.lowestPriorities(n, 0)
	if !enough && o.budgets.Len() > 0 {
		least.Violations = 1
		o.lacks = whole
		enough = o.lowestPriorities(n, 1)
	}
	if o.lacks = whole; !enough {
		return
	}
	least.Highest = o.pool[len(o.pool)-1].priority
	least.Units = o.fewest(o.pool, &o.lacks)
	if o.found && o.noLess(victim.On(n, Loss{least.Violations, least.Highest, least.Units, 0, victim.NotStarted})) {
		return
	}
	l := victim.On(n, least)
	if least.Units == 1 {
		if o.oneUnit(l) {
			return
		}
		l.Loss.Units = 2 // no unit holds enough alone
	}
	l.Loss.Oldest, l.Loss.Pods = o.newest(l.Loss.Units, least.Highest), o.fewestPods(l.Loss.Units)
	switch {
	case o.found && o.noLess(l):
	case l.Loss.Units > 1 && o.fewestLargest(l):
	default:
		o.queue = append(o.queue, l)
	}
}

// newest returns the latest possible start of the oldest of so many units, one of which must have the given priority.
func (o *singlePod) newest(units int, priority int32) record.Time {
	top := record.Time(math.MinInt64)
	o.ages = o.ages[:0]
	for i := range o.pool {
		c := &o.pool[i]
		if o.ages = append(o.ages, c.oldest); c.priority == priority {
			top = max(top, c.oldest)
		}
	}
	slices.Sort(o.ages)
	return min(top, o.ages[max(0, len(o.ages)-units)])
}

// oneUnit looks for one unit that is enough: the smallest, of equal ones the newest. done is false if there is none.
// Its loss is the row's smallest, unless budgets may matter; then the row is queued.
func (o *singlePod) oneUnit(l victim.Bound[Loss]) (done bool) {
	at := -1
	better := func(c *choice, ties bool) bool {
		was := &o.pool[at]
		return c.pods < was.pods || c.pods == was.pods &&
			(c.oldest > was.oldest || ties && c.oldest == was.oldest && o.smaller(c, was))
	}
	for k := range o.pool {
		if c := &o.pool[k]; o.isEnough(c) && (at < 0 || better(c, false)) {
			at = k
		}
	}
	if at < 0 {
		return false
	}
	exact := l
	exact.Loss.Pods, exact.Loss.Oldest = o.pool[at].pods, o.pool[at].oldest
	if o.found && o.noLess(exact) && o.budgets.Len() == 0 {
		return true
	}
	for k := range o.pool {
		if c := &o.pool[k]; o.isEnough(c) && better(c, true) {
			at = k
		}
	}
	if !o.offer(o.pool[at:at+1], exact) {
		l.Loss.Pods, l.Loss.Oldest = 1, victim.NotStarted
		o.queue = append(o.queue, l)
	}
	return true
}

// lowestPriorities collects the row's units of the lowest priorities that hold together what it lacks. If no violation
// of a budget is allowed, units that violate one by themselves are left out. It is false if all hold too little, or if
// that costs more than the best one, given the allowed number of violations.
func (o *singlePod) lowestPriorities(n cluster.NodeIdx, violations int) bool {
	harmless := violations == 0 && o.budgets.Len() > 0
	row := &o.index.rows[n]
	alone, parts := row.pods, row.parts
	o.pool = o.pool[:0]
	for len(alone)+len(parts) > 0 {
		priority := int32(math.MaxInt32)
		if len(alone) > 0 {
			priority = alone[len(alone)-1].Priority
		}
		if len(parts) > 0 {
			priority = min(priority, parts[len(parts)-1].priority)
		}
		costsMore := o.found && o.best.Loss.Violations <= violations && priority > o.best.Loss.Highest
		if costsMore || whyStays(o.q, priority, "") != "" {
			return false
		}
		for last := len(alone) - 1; last >= 0 && alone[last].Priority == priority; last-- {
			if c := &alone[last]; (!o.selective || o.mayGo(n, c.Pod)) && (!harmless || !o.violates(c.Pod)) {
				o.addPod(c)
			}
			alone = alone[:last]
		}
		for last := len(parts) - 1; last >= 0 && parts[last].priority == priority; last-- {
			part := &parts[last]
			if (!o.selective || o.gangMayGo(part.gang)) && (!harmless || !o.gangViolates(part.gang)) {
				o.addGangPart(part)
			}
			parts = parts[:last]
		}
		if len(o.pool) > 0 && o.met() {
			return true
		}
	}
	return false
}

// fewest returns the least number of units of a pool that may hold what is lacking.
func (o *singlePod) fewest(pool []choice, lacks *[mostNeeds]int64) (units int) {
	units = 1
	for i := range o.shortage.Needs {
		if lacks[i] <= 0 {
			continue
		}
		most := int64(1)
		for k := range pool {
			most = max(most, pool[k].held[i])
		}
		units = max(units, int((lacks[i]+most-1)/most))
	}
	return units
}

// fewestPods returns the least number of pods of so many units of the pool.
func (o *singlePod) fewestPods(units int) (pods int) {
	if o.space = o.space[:0]; units > len(o.pool) {
		return units
	}
	for i := range o.pool {
		o.space = append(o.space, o.pool[i].pods)
	}
	slices.Sort(o.space)
	for _, more := range o.space[:units] {
		pods += more
	}
	return pods
}

// fewestLargest looks for a set that costs no more than the bound: of the units that are new enough, those that hold
// most of what is scarce.
func (o *singlePod) fewestLargest(l victim.Bound[Loss]) bool {
	pool := slices.DeleteFunc(o.pool, func(c choice) bool { return c.oldest < l.Loss.Oldest })
	if l.Loss.Units > len(pool) {
		return false
	}
	o.byWorth(pool)
	set := pool[:l.Loss.Units]
	lacks := o.lacks
	for k := range set {
		for i := range o.shortage.Needs {
			lacks[i] -= set[k].held[i]
		}
	}
	for i := range o.shortage.Needs {
		if lacks[i] > 0 {
			return false
		}
	}
	return o.offer(set, l)
}
