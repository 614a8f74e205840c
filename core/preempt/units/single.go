// SPDX-License-Identifier: Apache-2.0

package units

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// singlePod is the search for one pod if amounts alone decide on each node. Then one node must have enough capacity,
// each victim holds some of it, and sums say which units are enough. Each row gets a lower bound on its loss; the
// cheapest set is computed for those that may cost less than the best one found. The answer is the smallest loss, and
// one dry run confirms it.
type singlePod struct {
	s          cluster.Snapshot
	q          *Question
	index      *index
	candidates *candidates
	budgets    *victim.Budgets
	out        place.Outcome
	whatIf     *place.WhatIf
	shortage   victim.Shortage
	own        int32 // id of the preemptor's gang, or noGang
	selective  bool  // some units of lower priority may not be evicted

	barred    []tristate // id -> the gang may not be evicted
	violating []tristate // id -> the gang violates a budget by itself

	pool  []choice // units on the current row
	lacks [mostNeeds]int64
	space []int
	ages  []record.Time

	terminating []*cluster.Pod      // terminating pods whose capacity is counted on
	stuck       []*cluster.Pod      // all other terminating pods
	queue       victim.Bounds[Loss] // rows that may cost less than the best one
	found       bool
	best        victim.Bound[Loss]
	victims     []choice // of the best row
	stepsLeft   int      // see singlePodSteps
}

// choice is a unit that may be evicted from a row.
type choice struct {
	pod      *cluster.Pod // nil for a gang
	gang     int32        // id
	priority int32
	pods     int
	oldest   record.Time
	held     [mostNeeds]int64 // resource -> what it holds on the row
}

// tristate is a boolean that may not have been computed yet.
type tristate uint8

const (
	unasked tristate = iota
	no
	yes
)

const (
	// mostNeeds is the largest number of resources that one pod may need here; others take the search for gangs.
	mostNeeds = 6
	// singlePodSteps bounds the units that are combined on the way to the cheapest sets.
	singlePodSteps = 1 << 18
)

// prepare starts the search; ok is false if sums may not decide.
func (o *singlePod) prepare() (ok bool) {
	p, noms := o.q.Members[0], nominationsOfOthers(o.q)
	if len(p.Spec.Volumes) > 0 || p.Spec.Devices != nil {
		return false
	}
	o.out = o.q.Placement.Placer.Explain(o.s, p, noms)
	if o.out.Err != nil || !o.q.Placement.Placer.Alone(o.out) {
		return false
	}
	o.whatIf = o.q.Placement.Placer.WhatIf(o.s, o.out)
	o.shortage.Prepare(o.s, o.whatIf)
	if !o.shortage.Exact || !o.shortage.Known || len(o.shortage.Needs) > mostNeeds {
		return false
	}
	o.own = noGang
	if id, is := o.index.ids[o.q.Own]; is {
		o.own = id
	}
	o.selective = o.own != noGang || o.q.Never != nil
	o.barred, o.violating = forget(o.barred, len(o.index.gangs)), forget(o.violating, len(o.index.gangs))
	return true
}

