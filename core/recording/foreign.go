// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign answers in place of foreign code what that answered when a recording was made. SetAnswers must be called
// before each cycle. What does not depend on the moment is asked of the code itself.
type Foreign struct {
	engine.Foreign
	answers []engine.Answer
}

// SetAnswers sets the answers of the next cycle.
func (r *Foreign) SetAnswers(answers []engine.Answer) { r.answers = answers }

func (r *Foreign) next() engine.Answer {
	if len(r.answers) == 0 {
		return engine.Answer{Err: "the recording has no answer of foreign code here"}
	}
	a := r.answers[0]
	r.answers = r.answers[1:]
	return a
}

// Filter returns the recorded answer.
func (r *Foreign) Filter(*cluster.Pod, []string) (map[string]place.ForeignRejection, error) {
	a := r.next()
	if a.Err != "" {
		return nil, errors.New(a.Err)
	}
	return a.Rejected, nil
}

// Score returns the recorded answer.
func (r *Foreign) Score(*cluster.Pod, []string) []place.ForeignScore { return r.next().Scores }

// Preempt returns the recorded answer.
func (r *Foreign) Preempt(*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	a := r.next()
	if a.Err != "" {
		return nil, errors.New(a.Err)
	}
	return a.Victims, nil
}
