// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Observed collects durations from recordings. Add is called for each event of one recording after the other; End ends
// one.
type Observed struct {
	// Nodes is the largest number of nodes at a time.
	Nodes int

	limit     int // of binds on their way; 0 for none
	now       record.Time
	turn      turn
	before    turn // the last one that ended
	turns     []turn
	nodes     map[string]bool        // name -> it is there
	arrivals  []*arrival             // of this recording
	arrived   map[string]*arrival    // UID -> the pod, from its first sight until it is gone
	sent      map[string]sent        // UID -> the bind on its way
	recent    []record.Time          // when binds were sent in the last sim.LoadWindow
	waiting   []string               // UIDs of binds that wait until others have their answer
	answered  map[string]record.Time // UID -> when its bind was answered; until it is seen bound
	early     map[string]known       // UID -> when the pod was seen bound, before the answer of its bind
	evictions map[string]record.Time // UID of the pod that evicts -> when it asked
	ending    map[string]record.Time // UID -> when the pod was first seen terminating
	calls     []call
	answers   []time.Duration // from when a bind was known to its answer
	sights    []time.Duration // from the creation of a pod to its first sight
	lags      []time.Duration
	stops     []time.Duration
	evicted   []time.Duration
	whole     [][]*arrival // those of the recordings that have ended
	synced    bool
}

// turn is one turn of the loop.
type turn struct {
	at     record.Time
	took   time.Duration // until the next one began
	events int
	work   work
	all    int // cycles
	// recording is its number.
	recording int
}

// work counts searches for a node by the path, in the order of paths; the last entry is for those without a path.
type work [4]int

// moment is a time within a turn: its begin, and the work that was done since.
type moment struct {
	at   record.Time
	work work
}

// sent is a bind on its way.
type sent struct {
	from moment
	load int // binds that were sent in the last sim.LoadWindow, itself included
}

// known is when the answer or the watch brought something, which is the begin of a turn. What comes within a turn waits
// for the next one: before is that turn.
type known struct {
	at     record.Time
	before turn
}

// call is a bind that was carried out.
type call struct {
	load  int
	from  moment
	bound known // by the watch or the answer, whichever came first
}

// New returns an Observed for recordings of schedulers with at most so many binds on their way; 0 for no limit.
func New(inFlight int) *Observed {
	o := &Observed{limit: inFlight}
	o.reset()
	return o
}

// End forgets what is on its way, between two recordings.
func (o *Observed) End() {
	o.whole = append(o.whole, o.arrivals)
	o.sights = append(o.sights, sightsOf(o.arrivals)...)
	o.reset()
}

func (o *Observed) reset() {
	o.turn, o.before, o.now, o.synced = turn{recording: len(o.whole)}, turn{}, 0, false
	o.arrivals, o.recent, o.arrived, o.sent, o.waiting = nil, nil, map[string]*arrival{}, map[string]sent{}, nil
	o.nodes, o.answered, o.early = map[string]bool{}, map[string]record.Time{}, map[string]known{}
	o.evictions, o.ending = map[string]record.Time{}, map[string]record.Time{}
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
		delete(o.arrived, ev.Pod.UID)
		delete(o.answered, ev.Pod.UID)
	case engine.BindDone:
		o.done(ev)
	case engine.EvictDone:
		if at, is := o.evictions[ev.For.UID]; is && ev.Message == "" {
			o.evicted = append(o.evicted, since(at, o.now))
		}
		delete(o.evictions, ev.For.UID)
	}
	o.effects(ev, effects)
}

// effects notes decisions and calls.
func (o *Observed) effects(ev engine.Event, effects []engine.Effect) {
	if _, cycle := ev.(engine.Cycle); cycle && o.synced {
		o.turn.all++
		o.decided(effects)
	} else {
		o.turn.events++
	}
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			if o.limit > 0 && len(o.sent) >= o.limit {
				o.waiting = append(o.waiting, f.Pod.UID)
			} else {
				o.send(f.Pod.UID, moment{o.now, o.turn.work})
			}
		case engine.Evict:
			o.evictions[f.For.UID] = o.now
		}
	}
}

