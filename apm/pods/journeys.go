// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"io"
)

// maxPhases bounds the phases of one journey, and maxPhaseName the length of their names.
const (
	maxPhases    = 100_000
	maxPhaseName = 64
)

// Phase is one stay of a pod in a phase, in nanoseconds.
type Phase struct {
	Phase string `json:"phase"`
	Start int64  `json:"start"`
	Took  int64  `json:"took"`
}

// Journey is the way of a pod from its first observation by the scheduler to its observation as bound.
type Journey struct {
	Pod struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"pod"`
	Began int64 `json:"began"`
	// Ended is 0 while the pod is on its way. End is bound, gone or left.
	Ended int64  `json:"ended"`
	End   string `json:"end"`
	// Spans are without gaps from Began to Ended, unless some are lost.
	Spans     []Phase `json:"spans"`
	LostSpans int     `json:"lostSpans"`
}

// Key returns namespace/name.
func (j *Journey) Key() string { return j.Pod.Namespace + "/" + j.Pod.Name }

// Whole reports whether the phases of a bound pod are complete, so that their sum is the time to the bind.
func (j *Journey) Whole() bool { return j.End == "bound" && j.LostSpans == 0 }

// Journeys are the ways of pods that a scheduler reports.
type Journeys struct {
	Journeys []Journey `json:"journeys"`
}

// ReadJourneys reads the journeys in a part of kumiki's timing.
func ReadJourneys(r io.Reader) (*Journeys, error) {
	var j Journeys
	if err := decode(r, &j); err != nil {
		return nil, fmt.Errorf("the timing of pods: %w", err)
	}
	if len(j.Journeys) > MaxPods {
		return nil, fmt.Errorf("the timing of pods: %d pods are more than the limit of %d", len(j.Journeys), MaxPods)
	}
	for i := range j.Journeys {
		if err := j.Journeys[i].check(); err != nil {
			return nil, fmt.Errorf("the timing of pods: %w", err)
		}
	}
	return &j, nil
}

// check returns an error unless the phases follow each other without gaps from the begin to the end.
func (j *Journey) check() error {
	if err := checkNames(j.Pod.Namespace, j.Pod.Name); err != nil {
		return err
	}
	if len(j.Spans) > maxPhases || j.LostSpans < 0 || j.Began <= 0 {
		return fmt.Errorf("pod %s: %d phases from %d, %d lost", j.Key(), len(j.Spans), j.Began, j.LostSpans)
	}
	at := j.Began
	for i, s := range j.Spans {
		switch {
		case s.Phase == "" || len(s.Phase) > maxPhaseName:
			return fmt.Errorf("pod %s, phase %d: %.80q is no name", j.Key(), i, s.Phase)
		case s.Took < 0 || s.Start+s.Took < s.Start:
			return fmt.Errorf("pod %s, phase %d (%s): it takes %d ns", j.Key(), i, s.Phase, s.Took)
		case s.Start != at && !(i == 0 && j.LostSpans > 0):
			return fmt.Errorf("pod %s, phase %d (%s): it begins %d ns after the end of the one before", j.Key(), i,
				s.Phase, s.Start-at)
		}
		at = s.Start + s.Took
	}
	lost := len(j.Spans) == 0 && j.LostSpans > 0 // all of them
	if j.Ended != 0 && (j.Ended < j.Began || at != j.Ended && !lost) {
		return fmt.Errorf("pod %s: the phases end at %d, the pod at %d", j.Key(), at, j.Ended)
	}
	return nil
}
