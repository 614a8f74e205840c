// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/record"
)

// spanSize is the size of a span in bytes.
const spanSize = 40

// span is a record.PhaseSpan in a ring.
type span struct {
	start, took record.Time
	journey     uint64
	attempt     uint16
	event, hint name
	plugins     name
	phase       record.Phase
}

// place is where a pod is, as far as what happens next depends on it.
type place uint8

const (
	nowhere place = iota
	queued        // in the queue, or in the cycle of its unit
	decided       // a node is decided; the bind is not requested
	binding       // the bind has no outcome
	failed        // the bind failed in this step
	bound         // the bind succeeded; the watch has not shown it
)

// journey is a pod on its way.
type journey struct {
	number uint64 // from 1; 0 for one that has ended
	pod    record.PodRef
	node   string
	gang   *gang // nil for none
	began  record.Time
	listed bool

	place    place
	phase    record.Phase
	since    record.Time // of phase; of PhaseBindQueued also while the place is bound
	attempts uint16
	plugins  name // that keep it in phase
	blamed   name // that rejected it last

	spans       int    // that were written
	first, last uint64 // positions of its spans
	call        Call   // of the bind that ended
	answered    record.Time
	// over is when the watch showed it bound or gone while its bind had no outcome; 0 for not yet.
	over record.Time
	how  record.JourneyEnd // with over

	at, gangAt int // its index in Recorder.active and in gang.members
}

// ended is a journey that is over.
type ended struct {
	number      uint64
	pod         record.PodRef
	gang, node  string
	began, at   record.Time
	how         record.JourneyEnd
	attempts    uint16
	listed      bool
	spans       int
	first, last uint64
	bind        ID
	lag         record.Time
	probed      bool // lag is known
}

// Call has the moments of a bind on its way to the API server; 0 for one that was not reached.
type Call struct {
	// Begun is when a worker took the bind, Released when the client's rate limiter first let it pass, and FirstByte
	// when the last answer began.
	Begun, Released, FirstByte record.Time
	// Request identifies the last request.
	Request ID
}

// Observed tells of a pending pod of this scheduler that the loop took at a time and that the watch brought before.
// gang is namespace/name of the gang that it declares, empty for none.
func (r *Recorder) Observed(pod record.PodRef, gang string, received, taken record.Time, listed bool) {
	j := r.byUID.find(pod.UID)
	if j == nil {
		j = r.start(pod, min(received, taken))
		j.listed = listed
		r.touched = append(r.touched, j)
	}
	if name := j.gangName(); name != gang {
		r.leaveGang(j)
		r.joinGang(j, gang)
	}
}

func (r *Recorder) start(pod record.PodRef, began record.Time) *journey {
	var j *journey
	if n := len(r.free); n > 0 {
		j, r.free = r.free[n-1], r.free[:n-1]
	} else {
		j = &journey{}
	}
	r.numbers++
	// A journey from free is empty, so that no field is written twice.
	j.number, j.pod, j.began, j.since, j.phase = r.numbers, pod, began, began, record.PhaseInbox
	j.at, j.first = len(r.active), r.spans.next
	r.active = append(r.active, j)
	r.byUID.add(j)
	return j
}

// Moved tells of a move of a unit between sub-queues at a time.
func (r *Recorder) Moved(m *record.QueueMove, at record.Time) {
	if m.Gang != "" {
		r.movedGang(m, at)
		return
	}
	if j := r.byUID.find(m.Pod.UID); j != nil {
		r.move(j, m.To, at, r.names.number(m.Event), r.names.number(m.Hint))
	}
}

// queuePhase returns the phase of the units in a sub-queue, and whether there are units in it.
func queuePhase(in record.SubQueue) (phase record.Phase, is bool) {
	switch in {
	case record.Gated:
		return record.PhaseGated, true
	case record.Unschedulable:
		return record.PhaseUnschedulable, true
	case record.Backoff:
		return record.PhaseBackoff, true
	case record.Active:
		return record.PhaseActive, true
	case record.InFlight:
		return record.PhaseDeciding, true
	}
	return 0, false
}

