// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Observed collects durations from recordings. Add is called for each event of one recording after the other; End ends
// one.
type Observed struct {
	// Nodes is the largest number of nodes at a time.
	Nodes int

	now       record.Time
	turn      turn
	turns     []turn
	nodes     map[string]bool        // name -> it is there
	seen      map[string]record.Time // UID of a pending pod -> when it was first seen
	binds     map[string]sent        // UID -> the bind without an answer
	answered  map[string]record.Time // UID -> when its bind was answered; until it is seen bound
	evictions map[string]record.Time // UID of the pod that evicts -> when it asked
	ending    map[string]record.Time // UID -> when the pod was first seen terminating
	calls     []call
	lags      []time.Duration
	stops     []time.Duration
	evicted   []time.Duration
	waits     []time.Duration // from the first sight of a pod to the answer of its bind
	first     record.Time     // sight of a pod that was bound later
	last      record.Time     // answer of a bind
	synced    bool
}

// turn is one turn of the loop.
type turn struct {
	at     record.Time
	took   time.Duration // until the next one began
	events int
	cycles map[record.Path]int // path -> decisions
	all    int                 // cycles
}

// sent is a bind on its way.
type sent struct {
	at       record.Time
	inFlight int // binds on the way, itself included
}

// call is a bind with its answer.
type call struct {
	inFlight int
	took     time.Duration
}

// New returns an Observed.
func New() *Observed {
	o := &Observed{}
	o.End()
	return o
}

// End forgets what is on its way, between two recordings.
func (o *Observed) End() {
	o.turn, o.now, o.synced = turn{}, 0, false
	o.nodes, o.seen, o.binds = map[string]bool{}, map[string]record.Time{}, map[string]sent{}
	o.answered, o.evictions, o.ending = map[string]record.Time{}, map[string]record.Time{}, map[string]record.Time{}
}

// Add adds an event with its effects.
func (o *Observed) Add(ev engine.Event, effects []engine.Effect) {
	switch ev := ev.(type) {
	case engine.Tick:
		o.tick(ev.Now)
		return
	case engine.Synced:
		o.synced = true
	case engine.NodeSet:
		o.nodes[ev.Node.Name] = true
		o.Nodes = max(o.Nodes, len(o.nodes))
	case engine.NodeGone:
		delete(o.nodes, ev.Name)
	case engine.PodSet:
		o.pod(ev)
	case engine.PodGone:
		if at, is := o.ending[ev.Pod.UID]; is {
			o.stops = append(o.stops, since(at, o.now))
		}
		delete(o.ending, ev.Pod.UID)
		delete(o.seen, ev.Pod.UID)
		delete(o.answered, ev.Pod.UID)
	case engine.BindDone:
		o.bound(ev)
	case engine.EvictDone:
		if at, is := o.evictions[ev.For.UID]; is && ev.Message == "" {
			o.evicted = append(o.evicted, since(at, o.now))
		}
		delete(o.evictions, ev.For.UID)
	}
	o.turn.events++
	o.effects(ev, effects)
}

// effects notes decisions and calls.
func (o *Observed) effects(ev engine.Event, effects []engine.Effect) {
	path, decided := record.Path(""), 0
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Decided:
			path, decided = f.Decision.Path, decided+1
		case engine.Bind:
			o.binds[f.Pod.UID] = sent{o.now, len(o.binds) + 1}
		case engine.Evict:
			o.evictions[f.For.UID] = o.now
		}
	}
	if _, cycle := ev.(engine.Cycle); cycle && o.synced {
		o.turn.events--
		o.turn.all++
		if decided == 1 {
			if o.turn.cycles == nil {
				o.turn.cycles = map[record.Path]int{}
			}
			o.turn.cycles[path]++
		}
	}
}

func since(from, to record.Time) time.Duration { return time.Duration(max(0, to-from)) }

func (o *Observed) tick(now record.Time) {
	if o.turn.at > 0 && o.turn.all > 0 && now > o.turn.at {
		o.turn.took = since(o.turn.at, now)
		o.turns = append(o.turns, o.turn)
	}
	if now != o.now || o.turn.all > 0 {
		o.turn = turn{at: now}
	}
	o.now = now
}

func (o *Observed) pod(ev engine.PodSet) {
	p, uid := ev.Pod, string(ev.Pod.UID)
	if _, known := o.seen[uid]; !known && p.NodeName == "" && o.synced {
		o.seen[uid] = o.now
	}
	if p.NodeName != "" {
		if at, is := o.answered[uid]; is {
			o.lags = append(o.lags, since(at, o.now))
			delete(o.answered, uid)
		} else if _, onWay := o.binds[uid]; onWay && !p.Terminating {
			o.lags = append(o.lags, 0)
			o.answered[uid] = -1 // it was seen before its answer
		}
	}
	if _, known := o.ending[uid]; p.Terminating && !known {
		o.ending[uid] = o.now
	}
}

func (o *Observed) bound(done engine.BindDone) {
	uid := done.Pod.UID
	b, is := o.binds[uid]
	delete(o.binds, uid)
	if !is || done.Outcome != engine.Bound {
		return
	}
	o.calls = append(o.calls, call{b.inFlight, since(b.at, o.now)})
	if o.answered[uid] == -1 {
		delete(o.answered, uid)
	} else {
		o.answered[uid] = o.now
	}
	if at, is := o.seen[uid]; is {
		o.waits = append(o.waits, since(at, o.now))
		if o.first == 0 || at < o.first {
			o.first = at
		}
		o.last = max(o.last, o.now)
	}
	delete(o.seen, uid)
}

// Figures are what users see of a run: bound pods per second, and the waits from the first sight of a pod to its bind.
type Figures struct {
	Pods       int           `json:"pods"`
	Throughput float64       `json:"podsPerSecond"`
	P50        time.Duration `json:"p50Nanoseconds"`
	P99        time.Duration `json:"p99Nanoseconds"`
}

// Figures returns those of the recordings.
func (o *Observed) Figures() Figures {
	f := Figures{Pods: len(o.waits), P50: quantile(o.waits, 0.5), P99: quantile(o.waits, 0.99)}
	if d := since(o.first, o.last).Seconds(); d > 0 {
		f.Throughput = float64(f.Pods) / d
	}
	return f
}

// quantile returns a quantile by the nearest rank, 0 of nothing.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
