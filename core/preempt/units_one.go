// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// lone is the search for one pod where amounts alone decide on each row: then one row must have room, everybody who goes holds
// some of it, and sums say who is enough. Each row is bounded from below as to what it costs; the cheapest set is worked out
// on those that may cost less than the best found. The answer is the smallest loss there is, and one dry run confirms it.
type lone struct {
	s       cluster.Snapshot
	q       *UnitsQuestion
	ur      *unitRows
	us      *units
	budgets *budgets
	out     place.Outcome
	rel     *place.Relief
	sums    sums
	own     int32 // id of the preemptor's gang, noGang for none
	picky   bool  // not all of lower priority may go

	barred []tristate // by id: a gang may not go
	harms  []tristate // by id: a gang breaks a budget by itself

	pool  []choice // of the row in hand
	lacks [mostNeeds]int64
	space []int
	ages  []record.Time

	going []*cluster.Pod // all that are terminating and counted on
	stuck []*cluster.Pod // all others that are
	queue leads          // rows that may cost less than the best
	found bool
	best  lead
	set   []choice // who goes
	left  int      // steps
}

// lead is a row with what it costs, or with a bound on it.
type lead struct {
	loss UnitsLoss
	row  cluster.NodeIdx
}

// choice is a unit that may go from a row.
type choice struct {
	pod      *cluster.Pod // nil for a gang
	gang     int32        // its id
	priority int32
	pods     int
	oldest   record.Time
	held     [mostNeeds]int64 // on the row, by need
}

// tristate is what is known of a question.
type tristate uint8

const (
	unasked tristate = iota
	no
	yes
)

const (
	// mostNeeds is up to how many amounts one pod may need; those that need more are searched for as gangs are.
	mostNeeds = 6
	// loneSteps is how many units may be thought of in all on the way to the cheapest sets.
	loneSteps = 1 << 18
)

// one answers a question about one pod; done is false where that takes the search that gangs need.
func (f *Finder) one(s cluster.Snapshot, q *UnitsQuestion) (a UnitsAnswer, done bool) {
	if f.scale.general || q.Plain || len(q.Members) != 1 || q.Quorum != 1 || q.Ground.Placer == nil || len(q.Ground.Keys) > 0 {
		return a, false
	}
	o := &f.lone
	defer func() {
		*o = lone{barred: o.barred, harms: o.harms, pool: o.pool[:0], space: o.space, ages: o.ages, queue: o.queue[:0], set: o.set[:0], sums: o.sums}
	}()
	o.s, o.q, o.ur, o.us, o.budgets, o.left = s, q, &f.unitRows, &f.units, &f.budgets, loneSteps
	if !o.begin() {
		return a, false
	}
	room, sure := o.survey()
	if !sure {
		return a, false
	}
	a = UnitsAnswer{Verdict: NotHelpful, Going: o.going, Stuck: o.stuck, Units: o.count()}
	switch {
	case room:
		if a.Verdict, a.Message = NotEligible, heading+"there is room already."; len(o.going) > 0 {
			a.Message = heading + fmt.Sprintf("there is room once %d pods that are terminating have gone.", len(o.going))
		}
	case a.Units == 0:
		a.Message = heading + "nobody of lower priority may be evicted."
	case !o.cheapest():
		return a, false
	case !o.found:
		a.Message = heading + fmt.Sprintf("there is no room with all %d units of lower priority gone either.", a.Units)
	case q.Strict && o.best.loss.Violations > 0: // no set on any row has none
		a.Message, o.set = AllProtected, o.set[:0]
	default:
		a.Verdict = Evict
	}
	if a.Considered = o.considered(a.Verdict); a.Message == AllProtected {
		protected(a.Considered)
	}
	done = o.confirm(&a)
	f.refuted = f.refuted || !done
	return a, done
}