func (r *Recorder) move(j *journey, to record.SubQueue, at record.Time, event, hint name) {
	phase, is := queuePhase(to)
	if !is {
		j.place = nowhere
		r.touched = append(r.touched, j)
		return
	}
	if j.phase == record.PhaseInbox { // the event says why the pod came
		r.enter(j, phase, at, 0, 0)
	} else {
		r.enter(j, phase, at, event, hint)
	}
	j.place, j.plugins = queued, 0
	switch phase {
	case record.PhaseDeciding:
		j.attempts = min(j.attempts, math.MaxUint16-1) + 1
	case record.PhaseGated:
		j.plugins = hint
	case record.PhaseUnschedulable, record.PhaseBackoff:
		j.plugins = j.blamed
	}
}

// enter ends the phase of a pod at a time and begins another.
func (r *Recorder) enter(j *journey, phase record.Phase, at record.Time, event, hint name) {
	if at = max(at, j.since); at > j.since {
		var s *span
		s, j.last = r.spans.push()
		*s = span{start: j.since, took: at - j.since, journey: j.number, phase: j.phase, attempt: j.attempts,
			event: event, hint: hint, plugins: j.plugins}
		if j.spans == 0 {
			j.first = j.last
		}
		j.spans++
		r.phases[j.phase].observe(at - j.since)
	}
	j.phase, j.since = phase, at
}

// Decided tells of a decision, which was known at a time.
func (r *Recorder) Decided(d *record.Decision, at record.Time) {
	j := r.byUID.find(d.Pod.UID)
	if j == nil {
		return
	}
	switch {
	case d.Verdict == record.Placed:
		r.enter(j, record.PhasePreparing, at, 0, 0)
		j.place, j.plugins, j.blamed = decided, 0, 0
		if d.Winner != nil {
			j.node = d.Winner.Node
		}
		if d.Gang != nil && j.gang != nil {
			j.gang.placed(d.Gang, at)
		}
	case j.place == decided || j.place == failed: // it came back to the queue
		j.place = nowhere
		r.touched = append(r.touched, j)
	case len(d.Plugins) > 0:
		by := r.names.setOf(d.Plugins)
		if d.Gang == nil || j.gang == nil {
			j.blame(by)
			return
		}
		j.gang.blame(by)
	}
}

// blame notes which plugins rejected a pod that is back in the queue.
func (j *journey) blame(by name) {
	if j.place != queued {
		return
	}
	j.blamed = by
	if j.phase == record.PhaseUnschedulable || j.phase == record.PhaseBackoff {
		j.plugins = by
	}
}

// Preparing tells that writes before the bind of a pod were requested at a time.
func (r *Recorder) Preparing(pod record.PodRef, at record.Time) {
	if j := r.byUID.find(pod.UID); j != nil {
		if j.phase != record.PhasePreparing {
			r.enter(j, record.PhasePreparing, at, 0, 0)
		}
		j.place = decided
	}
}

// Binding tells that the bind of a pod was requested at a time.
func (r *Recorder) Binding(pod record.PodRef, node string, at record.Time) {
	if j := r.byUID.find(pod.UID); j != nil {
		r.enter(j, record.PhaseBindQueued, at, 0, 0)
		j.place, j.node, j.plugins = binding, node, 0
	}
}

// BindEnded tells that the outcome of a bind was taken by the loop.
func (r *Recorder) BindEnded(pod record.PodRef, call Call, succeeded bool, taken record.Time) {
	j := r.byUID.find(pod.UID)
	if j == nil || j.place != binding {
		return
	}
	j.call, j.answered = call, max(taken, j.since)
	switch {
	case j.over != 0:
		r.arrive(j, j.over, j.how)
	case succeeded:
		j.place = bound
	default:
		r.writeBind(j, j.answered)
		r.enter(j, record.PhaseAnswered, j.answered, 0, 0)
		j.place = failed
		r.touched = append(r.touched, j)
	}
}

