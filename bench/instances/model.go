// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// Mode is how the instances share the cluster.
type Mode string

const (
	Shared        Mode = "shared"        // an arbiter checks proposals
	Hash          Mode = "hash"          // as Shared, but pods and nodes are hashed to planners
	Uncoordinated Mode = "uncoordinated" // nothing is checked
)

// Config is one run.
type Config struct {
	Mode      Mode
	Instances int // planners, or uncoordinated schedulers; 1 is a single scheduler that proposes nothing
	Nodes     int
	Slots     int // of each node. At most MaxSlots.
	Pods      int // all of which wait at the beginning
	Strategy  Strategy
	Prefer    Prefer // in mode Hash PreferOnly

	Decision time.Duration // of a pod, at an instance
	Check    time.Duration // of a proposal, at the arbiter
	Native   time.Duration // the arbiter's own decision for a pod whose proposal it refused
	// Foreign pods cannot be decided at the arbiter: a refused one goes back to its planner, three times at most.
	Foreign bool
	Hop     time.Duration // from one instance to another
	Lag     time.Duration // from a commit until the others see it
	API     int           // binds per second that the API server takes; 0 for no limit
	Seed    uint64
}

// Result is what a run came to.
type Result struct {
	Config
	Bound       int
	Elapsed     time.Duration // until the last bind
	Refused     int           // proposals
	RefusedLate int           // of them, for the last tenth of the pods
	Overcommits int           // pods on nodes beyond their slots
	Stranded    int           // pods that wait although slots are free
	SpreadHalf  int           // max - min of used slots over the nodes, when half of the pods are bound
	OpenHalf    int           // nodes with a pod at that time
}

// PerSecond is the throughput.
func (r Result) PerSecond() float64 {
	if r.Elapsed == 0 {
		return 0
	}
	return float64(r.Bound) / r.Elapsed.Seconds()
}

// Validate returns what is wrong with c; nil if nothing is.
func (c Config) Validate() error {
	switch c.Mode {
	case Shared, Hash, Uncoordinated:
	default:
		return fmt.Errorf("mode %q: must be %s, %s or %s", c.Mode, Shared, Hash, Uncoordinated)
	}
	switch c.Strategy {
	case Spread, Pack:
	default:
		return fmt.Errorf("strategy %q: must be %s or %s", c.Strategy, Spread, Pack)
	}
	switch c.Prefer {
	case PreferNone, PreferTies, PreferOwn:
	case PreferOnly:
		if c.Mode != Hash {
			return fmt.Errorf("prefer %q: only mode %s has it", c.Prefer, Hash)
		}
	default:
		return fmt.Errorf("prefer %q: must be %s, %s or %s", c.Prefer, PreferNone, PreferTies, PreferOwn)
	}
	switch {
	case c.Instances < 1 || c.Instances > 64:
		return fmt.Errorf("%d instances: there can be 1 to 64", c.Instances)
	case c.Nodes < c.Instances:
		return fmt.Errorf("%d nodes for %d instances", c.Nodes, c.Instances)
	case c.Nodes > 10_000_000 || c.Pods > 100_000_000:
		return fmt.Errorf("%d nodes and %d pods: at most 10 million and 100 million", c.Nodes, c.Pods)
	case c.Slots < 1 || c.Slots > MaxSlots:
		return fmt.Errorf("%d slots: there can be 1 to %d", c.Slots, MaxSlots)
	case c.Pods < 1:
		return fmt.Errorf("%d pods: must be 1 or more", c.Pods)
	case c.API < 0 || c.API > maxAPI:
		return fmt.Errorf("API limit %d: must be 0 (none) to %d binds per second", c.API, maxAPI)
	}
	return c.validateTimes()
}

// Bounds of a configuration. They keep the times of a run far from the largest value of their type.
const (
	// MaxSlots is the largest number of slots of a node.
	MaxSlots = 200

	maxAPI  = 1_000_000
	maxTime = time.Hour
	maxRun  = 100 * 365 * 24 * time.Hour
)

