// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
)

// Phase is what a pod waits for, or what is done for it, between its first observation and its observation as bound.
type Phase uint8

// The phases of a pod, in the order in which an attempt goes through them. Inbox comes once, at the beginning; the
// phases from Gated to Confirming repeat with each attempt. A phase that took no time is left out.
const (
	// PhaseInbox: the watch event was received; the scheduling loop has not taken it.
	PhaseInbox Phase = iota
	// PhaseGated: a PreEnqueue plugin keeps the unit out of the active queue, or its gang is incomplete.
	PhaseGated
	// PhaseUnschedulable: the last attempt found no node; the unit waits for an event that may change that.
	PhaseUnschedulable
	// PhaseBackoff: the unit may be tried, after its backoff.
	PhaseBackoff
	// PhaseActive: the unit waits for its turn.
	PhaseActive
	// PhaseDeciding: the scheduling cycle of the unit runs. For a member of a gang it is the cycle of the gang.
	PhaseDeciding
	// PhasePreparing: a node is decided and the bind is not requested: volumes and devices are written, Permit plugins
	// wait, or other members of the gang are not ready.
	PhasePreparing
	// PhaseBindQueued: the bind waits for a worker: for one of the binds in flight to end, or for the lease.
	PhaseBindQueued
	// PhaseLimited: the client's rate limiter delays the request (qps of clientConnection).
	PhaseLimited
	// PhaseSent: from the release by the rate limiter to the first byte of the answer: connection, sending and the API
	// server. Tries without a final outcome, and the reads that find out what became of them, are in it.
	PhaseSent
	// PhaseAnswered: from the first byte of the answer until the scheduling loop takes the outcome.
	PhaseAnswered
	// PhaseConfirming: the outcome is known; the watch has not shown the pod on its node.
	PhaseConfirming

	// Phases is the number of phases.
	Phases = int(iota)
)

var phaseNames = [Phases]string{"inbox", "gated", "unschedulable", "backoff", "active", "deciding", "preparing",
	"bind-queued", "limited", "sent", "answered", "confirming"}