// Returned tells that a pod whose bind failed is in the queue again.
func (r *Recorder) Returned(pod record.PodRef) {
	if j := r.byUID.find(pod.UID); j != nil && j.place == failed {
		j.place = nowhere
	}
}

// Bound tells that the watch showed a pod on a node: when that was received, and when the loop took it.
func (r *Recorder) Bound(pod record.PodRef, node string, received, taken record.Time) {
	j := r.byUID.find(pod.UID)
	if j == nil {
		return
	}
	received = min(received, taken)
	switch j.place {
	case bound:
		r.arrive(j, received, record.EndBound)
	case binding:
		if j.over == 0 {
			j.over, j.how = received, record.EndBound
		}
	default:
		j.node = node
		r.end(j, received, record.EndForeign)
	}
}

// Gone tells that a pod was deleted or has ended.
func (r *Recorder) Gone(pod record.PodRef, received, taken record.Time) {
	received = min(received, taken)
	r.victimGone(pod.UID, received)
	j := r.byUID.find(pod.UID)
	switch {
	case j == nil:
	case j.place == bound:
		r.arrive(j, received, record.EndGone)
	case j.place == binding:
		if j.over == 0 {
			j.over, j.how = received, record.EndGone
		}
	default:
		r.end(j, received, record.EndGone)
	}
}

// arrive ends a journey whose bind has an outcome.
func (r *Recorder) arrive(j *journey, at record.Time, how record.JourneyEnd) {
	at = max(at, j.since)
	r.writeBind(j, min(at, j.answered))
	if at > j.answered {
		r.enter(j, record.PhaseConfirming, j.answered, 0, 0)
	}
	r.end(j, at, how)
}

// writeBind writes the phases of a bind up to a time, the last of which goes on.
func (r *Recorder) writeBind(j *journey, until record.Time) {
	for _, begins := range j.bindPhases(until) {
		r.enter(j, begins.phase, begins.at, 0, 0)
	}
}

// begins is when a phase begins.
type begins struct {
	phase record.Phase
	at    record.Time
}

// bindPhases returns when the phases of a bind after PhaseBindQueued begin, none after the given time. A moment that
// was not reached is that of what follows it: a bind that was withdrawn was queued until the end, one that foreign
// code carried out was sent until the end.
func (j *journey) bindPhases(until record.Time) [3]begins {
	begun, released, first := j.call.Begun, j.call.Released, j.call.FirstByte
	if begun == 0 {
		begun = until
	}
	if released == 0 {
		released = begun
	}
	if first == 0 {
		first = until
	}
	begun = min(max(begun, j.since), until)
	released = min(max(released, begun), until)
	first = min(max(first, released), until)
	return [3]begins{{record.PhaseLimited, begun}, {record.PhaseSent, released}, {record.PhaseAnswered, first}}
}

// end ends a journey: its last phase ends then.
func (r *Recorder) end(j *journey, at record.Time, how record.JourneyEnd) {
	at = max(at, j.since)
	r.enter(j, j.phase, at, 0, 0)
	e, _ := r.ended.push()
	*e = ended{number: j.number, pod: j.pod, gang: j.gangName(), node: j.node, began: j.began, at: at, how: how,
		attempts: j.attempts, listed: j.listed, spans: j.spans, first: j.first, last: j.last}
	if how == record.EndBound && j.call.FirstByte != 0 {
		e.bind, e.lag, e.probed = j.call.Request, at-j.call.FirstByte, true
		r.watchLag.observe(e.lag)
	}
	if j.gang != nil && (how == record.EndBound || how == record.EndForeign) {
		j.gang.boundAt(at)
	}
	r.forget(j)
}

// forget drops a journey.
func (r *Recorder) forget(j *journey) {
	r.leaveGang(j)
	last := r.active[len(r.active)-1]
	r.active[j.at], last.at = last, j.at
	r.active[len(r.active)-1] = nil
	r.active = r.active[:len(r.active)-1]
	r.byUID.remove(j)
	*j = journey{}
	if len(r.free) < blockSize {
		r.free = append(r.free, j)
	}
}