// confirm makes the dry run that an answer needs, and completes it. The Relief is not good any more after that.
func (o *lone) confirm(a *UnitsAnswer) (ok bool) {
	o.us.reset()
	d := &dryRuns{q: o.q, us: o.us, base: o.q.Trial.Checkpoint()}
	d.start = d.base
	defer d.end()
	ok = true
	switch a.Verdict {
	case NotEligible:
		o.us.going = o.going
		d.begin()
		ok = d.fits()
	case Evict:
		list := o.load(o.set)
		o.us.order()
		a.Places, ok = d.placesWithout(list, o.goingWith())
		a.Loss, a.Victims, a.Minimum = o.us.loss(list), o.us.victims(list), true
	}
	a.Tried = d.tried
	return ok
}

// begin prepares the search; ok is false where sums may not decide.
func (o *lone) begin() (ok bool) {
	p, noms := o.q.Members[0], elsewhere(o.q)
	if len(p.Spec.Volumes) > 0 || p.Spec.Devices != nil {
		return false
	}
	o.out = o.q.Ground.Placer.Explain(o.s, p, noms)
	if o.out.Err != nil || !o.q.Ground.Placer.Alone(o.out) {
		return false
	}
	o.rel = o.q.Ground.Placer.Relief(o.s, o.out)
	o.sums.begin(o.s, o.rel)
	if !o.sums.exact || !o.sums.known || len(o.sums.needs) > mostNeeds {
		return false
	}
	o.own = noGang
	if id, is := o.ur.ids[o.q.Own]; is {
		o.own = id
	}
	o.picky = o.own != noGang || o.q.Never != nil
	o.barred, o.harms = forget(o.barred, len(o.ur.gangs)), forget(o.harms, len(o.ur.gangs))
	return true
}