// String returns the name of the phase, as in JSON and in labels of metrics.
func (p Phase) String() string {
	if int(p) < Phases {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", p)
}

// MarshalText returns the name. A phase that does not exist is an error.
func (p Phase) MarshalText() ([]byte, error) {
	if int(p) >= Phases {
		return nil, fmt.Errorf("%s does not exist", p)
	}
	return []byte(phaseNames[p]), nil
}

// UnmarshalText accepts a name that String returns.
func (p *Phase) UnmarshalText(text []byte) error {
	i := slices.Index(phaseNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("phase %q does not exist", text)
	}
	*p = Phase(i)
	return nil
}

// PhaseSpan is one stay of a pod in a phase.
type PhaseSpan struct {
	Phase Phase `json:"phase"`
	Start Time  `json:"start"`
	// Took is in nanoseconds; 0 in the last span of a pod that is still in the phase.
	Took Time `json:"took"`
	// Attempt counts the attempts that had begun; 0 before the first.
	Attempt int `json:"attempt,omitempty"`
	// Event is the label of what ended the phase, as in QueueMove, and Hint the plugin whose hint decided; both are set
	// for the phases of the queue (gated, unschedulable, backoff, active).
	Event string `json:"event,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Plugins are those that kept the pod in the phase: the plugins that rejected it in the attempt before.
	Plugins []string `json:"plugins,omitempty"`
}

// End is when the phase ended.
func (s PhaseSpan) End() Time { return s.Start + s.Took }

// JourneyEnd is how the journey of a pod ended.
type JourneyEnd string

// The ends of a journey; empty while the pod is on its way.
const (
	EndBound JourneyEnd = "bound" // the watch showed the pod on a node, after a bind by this scheduler
	EndGone  JourneyEnd = "gone"  // the pod was deleted or has ended
	// EndLeft: the pod left the queue without a decision: it is being deleted, or is not this scheduler's any more.
	EndLeft JourneyEnd = "left"
	// EndForeign: the watch showed the pod on a node, and this scheduler had not requested a bind.
	EndForeign JourneyEnd = "bound-by-other"
)

// Journey is the way of one pod from its first observation to its observation as bound.
type Journey struct {
	Pod PodRef `json:"pod"`
	// Gang is namespace/name of the pod's gang; empty without one.
	Gang string `json:"gang,omitempty"`
	Node string `json:"node,omitempty"`
	// Began is when the watch event was received that showed the pod first.
	Began Time `json:"began"`
	// Ended is when the watch event was received that showed the pod bound or gone, or when it left the queue; 0 while
	// the pod is on its way.
	Ended    Time       `json:"ended,omitempty"`
	End      JourneyEnd `json:"end,omitempty"`
	Attempts int        `json:"attempts"`
	// Listed is true if the pod came with an initial list, so that it had existed for an unknown time.
	Listed bool `json:"listed,omitempty"`
	// Spans are without gaps. If LostSpans is not 0, that many spans are missing: older ones were overwritten.
	//
	// Invariant: without lost spans, Spans[0].Start == Began, Spans[i].End() == Spans[i+1].Start, and if Ended is set,
	// the last span ends at Ended; so the sum of Took is Ended-Began to the nanosecond (Check).
	Spans     []PhaseSpan `json:"spans"`
	LostSpans int         `json:"lostSpans,omitempty"`
	// BindRequest is the AuditID of the bind that was answered last; empty if it is not known.
	BindRequest string `json:"bindRequest,omitempty"`
	// WatchLag is the time from the first byte of the bind's answer to the watch event that showed the pod bound. It is
	// negative if the watch was faster, and nil if either is not known.
	WatchLag *Time `json:"watchLag,omitempty"`
	// Arriving is the time from the commit of the pod to Began; nil if it is not known, for the reason in ArrivingWhy.
	// It is not among Spans: it is measured by two clocks, which an audit log joins.
	Arriving    *Interval `json:"arriving,omitempty"`
	ArrivingWhy string    `json:"arrivingWhy,omitempty"`
}

// Interval is a duration that is at least Least and at most Most.
type Interval struct {
	Least Time `json:"least"`
	Most  Time `json:"most"`
}

// Total is the time from first observed to observed as bound; 0 while the pod is on its way.
func (j *Journey) Total() Time {
	if j.Ended == 0 {
		return 0
	}
	return j.Ended - j.Began
}

// Per returns the time in each phase.
func (j *Journey) Per() (per [Phases]Time) {
	for _, s := range j.Spans {
		per[s.Phase] += s.Took
	}
	return per
}

// Check returns an error unless the invariant of Spans holds. Readers of files call it before they compute anything.
func (j *Journey) Check() error {
	at := j.Began
	for i, s := range j.Spans {
		switch {
		case int(s.Phase) >= Phases:
			return fmt.Errorf("pod %s, span %d: %s does not exist", j.Pod.Key(), i, s.Phase)
		case s.Took < 0:
			return fmt.Errorf("pod %s, span %d (%s): the duration is negative: %d ns", j.Pod.Key(), i, s.Phase, s.Took)
		case s.Start+s.Took < s.Start:
			return fmt.Errorf("pod %s, span %d (%s): the end is out of range", j.Pod.Key(), i, s.Phase)
		case s.Start != at && !(i == 0 && j.LostSpans > 0):
			return fmt.Errorf("pod %s, span %d (%s): it begins %d ns after the end of the one before", j.Pod.Key(), i,
				s.Phase, s.Start-at)
		}
		at = s.End()
	}
	switch {
	case j.Ended == 0:
		return nil
	case j.Ended < j.Began:
		return fmt.Errorf("pod %s: it ends %d ns before it begins", j.Pod.Key(), j.Began-j.Ended)
	case at != j.Ended && (len(j.Spans) > 0 || j.LostSpans == 0):
		return fmt.Errorf("pod %s: the phases end %d ns before the pod was observed as %s", j.Pod.Key(), j.Ended-at,
			j.End)
	}
	return nil
}

// RequestTiming is one write to the API server. The parts follow each other; one that did not happen is 0.
type RequestTiming struct {
	// AuditID identifies the request in the audit log of the API server.
	AuditID string `json:"auditID"`
	// Verb is the HTTP method, Resource the resource with its subresource: pods/binding.
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Start     Time   `json:"start"`
	// Throttle is the wait for the client's rate limiter, Connect the wait for a connection, Send the sending of the
	// request, Server the wait for the first byte of the answer, and Answer the reading of the answer.
	Throttle Time `json:"throttle"`
	Connect  Time `json:"connect"`
	Send     Time `json:"send"`
	Server   Time `json:"server"`
	Answer   Time `json:"answer"`
	// Status is the HTTP status; 0 without an answer, for the reason in Failed.
	Status int    `json:"status,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// End is when the answer had been read.
func (r *RequestTiming) End() Time {
	return r.Start + r.Throttle + r.Connect + r.Send + r.Server + r.Answer
}

// Histogram counts durations. Counts has one number more than Bounds: of those above the last bound.
type Histogram struct {
	// Bounds are upper bounds in nanoseconds, inclusive, increasing.
	Bounds []Time   `json:"bounds"`
	Counts []uint64 `json:"counts"`
	Count  uint64   `json:"count"`
	Sum    Time     `json:"sum"`
	Max    Time     `json:"max"`
}

// PhaseHistogram has the stays in one phase since the start of the scheduler.
type PhaseHistogram struct {
	Phase Phase `json:"phase"`
	Histogram
}

// Lost counts what is missing in a Timing because it was overwritten before it was read.
type Lost struct {
	Spans     uint64 `json:"spans"`
	Journeys  uint64 `json:"journeys"`
	Gangs     uint64 `json:"gangs"`
	Evictions uint64 `json:"evictions"`
	Requests  uint64 `json:"requests"`
}

// Timing is where time went, as one process of a scheduler knows it: bounded, the newest of each kind, oldest first.
type Timing struct {
	// Epoch identifies the process: times of two processes are of two clocks.
	Epoch string `json:"epoch"`
	// Only is the one namespace that the reader may see; empty for all.
	Only string `json:"only,omitempty"`
	// Since is when the process began to record, Now when this was read, by the clock of the loop: it is the wall clock
	// at the start of the process and never goes back.
	Since Time `json:"since"`
	Now   Time `json:"now"`
	// Wall is the wall clock at Now. A difference means that the clock was set since the start.
	Wall  Time             `json:"wall"`
	Lost  Lost             `json:"lost"`
	Phase []PhaseHistogram `json:"phases"`
	// WatchLag has the lags of all binds; negative ones count as 0.
	WatchLag  Histogram        `json:"watchLag"`
	Journeys  []Journey        `json:"journeys"`
	Gangs     []GangTiming     `json:"gangs"`
	Evictions []EvictionTiming `json:"evictions"`
	Requests  []RequestTiming  `json:"requests"`
}