// decided counts the searches of a cycle, as sim.Model.Decision counts them: one for each placement tried.
func (o *Observed) decided(effects []engine.Effect) {
	searches, path := 0, record.Path("")
	for _, f := range effects {
		if d, is := f.(engine.Decided); is {
			if searches++; d.Decision.Gang != nil {
				searches = max(searches, d.Decision.Gang.Tried)
			}
			path = d.Decision.Path
		}
	}
	i := slices.Index(paths, path)
	if i < 0 {
		i = len(paths)
	}
	o.turn.work[i] += max(searches, 1)
}

func (o *Observed) send(uid string, from moment) {
	for len(o.recent) > 0 && o.recent[0] <= o.now-record.Time(sim.LoadWindow) {
		o.recent = o.recent[1:]
	}
	o.recent = append(o.recent, o.now)
	o.sent[uid] = sent{from, len(o.recent)}
}

func since(from, to record.Time) time.Duration { return time.Duration(max(0, to-from)) }

func (o *Observed) tick(now record.Time) {
	if now == o.now && o.turn.all == 0 {
		return
	}
	if now > o.turn.at {
		o.turn.took = since(o.turn.at, now)
		if o.before = o.turn; o.turn.at > 0 && o.turn.all > 0 {
			o.turns = append(o.turns, o.turn)
		}
	}
	o.turn = turn{at: now, recording: len(o.whole)}
	o.now = now
}

func (o *Observed) pod(ev engine.PodSet) {
	p, uid := ev.Pod, string(ev.Pod.UID)
	_, arrived := o.arrived[uid]
	if !arrived && p.NodeName == "" && o.synced {
		a := &arrival{created: p.Created, seen: o.now}
		o.arrived[uid], o.arrivals = a, append(o.arrivals, a)
	}
	if p.NodeName != "" {
		o.seenBound(uid, p.Terminating)
	}
	if _, known := o.ending[uid]; p.Terminating && !known {
		o.ending[uid] = o.now
	}
}

// seenBound notes that the watch has shown a pod with its node.
func (o *Observed) seenBound(uid string, terminating bool) {
	at, answered := o.answered[uid]
	_, onWay := o.sent[uid]
	_, again := o.early[uid]
	switch {
	case answered:
		o.lags = append(o.lags, since(at, o.now))
		delete(o.answered, uid)
	case onWay && !again && !terminating:
		o.lags = append(o.lags, 0)
		o.early[uid] = known{o.now, o.before}
		o.arrivedBound(uid)
	}
}

// arrivedBound notes that a pod is known to be bound.
func (o *Observed) arrivedBound(uid string) {
	if a := o.arrived[uid]; a != nil && a.bound == 0 {
		a.bound = o.now
	}
}

// done ends a bind, and sends the one that waits longest.
func (o *Observed) done(done engine.BindDone) {
	uid := done.Pod.UID
	b, is := o.sent[uid]
	delete(o.sent, uid)
	if !is { // it was withdrawn
		if i := slices.Index(o.waiting, uid); i >= 0 {
			o.waiting = slices.Delete(o.waiting, i, i+1)
		}
		return
	}
	if len(o.waiting) > 0 {
		o.send(o.waiting[0], moment{at: o.now})
		o.waiting = o.waiting[1:]
	}
	seen, early := o.early[uid]
	delete(o.early, uid)
	if done.Outcome != engine.Bound {
		return
	}
	if !early {
		seen = known{o.now, o.before}
		o.answered[uid] = o.now
	}
	o.calls = append(o.calls, call{b.load, b.from, seen})
	o.answers = append(o.answers, since(seen.at, o.now))
	o.arrivedBound(uid)
}