func forget(list []tristate, n int) []tristate {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// survey bounds each row. room tells that one has room already, once those that are terminating have gone; sure is false where
// more than sums have a say.
func (o *lone) survey() (room, sure bool) {
	for n := range cluster.NodeIdx(len(o.ur.rows)) {
		row := &o.ur.rows[n]
		for _, p := range row.going {
			if o.isStuck(p) {
				o.stuck = append(o.stuck, p)
			} else {
				o.going = append(o.going, p)
			}
		}
		if room || o.s.Node(n) == nil {
			continue
		}
		fits := o.out.Verdict(n) == plugin.Fits
		switch {
		case fits, o.rel.AmountsReject(n):
		case o.rel.Hopeless(n):
			continue
		default:
			return false, false
		}
		if row.huge || !o.look(n) {
			return false, false
		}
		if fits || o.met() {
			room = true
			continue
		}
		o.bound(n)
	}
	return room, true
}

// look works out what a row lacks with those gone that are terminating, and those there that are expected. It is false where
// amounts are more than sums are safe with.
func (o *lone) look(n cluster.NodeIdx) bool {
	o.sums.look(n)
	for i := range o.sums.needs {
		o.lacks[i] = o.sums.needs[i].lacks
	}
	for _, p := range o.rel.ExpectedOn(n) {
		if tooMuch(&p.Spec.Held) {
			return false
		}
		for i := range o.sums.needs {
			o.lacks[i] += o.sums.needs[i].heldBy(p)
		}
	}
	for _, p := range o.ur.rows[n].going {
		for i := range o.sums.needs {
			if !o.isStuck(p) {
				o.lacks[i] -= o.sums.needs[i].heldBy(p)
			}
		}
	}
	return true
}

// isStuck tells of a terminating pod that its room is not counted on.
func (o *lone) isStuck(p *cluster.Pod) bool { return o.q.Stuck != nil && o.q.Stuck(p) }

func (o *lone) met() bool {
	for i := range o.sums.needs {
		if o.lacks[i] > 0 {
			return false
		}
	}
	return true
}

// bound works out what a row costs at least. Where a set costs no more than that, it is the row's cheapest; otherwise the row
// is kept for later.
func (o *lone) bound(n cluster.NodeIdx) {
	least := UnitsLoss{}
	whole := o.lacks
	enough := o.level(n, len(o.budgets.list) > 0, 0)
	if !enough && len(o.budgets.list) > 0 {
		least.Violations = 1
		o.lacks = whole
		enough = o.level(n, false, 1)
	}
	if o.lacks = whole; !enough {
		return
	}
	least.Highest = o.pool[len(o.pool)-1].priority
	least.Units = o.fewest(o.pool, &o.lacks)
	if o.found && o.noLess(lead{UnitsLoss{least.Violations, least.Highest, least.Units, 0, notStarted}, n}) {
		return
	}
	l := lead{least, n}
	if least.Units == 1 {
		if o.single(l) {
			return
		}
		l.loss.Units = 2 // nobody holds enough alone
	}
	l.loss.Oldest, l.loss.Pods = o.newest(l.loss.Units, least.Highest), o.fewestPods(l.loss.Units)
	switch {
	case o.found && o.noLess(l):
	case l.loss.Units > 1 && o.quick(l):
	default:
		o.queue = append(o.queue, l)
	}
}

// newest is how new the oldest of so many units can be: one of the highest priority must be among them.
func (o *lone) newest(units int, priority int32) record.Time {
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

// single looks for one unit that is enough, the smallest, and of these the newest. done is false where there is none. What it
// costs is taken for the row's least, or, where a budget has a say, the row is kept for later.
func (o *lone) single(l lead) (done bool) {
	at := -1
	better := func(c *choice, ties bool) bool {
		was := &o.pool[at]
		return c.pods < was.pods || c.pods == was.pods && (c.oldest > was.oldest || ties && c.oldest == was.oldest && o.smaller(c, was))
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
	exact.loss.Pods, exact.loss.Oldest = o.pool[at].pods, o.pool[at].oldest
	if o.found && o.noLess(exact) && len(o.budgets.list) == 0 {
		return true
	}
	for k := range o.pool {
		if c := &o.pool[k]; o.isEnough(c) && better(c, true) {
			at = k
		}
	}
	if !o.offer(o.pool[at:at+1], exact) {
		l.loss.Pods, l.loss.Oldest = 1, notStarted
		o.queue = append(o.queue, l)
	}
	return true
}

// smaller tells whether one unit of two goes sooner: the smaller, of these the newer, of these the one that the plain form spares
// later.
func (o *lone) smaller(a, b *choice) bool {
	switch {
	case a.pods != b.pods:
		return a.pods < b.pods
	case a.oldest != b.oldest:
		return a.oldest > b.oldest
	}
	return byName(o.first(a), o.first(b)) > 0
}

// first is the pod by whose name a unit is ordered.
func (o *lone) first(c *choice) *cluster.Pod {
	if c.pod != nil {
		return c.pod
	}
	return o.ur.live(c.gang)[0].pod
}

// byWorth orders units: first those that hold most, of these those that go sooner.
func (o *lone) byWorth(pool []choice) {
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

func (o *lone) isEnough(c *choice) bool {
	for i := range o.sums.needs {
		if c.held[i] < o.lacks[i] {
			return false
		}
	}
	return true
}

// noLess tells whether a row that costs so much at least is no better than the best.
func (o *lone) noLess(l lead) bool { return !l.before(&o.best) }

// before orders leads: the smaller loss first, of equal ones the lower row.
func (l *lead) before(other *lead) bool {
	if d := l.loss.Compare(other.loss); d != 0 {
		return d < 0
	}
	return l.row < other.row
}

// level collects the row's units of the lowest priorities that hold together what it lacks, of those that break no budget by
// themselves if they must be harmless. It is false where all hold too little, or where that costs more than the best, by a
// number of violations.
func (o *lone) level(n cluster.NodeIdx, harmless bool, violations int) bool {
	row := &o.ur.rows[n]
	alone, parts := row.alone, row.parts
	o.pool = o.pool[:0]
	for len(alone)+len(parts) > 0 {
		priority := int32(math.MaxInt32)
		if len(alone) > 0 {
			priority = alone[len(alone)-1].priority
		}
		if len(parts) > 0 {
			priority = min(priority, parts[len(parts)-1].priority)
		}
		if stays(o.q, priority, "") != "" || o.found && o.best.loss.Violations <= violations && priority > o.best.loss.Highest {
			return false
		}
		for last := len(alone) - 1; last >= 0 && alone[last].priority == priority; last-- {
			if c := &alone[last]; (!o.picky || o.mayGo(n, c.pod)) && (!harmless || !o.harm(c.pod)) {
				o.enterPod(c)
			}
			alone = alone[:last]
		}
		for last := len(parts) - 1; last >= 0 && parts[last].priority == priority; last-- {
			part := &parts[last]
			if (!o.picky || o.gangMayGo(part.gang)) && (!harmless || !o.harmOf(part.gang)) {
				o.enterPart(part)
			}
			parts = parts[:last]
		}
		if len(o.pool) > 0 && o.met() {
			return true
		}
	}
	return false
}

// enter puts a unit into the pool and takes what it holds from what is lacking. pods are those of a gang on the row.
func (o *lone) enter(held *cell, pods []*cluster.Pod) *choice {
	o.pool = append(o.pool, choice{gang: noGang, pods: 1})
	c := &o.pool[len(o.pool)-1]
	for i := range o.sums.needs {
		c.held[i] = o.sums.needs[i].heldByAll(held, pods)
		o.lacks[i] -= c.held[i]
	}
	return c
}

// enterPod puts a pod by itself into the pool.
func (o *lone) enterPod(p *cell) {
	c := o.enter(p, nil)
	c.pod, c.priority, c.oldest = p.pod, p.priority, p.start
}

// enterPart puts a gang into the pool by what it holds on the row.
func (o *lone) enterPart(part *unitPart) {
	g, c := &o.ur.gangs[part.gang], o.enter(&part.held, part.pods)
	c.gang, c.priority, c.pods, c.oldest = part.gang, part.priority, len(g.members), g.oldest
}

// fewest is how many units of a pool it takes at least to hold what is lacking.
func (o *lone) fewest(pool []choice, lacks *[mostNeeds]int64) (units int) {
	units = 1
	for i := range o.sums.needs {
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

// fewestPods is how many pods so many units of the pool have at least.
func (o *lone) fewestPods(units int) (pods int) {
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

// quick looks for a set that costs no more than the bound says: of those new enough, so many that hold most of what is scarce.
func (o *lone) quick(l lead) bool {
	pool := slices.DeleteFunc(o.pool, func(c choice) bool { return c.oldest < l.loss.Oldest })
	if l.loss.Units > len(pool) {
		return false
	}
	o.byWorth(pool)
	set := pool[:l.loss.Units]
	lacks := o.lacks
	for k := range set {
		for i := range o.sums.needs {
			lacks[i] -= set[k].held[i]
		}
	}
	for i := range o.sums.needs {
		if lacks[i] > 0 {
			return false
		}
	}
	return o.offer(set, l)
}

// enoughWorth is the worth of a unit that holds all that is lacking.
const enoughWorth = 1000

// worth is how much of what the row lacks a unit holds, in thousandths: of the amount of which it holds the smallest part.
func (o *lone) worth(c *choice) int64 {
	least := int64(enoughWorth)
	for i := range o.sums.needs {
		if lacks := o.lacks[i]; lacks > 0 && c.held[i] < lacks {
			least = min(least, min(c.held[i]/max(lacks/enoughWorth, 1), enoughWorth-1))
		}
	}
	return least
}

// offer makes a set the best if it costs what its lead says, which is true of no other on its row for less.
func (o *lone) offer(set []choice, l lead) bool {
	if o.costs(set) != l.loss {
		return false
	}
	if o.found && o.noLess(l) {
		return true
	}
	o.best, o.found = l, true
	o.set = append(o.set[:0], set...)
	return true
}

// costs is what it costs to evict a set.
func (o *lone) costs(set []choice) UnitsLoss {
	if len(o.budgets.list) > 0 {
		return o.us.loss(o.load(set))
	}
	l := noLoss()
	for i := range set {
		l.with(&set[i])
	}
	return l
}

// with counts a choice but for its violations.
func (l *UnitsLoss) with(c *choice) {
	l.Units++
	l.Pods += c.pods
	l.Highest = max(l.Highest, c.priority)
	l.Oldest = min(l.Oldest, c.oldest)
}