func (c Config) validateTimes() error {
	for _, t := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"decision", c.Decision, 1}, {"native decision", c.Native, 1}, {"check", c.Check, 0},
		{"hop", c.Hop, 0}, {"lag", c.Lag, 0}} {
		if t.value < t.least || t.value > maxTime {
			return fmt.Errorf("%s %s: must be %s to %s", t.name, t.value, t.least, maxTime)
		}
	}
	// Each pod is decided up to maxRefusals times, by one instance if all others have nothing to do.
	longest := float64(c.Pods) * (maxRefusals + 1) * float64(c.Decision+c.Native+c.Check+c.Hop+c.Lag)
	if longest > float64(maxRun) {
		return fmt.Errorf("%d pods with decisions of %s: the run could last more than %d years", c.Pods, c.Decision,
			maxRun/(365*24*time.Hour))
	}
	return nil
}

// Normal returns the configuration with the preference that its mode has: hashed nodes leave none, and schedulers that
// know nothing of each other have no partitions.
func (c Config) Normal() Config {
	switch c.Mode {
	case Hash:
		c.Prefer = PreferOnly
	case Uncoordinated:
		c.Prefer = PreferNone
	}
	return c
}

// placed is an entry of the log.
type placed struct {
	at   time.Duration
	node int32
}

// proposal is a placement on its way to the arbiter, or until its planner sees what became of it.
type proposal struct {
	planner  int
	node     int32
	pod      int
	refusals int
	seen     time.Duration // when the planner sees the outcome; 0 while there is none
}

// planner is one instance.
type planner struct {
	open  map[int32]int // node -> own placements that the view does not show
	sent  []*proposal   // those placements, the oldest first
	again []*proposal   // refused pods that came back
	own   []int         // in mode Hash: the pods that hash to it and that it has not decided yet
}

// event is a planner that is free, or a proposal that arrives.
type event struct {
	at       time.Duration
	order    int // of its creation; decides between equal times
	planner  int
	proposal *proposal // nil: the planner is free
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// run is a run under way.
type run struct {
	Config
	random   *rand.Rand
	events   events
	created  int
	planners []planner
	next     int // the next pod that was not decided yet

	ledger *view // what is committed
	seen   *view // what planners see of it: the log up to Lag ago
	log    []placed
	shown  int           // entries of log that seen has
	free   time.Duration // when the arbiter is free
	api    time.Duration // when the API server takes the next bind
	result Result
}

// Run runs the model. Equal configurations give equal results on every machine. The configuration must be valid.
func Run(c Config) Result {
	c = c.Normal()
	parts := c.Instances
	if c.Prefer == PreferNone {
		parts = 1
	}
	r := &run{Config: c, random: rand.New(rand.NewPCG(c.Seed, uint64(c.Instances))), result: Result{Config: c},
		ledger: newView(c.Nodes, c.Slots, parts)}
	if c.Instances == 1 {
		r.alone()
		return r.end()
	}
	r.seen = newView(c.Nodes, c.Slots, parts)
	r.planners = make([]planner, c.Instances)
	for i := range r.planners {
		r.planners[i].open = map[int32]int{}
		r.at(0, i, nil)
	}
	for r.Mode == Hash && r.next < r.Pods {
		p := &r.planners[r.random.IntN(r.Instances)]
		p.own = append(p.own, r.next)
		r.next++
	}
	for len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		if e.proposal == nil {
			r.decide(e.at, e.planner)
		} else {
			r.arrive(e.at, e.proposal)
		}
	}
	return r.end()
}

func (r *run) at(t time.Duration, planner int, p *proposal) {
	r.created++
	heap.Push(&r.events, event{t, r.created, planner, p})
}

// alone is one scheduler, which sees all of its own placements.
func (r *run) alone() {
	for now := r.Decision; r.next < r.Pods; now += r.Decision {
		r.next++
		node, ok := r.ledger.pick(r.random, r.Strategy, PreferNone, 0, nil)
		if !ok {
			return
		}
		r.commit(now, node)
	}
}

