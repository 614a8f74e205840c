// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Stage is a part of the way of a pod.
type Stage uint8

// The stages, in the order in which a pod passes them. Loop contains the active queue; BindQueue the binds that wait
// for one of those in flight to end.
const (
	Creation Stage = iota
	Watch
	Inbox
	Loop
	Preparing
	BindQueue
	Limiter
	APIServer
	Answer
	Confirmation

	// Stages is the number of stages.
	Stages = int(iota)
)

var stageNames = [Stages]string{"creation", "watch", "inbox", "loop", "prepare", "bind-queue", "client-limit",
	"api-server", "answer", "confirmation"}

// String returns the name of the stage.
func (s Stage) String() string { return stageNames[s] }

// MarshalText returns the name.
func (s Stage) MarshalText() ([]byte, error) { return []byte(stageNames[s]), nil }

// Reason is why a pod is not in the flow.
type Reason uint8

// The reasons. OnVictims has the pods for which pods were evicted that are not gone yet.
const (
	Gated Reason = iota
	BackingOff
	Unschedulable
	OnVictims
	NextSession
	// Overlooked has the pods that might be tried while the loop was idle.
	Overlooked

	// Reasons is the number of reasons.
	Reasons = int(iota)
)

var reasonNames = [Reasons]string{"gated", "backoff", "unschedulable", "victims", "session", "overlooked"}

// String returns the name of the reason.
func (r Reason) String() string { return reasonNames[r] }

// Load is what one stage did in one bucket.
type Load struct {
	// In and Out are the pods that entered and left.
	In, Out float64
	// Content is the mean number of pods in the stage.
	Content float64
	// AtCapacity is the share of the bucket in which the stage did as much as it can. Blocked is the share in which it
	// did nothing because a stage behind it or a limit did not let it, Starved that in which it had nothing to do.
	//
	// Invariant: each is at least 0, and their sum at most 1.
	AtCapacity, Blocked, Starved float64
}

// Bucket is a part of the observed time.
type Bucket struct {
	Took   time.Duration
	Stages [Stages]Load
	// Held is the mean number of pods outside of the flow, by reason.
	Held [Reasons]float64
}

// Part is a share of the time of a stage that one cause takes. Evidence says how it is known.
type Part struct {
	Cause    Cause
	Share    float64
	Evidence string
	// Stays is the share of this time that pods take without the cause too.
	Stays float64
}

// Limit is a number that bounds something; Default is the value that it has without configuration. Zero is unknown.
type Limit struct{ Value, Default float64 }

// Evidence has facts about the whole time. Nil pointers and zero limits are not observed.
type Evidence struct {
	// Parts are shares of the time of a stage: of the time at capacity for the loop, of the time in which the loop was
	// idle for the inbox, of all time that pods spend in them for the other stages. Those of one stage add up to 1 at
	// most.
	Parts [Stages][]Part
	// Unmeasured is set for a stage whose time cannot be divided into service and causes: it stays unexplained.
	Unmeasured [Stages]bool
	// InFlight bounds the binds in flight, DecidedAhead the decisions without an outcome.
	InFlight, DecidedAhead Limit
	// Blocked is why the loop was blocked, if no stage behind it was at capacity; nil means DecidedAhead.
	Blocked *Cause
	// Retried is the share of the attempts after a backoff that placed the pod; nil without such attempts.
	Retried *float64
	// Flushed is the share of the unschedulable pods that were placed after a timeout alone had woken them.
	Flushed float64
	// Waited is the total time of pods in the observed time by a second measurement, of the pods that entered and left.
	// Nil if there is none.
	Waited *time.Duration
	// WaitedWithin is by how much the two measurements may differ because one of them was made at intervals.
	WaitedWithin time.Duration
	// Resolution is the waiting in pod-seconds below which the first measurement is too coarse to predict a gain.
	Resolution float64
	// Unobserved are causes that the source cannot show, with the reason.
	Unobserved map[Cause]string
	// Source says by what it is known where pods are.
	Source string
}

// Window is the input of Find.
type Window struct {
	Buckets  []Bucket
	Evidence Evidence
}

// Took is the observed time.
func (w *Window) Took() (sum time.Duration) {
	for i := range w.Buckets {
		sum += w.Buckets[i].Took
	}
	return sum
}

// maxBuckets bounds the input: more than an hour of 100 ms.
const maxBuckets = 100_000

// check returns why a window cannot be used; nil if it can.
func (w *Window) check() error {
	switch {
	case len(w.Buckets) == 0:
		return errors.New("nothing was observed")
	case len(w.Buckets) > maxBuckets:
		return fmt.Errorf("%d buckets are more than %d", len(w.Buckets), maxBuckets)
	}
	for i := range w.Buckets {
		if err := w.Buckets[i].check(); err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
	}
	for s, parts := range w.Evidence.Parts {
		sum := 0.0
		for _, p := range parts {
			if int(p.Cause) >= Causes || !valid(p.Share) || !valid(p.Stays) || p.Stays > 1 {
				return fmt.Errorf("stage %s: cause %d has the share %v", Stage(s), p.Cause, p.Share)
			}
			sum += p.Share
		}
		if sum > 1+rounding {
			return fmt.Errorf("stage %s: causes take %.2f of its time", Stage(s), sum)
		}
	}
	e := &w.Evidence
	for name, share := range map[string]float64{ // order: any of them is an error
		"Flushed": e.Flushed, "Retried": orZero(e.Retried)} {
		if !valid(share) || share > 1+rounding {
			return fmt.Errorf("%s is %v and must be a share", name, share)
		}
	}
	if !valid(e.Resolution) {
		return fmt.Errorf("the resolution is %v", e.Resolution)
	}
	if e.WaitedWithin < 0 {
		return fmt.Errorf("the second measurement is exact within %s", e.WaitedWithin)
	}
	if !valid(e.InFlight.Value) || !valid(e.InFlight.Default) || !valid(e.DecidedAhead.Value) ||
		!valid(e.DecidedAhead.Default) {
		return errors.New("a limit is no number")
	}
	return nil
}

// rounding is by how much shares may exceed 1.
const rounding = 1e-6

func (b *Bucket) check() error {
	if b.Took <= 0 {
		return fmt.Errorf("it takes %s", b.Took)
	}
	for s := range b.Stages {
		l := &b.Stages[s]
		for _, v := range []float64{l.In, l.Out, l.Content, l.AtCapacity, l.Blocked, l.Starved} {
			if !valid(v) {
				return fmt.Errorf("stage %s has the value %v", Stage(s), v)
			}
		}
		if sum := l.AtCapacity + l.Blocked + l.Starved; sum > 1+rounding {
			return fmt.Errorf("stage %s: the shares of time add up to %.2f", Stage(s), sum)
		}
	}
	for r, v := range b.Held {
		if !valid(v) {
			return fmt.Errorf("pods that are %s: %v", Reason(r), v)
		}
	}
	return nil
}

// valid reports whether v is a number from 0 to 1e12.
func valid(v float64) bool { return v >= 0 && v <= 1e12 && !math.IsNaN(v) }

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
