// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Detector finds incidents in what the loop gives it. It reads no clock. A condition that lasts is found once, and
// again only after it has ended.
type Detector struct {
	limits Limits
	found  []Finding

	active int // units in the active queue
	// unanswered counts the binds without an answer. Invariant: it is the number of those in binds with answered 0.
	unanswered int
	// binds are those on their way: sent and not answered, or answered and not yet seen by the watch.
	binds map[string]bind // pod UID -> its bind

	// quietSince is since when pods wait and no bind succeeds; 0 if no pod waits.
	quietSince record.Time
	lasting    map[Cause]bool // cause -> its condition lasts since it was found
	overcommit int            // overcommitted nodes when they were last counted

	// silent is how long the API server has answered no request, as far as the loop could see: a process that was
	// stopped could not read answers either.
	silent  time.Duration
	counted record.Time // when Second was last called
	// answers is since when the API server answers again after APIUnanswered was found; 0 if it never was.
	answers record.Time
}

// Server is how the API server answers, and when it last accepted the lease.
type Server struct {
	// Since is from when on no request was answered although there were requests; 0 if there are none without an
	// answer. Requests counts them, and Oldest names the oldest.
	Since    record.Time
	Requests int
	Oldest   string
	// Leads is false for a standby and a scheduler that does not know the cluster yet. Renewed is when the lease was
	// last renewed; 0 if this process does not hold one.
	Leads   bool
	Renewed record.Time
}

// bind is one on its way.
type bind struct {
	pod            record.PodRef
	sent, answered record.Time
	seen           bool // the watch showed it before the answer came
}

// NewDetector returns a detector for a new engine.
func NewDetector(l Limits) *Detector {
	return &Detector{limits: l, binds: map[string]bind{}, lasting: map[Cause]bool{}}
}

// Take returns what was found since the last call.
func (d *Detector) Take() []Finding {
	found := d.found
	d.found = nil
	return found
}

// Step takes one event with its effects.
func (d *Detector) Step(at record.Time, ev engine.Event, effects []engine.Effect) {
	switch ev := ev.(type) {
	case engine.BindDone:
		d.answered(at, ev)
	case engine.PodSet:
		if ev.Pod.NodeName != "" {
			d.seen(string(ev.Pod.UID))
		}
	case engine.PodGone:
		d.seen(ev.Pod.UID)
	}
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Moved:
			d.moved(&f.Move)
		case engine.Bind:
			if old, again := d.binds[f.Pod.UID]; !again || old.answered != 0 {
				d.unanswered++
			}
			d.binds[f.Pod.UID] = bind{pod: f.Pod, sent: at}
		case engine.Decided:
			if f.Decision.Verdict == record.SetAside {
				d.find(Finding{Cause: Panic, At: at, Detail: "pod " + f.Decision.Pod.Key()})
			}
		case engine.Trouble:
			if strings.HasPrefix(f.What, "panic") {
				d.find(Finding{Cause: Panic, At: at, Detail: f.Object + ": " + f.What})
			}
		}
	}
}

func (d *Detector) moved(m *record.QueueMove) {
	if m.From == record.Active {
		d.active--
	}
	if m.To == record.Active {
		d.active++
	}
}

// seen notes that the watch showed a pod bound or gone.
func (d *Detector) seen(uid string) {
	b, is := d.binds[uid]
	switch {
	case !is:
	case b.answered != 0:
		delete(d.binds, uid)
	default:
		b.seen = true
		d.binds[uid] = b
	}
}

func (d *Detector) answered(at record.Time, ev engine.BindDone) {
	b, is := d.binds[ev.Pod.UID]
	if !is || b.answered != 0 {
		return
	}
	d.unanswered--
	if ev.Outcome != engine.Bound {
		delete(d.binds, ev.Pod.UID)
		return
	}
	d.quietSince = 0
	delete(d.lasting, NoBinds)
	if b.answered = at; b.seen {
		delete(d.binds, ev.Pod.UID)
		return
	}
	d.binds[ev.Pod.UID] = b
}

// Turn takes the end of an iteration of the loop. deciding reports whether it could have made decisions: a standby and
// a paused scheduler bind nothing.
func (d *Detector) Turn(at record.Time, took time.Duration, deciding bool) {
	if took > d.limits.Iteration {
		d.find(Finding{Cause: SlowIteration, At: at, Took: took})
	}
	switch {
	case !deciding || d.active == 0 && d.unanswered == 0:
		d.quietSince = 0
		delete(d.lasting, NoBinds)
	case d.quietSince == 0:
		d.quietSince = at
	default:
		if quiet := time.Duration(at - d.quietSince); quiet > d.limits.NoBinds {
			d.lasts(Finding{Cause: NoBinds, At: at, Took: quiet,
				Detail: fmt.Sprintf("%d units active, %d binds unanswered", d.active, d.unanswered)})
		}
	}
}