func forget(list []tristate, n int) []tristate {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// measure makes a row the current one and computes what it lacks with terminating pods gone and expected pods
// present. It is false if amounts are too large for sums.
func (o *singlePod) measure(n cluster.NodeIdx) bool {
	o.shortage.Measure(n)
	for i := range o.shortage.Needs {
		o.lacks[i] = o.shortage.Needs[i].Lacks
	}
	for _, p := range o.whatIf.ExpectedOn(n) {
		if victim.TooLarge(&p.Spec.Held) {
			return false
		}
		for i := range o.shortage.Needs {
			o.lacks[i] += o.shortage.Needs[i].HeldBy(p)
		}
	}
	for _, p := range o.index.rows[n].terminating {
		for i := range o.shortage.Needs {
			if !o.isStuck(p) {
				o.lacks[i] -= o.shortage.Needs[i].HeldBy(p)
			}
		}
	}
	return true
}

// isStuck reports whether the capacity of a terminating pod must not be counted on.
func (o *singlePod) isStuck(p *cluster.Pod) bool { return o.q.Stuck != nil && o.q.Stuck(p) }

func (o *singlePod) met() bool {
	for i := range o.shortage.Needs {
		if o.lacks[i] > 0 {
			return false
		}
	}
	return true
}

// smaller reports whether a is evicted before b: the smaller unit, of equal ones the newer, then the one that the
// reference algorithm spares later.
func (o *singlePod) smaller(a, b *choice) bool {
	switch {
	case a.pods != b.pods:
		return a.pods < b.pods
	case a.oldest != b.oldest:
		return a.oldest > b.oldest
	}
	return victim.CompareNames(o.first(a), o.first(b)) > 0
}

// first returns the pod by whose name a unit is ordered.
func (o *singlePod) first(c *choice) *cluster.Pod {
	if c.pod != nil {
		return c.pod
	}
	return o.index.live(c.gang)[0].pod
}

// byWorth orders units: those that hold most first, of equal ones those that are evicted first.
func (o *singlePod) byWorth(pool []choice) {
	slices.SortFunc(pool, func(a, b choice) int {
		if d := o.worth(&b) - o.worth(&a); d != 0 {
			return int(d)
		}
		if o.smaller(&a, &b) {
			return -1
		}
		return 1
	})
}

func (o *singlePod) isEnough(c *choice) bool {
	for i := range o.shortage.Needs {
		if c.held[i] < o.lacks[i] {
			return false
		}
	}
	return true
}

// noLess reports whether a row with a bound is no better than the best one.
func (o *singlePod) noLess(l victim.Bound[Loss]) bool { return !victim.Before(&l, &o.best) }

// addChoice adds a unit to the pool and subtracts what it holds from what is lacking. pods are those of a gang on the
// row.
func (o *singlePod) addChoice(held *victim.Entry, pods []*cluster.Pod) *choice {
	o.pool = append(o.pool, choice{gang: noGang, pods: 1})
	c := &o.pool[len(o.pool)-1]
	for i := range o.shortage.Needs {
		c.held[i] = o.shortage.Needs[i].HeldTogether(held, pods)
		o.lacks[i] -= c.held[i]
	}
	return c
}

// addPod adds a single pod to the pool.
func (o *singlePod) addPod(p *victim.Entry) {
	c := o.addChoice(p, nil)
	c.pod, c.priority, c.oldest = p.Pod, p.Priority, p.Start
}

// addGangPart adds a gang to the pool by what it holds on the row.
func (o *singlePod) addGangPart(part *gangPart) {
	g, c := &o.index.gangs[part.gang], o.addChoice(&part.held, part.pods)
	c.gang, c.priority, c.pods, c.oldest = part.gang, part.priority, len(g.members), g.oldest
}

// enoughWorth is the worth of a unit that holds all that is lacking.
const enoughWorth = 1000

// worth returns how much of what the row lacks a unit holds, in thousandths, for the resource of which it holds the
// smallest share.
func (o *singlePod) worth(c *choice) int64 {
	least := int64(enoughWorth)
	for i := range o.shortage.Needs {
		if lacks := o.lacks[i]; lacks > 0 && c.held[i] < lacks {
			least = min(least, min(c.held[i]/max(lacks/enoughWorth, 1), enoughWorth-1))
		}
	}
	return least
}

// offer makes a set the best one if its loss equals its bound, which no other set on the row is below.
func (o *singlePod) offer(set []choice, l victim.Bound[Loss]) bool {
	if o.costs(set) != l.Loss {
		return false
	}
	if o.found && o.noLess(l) {
		return true
	}
	o.best, o.found = l, true
	o.victims = append(o.victims[:0], set...)
	return true
}

// costs returns the loss of evicting a set.
func (o *singlePod) costs(set []choice) Loss {
	if o.budgets.Len() > 0 {
		return o.candidates.loss(o.load(set))
	}
	l := noLoss()
	for i := range set {
		l.with(&set[i])
	}
	return l
}

// with counts a choice, except for its violations.
func (l *Loss) with(c *choice) {
	l.Units++
	l.Pods += c.pods
	l.Highest = max(l.Highest, c.priority)
	l.Oldest = min(l.Oldest, c.oldest)
}

// load makes a set the candidates, and lists them.
func (o *singlePod) load(set []choice) []int {
	o.candidates.reset()
	o.loadInto(set)
	return o.candidates.every()
}

// loadInto adds units to the candidates in order.
func (o *singlePod) loadInto(set []choice) {
	us := o.candidates
	for i := range set {
		c := &set[i]
		u := unit{priority: c.priority, oldest: c.oldest, lo: int32(len(us.pods))}
		if c.pod != nil {
			us.pods = append(us.pods, podAt{c.pod, cluster.NoNode})
		} else {
			u.gang = o.index.gangs[c.gang].key
			us.pods = append(us.pods, goesWith(o.index.live(c.gang))...)
		}
		u.hi = int32(len(us.pods))
		us.all = append(us.all, u)
	}
	us.guard(o.budgets)
}