// commit takes a slot and sends the bind.
func (r *run) commit(now time.Duration, node int32) {
	if int(r.ledger.used[node]) >= r.Slots {
		r.result.Overcommits++
	}
	if r.ledger.used[node] < 255 {
		r.ledger.take(node)
	}
	if r.seen != nil {
		r.log = append(r.log, placed{now, node})
	}
	r.result.Bound++
	done := now
	if r.API > 0 {
		r.api = max(r.api, now) + time.Second/time.Duration(r.API)
		done = r.api
	}
	r.result.Elapsed = max(r.result.Elapsed, done)
	if r.result.Bound == (r.Pods+1)/2 {
		r.half()
	}
}

// half measures the cluster when half of the pods are bound.
func (r *run) half() {
	least, most := 255, 0
	for _, n := range r.ledger.used {
		least, most = min(least, int(n)), max(most, int(n))
		if n > 0 {
			r.result.OpenHalf++
		}
	}
	r.result.SpreadHalf = most - least
}

// show brings the planners' view to a moment.
func (r *run) show(now time.Duration) {
	for r.shown < len(r.log) && r.log[r.shown].at+r.Lag <= now {
		if node := r.log[r.shown].node; r.seen.used[node] < 255 {
			r.seen.take(node)
		}
		r.shown++
	}
}

// decide is a planner that is free: it takes the next pod, chooses a node of what it sees, and is free again after
// the time of a decision.
func (r *run) decide(now time.Duration, i int) {
	p := &r.planners[i]
	r.show(now)
	for len(p.sent) > 0 && p.sent[0].seen != 0 && p.sent[0].seen <= now {
		if p.open[p.sent[0].node]--; p.open[p.sent[0].node] == 0 {
			delete(p.open, p.sent[0].node)
		}
		p.sent = p.sent[1:]
	}
	var todo *proposal
	switch {
	case len(p.again) > 0:
		todo = &proposal{planner: i, pod: p.again[0].pod, refusals: p.again[0].refusals}
	case len(p.own) > 0:
		todo = &proposal{planner: i, pod: p.own[0]}
	case r.next < r.Pods:
		todo = &proposal{planner: i, pod: r.next}
	default:
		if len(p.sent) > 0 && r.Foreign {
			r.at(now+r.Hop+r.Decision, i, nil) // a pod may come back
		}
		return
	}
	node, ok := r.seen.pick(r.random, r.Strategy, r.Prefer, i, p.open)
	if !ok {
		if len(p.sent) > 0 || r.shown < len(r.log) {
			r.at(now+max(r.Hop, r.Decision), i, nil) // what it sees is not yet what is
		}
		return
	}
	switch {
	case len(p.again) > 0:
		p.again = p.again[1:]
	case len(p.own) > 0:
		p.own = p.own[1:]
	default:
		r.next++
	}
	todo.node = node
	p.open[node]++
	p.sent = append(p.sent, todo)
	r.at(now+r.Decision, i, nil)
	hop := r.Hop
	if r.Mode == Uncoordinated {
		hop = 0
	}
	r.at(now+r.Decision+hop, i, todo)
}

// arrive is a decision that takes effect: at the arbiter, or without one.
func (r *run) arrive(now time.Duration, p *proposal) {
	if r.Mode == Uncoordinated {
		r.commit(now, p.node)
		p.seen = now + r.Lag
		return
	}
	r.free = max(r.free, now) + r.Check
	if int(r.ledger.used[p.node]) < r.Slots {
		r.commit(r.free, p.node)
		p.seen = max(r.free+r.Lag, 1)
		return
	}
	r.result.Refused++
	if p.pod >= r.Pods-r.Pods/10 {
		r.result.RefusedLate++
	}
	p.refusals++
	p.seen = max(r.free+r.Hop, 1)
	if r.Foreign && p.refusals < maxRefusals {
		r.planners[p.planner].again = append(r.planners[p.planner].again, p)
		return
	}
	// The arbiter decides the pod, or gives a foreign one the capacity that it promises.
	r.free += r.Native
	if node, ok := r.ledger.pick(r.random, r.Strategy, r.Prefer, p.planner, nil); ok {
		r.commit(r.free, node)
	}
}

// maxRefusals is as in core/shard.
const maxRefusals = 3

func (r *run) end() Result {
	free := 0
	for _, n := range r.ledger.used {
		free += max(0, r.Slots-int(n))
	}
	r.result.Stranded = min(r.Pods-r.result.Bound, free)
	return r.result
}