// Second takes what is counted about once a second: overcommitted nodes, the longest pause of the garbage collector
// since the last call, and how the API server answers.
func (d *Detector) Second(at record.Time, overcommitted int, pause time.Duration, s Server) {
	if overcommitted > d.overcommit {
		d.find(Finding{Cause: Overcommitted, At: at, Detail: fmt.Sprintf("%d nodes", overcommitted)})
	}
	d.overcommit = overcommitted
	if pause > d.limits.GCPause {
		d.find(Finding{Cause: GCPause, At: at, Took: pause})
	}
	d.server(at, s)
	d.counted = at
	if d.silent > postponed {
		return
	}
	if lease := since(at, s.Renewed); s.Renewed != 0 && lease > d.limits.Lease {
		d.lasts(Finding{Cause: LeaseUnrenewed, At: at, Took: lease})
	} else {
		delete(d.lasting, LeaseUnrenewed)
	}
	d.binding(at)
}

// postponed is how long no request may be unanswered for causes that also follow from an API server that does not
// answer.
const postponed = time.Second

// server takes how the API server answers.
func (d *Detector) server(at record.Time, s Server) {
	if s.Since == 0 || !s.Leads {
		d.silent = 0
	} else {
		// Between two calls pass about a second; if it is much more, the process did not run.
		d.silent = min(since(at, s.Since), d.silent+min(since(at, d.counted), 2*time.Second))
	}
	if d.silent <= d.limits.APIUnanswered {
		delete(d.lasting, APIUnanswered)
		return
	}
	d.lasts(Finding{Cause: APIUnanswered, At: at, Took: d.silent, Detail: s.text(at)})
	// What follows from it is not an incident of its own: its time counts from the next answer.
	d.answers, d.quietSince = at, 0
}

// text describes the API server for a detail.
func (s *Server) text(at record.Time) string {
	text := fmt.Sprintf("%d requests without an answer", s.Requests)
	if s.Oldest != "" {
		text += ", the oldest under way " + s.Oldest
	}
	if s.Renewed != 0 {
		text += fmt.Sprintf("; the lease was renewed %.1f s ago", since(at, s.Renewed).Seconds())
	}
	return text
}

// since returns the time from a moment on; 0 if that is later.
func since(at, from record.Time) time.Duration { return time.Duration(max(0, at-from)) }

// Lost returns the finding of a lease that was lost.
func (d *Detector) Lost(at record.Time, s Server) Finding {
	f := Finding{Cause: LeaseLost, At: at, Detail: "the API server answers"}
	if s.Renewed != 0 {
		f.Took = since(at, s.Renewed)
	}
	if s.Since != 0 {
		f.Detail = fmt.Sprintf("the API server has not answered for %.1f s: %s", since(at, s.Since).Seconds(),
			s.text(at))
	}
	return f
}

// binding compares the oldest binds on their way with their limits.
func (d *Detector) binding(at record.Time) {
	var sent, answered bind     // the oldest; without a pod for none
	for _, b := range d.binds { // order: the oldest is found, and of equal ones that with the first UID
		switch {
		case b.answered == 0 && (sent.pod.UID == "" || older(b.sent, sent.sent, &b, &sent)):
			sent = b
		case b.answered != 0 && (answered.pod.UID == "" || older(b.answered, answered.answered, &b, &answered)):
			answered = b
		}
	}
	d.overdue(BindUnanswered, at, d.limits.BindUnanswered, &sent, sent.sent)
	d.overdue(WatchLag, at, d.limits.WatchLag, &answered, answered.answered)
}

func older(a, b record.Time, of, than *bind) bool {
	return a < b || a == b && of.pod.UID < than.pod.UID
}

// overdue compares the oldest bind of a kind with its limit; one without a pod is none.
func (d *Detector) overdue(c Cause, at record.Time, limit time.Duration, b *bind, since record.Time) {
	if b.pod.UID == "" || time.Duration(at-max(since, d.answers)) <= limit {
		delete(d.lasting, c)
		return
	}
	d.lasts(Finding{Cause: c, At: at, Took: time.Duration(at - since), Detail: "pod " + b.pod.Key()})
}

func (d *Detector) find(f Finding) { d.found = append(d.found, f) }

// lasts finds a condition that may last.
func (d *Detector) lasts(f Finding) {
	if !d.lasting[f.Cause] {
		d.lasting[f.Cause] = true
		d.find(f)
	}
}

// Quota says whether an incident becomes a bundle: one for each cause in a period. It belongs to one goroutine.
type Quota struct {
	Period time.Duration
	last   map[Cause]record.Time // cause -> when a bundle of it was last allowed
}

// QuotaPeriod is the usual period.
const QuotaPeriod = 10 * time.Minute

// Allow reports whether an incident becomes a bundle. What a user asks for always does. If the clock of the machine was
// set back, the last bundle may be of a later time; it does not count then.
func (q *Quota) Allow(f Finding) bool {
	if f.Cause == ByHand {
		return true
	}
	last, had := q.last[f.Cause]
	if had && last <= f.At && time.Duration(f.At-last) < q.Period {
		return false
	}
	q.Note(f.Cause, f.At)
	return true
}

// Note notes that there is a bundle, such as one of a former process.
func (q *Quota) Note(c Cause, at record.Time) {
	if q.last == nil {
		q.last = map[Cause]record.Time{}
	}
	q.last[c] = at
}
