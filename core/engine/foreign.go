// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign is the port through which code that is not native takes part in a decision.
type Foreign = place.Foreign

// listener notes what foreign code answers.
type listener struct {
	Foreign
	e *Engine
}

// Filter asks and notes.
func (l *listener) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	rejected, err := l.Foreign.Filter(p, nodes)
	a := Answer{Rejected: rejected}
	if err != nil {
		a.Err = err.Error()
	}
	l.e.out.heard = append(l.e.out.heard, a)
	return rejected, err
}

// Score asks and notes.
func (l *listener) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	scores := l.Foreign.Score(p, nodes)
	l.e.out.heard = append(l.e.out.heard, Answer{Scores: scores})
	return scores
}

// Preempt asks, notes, and puts what was noted among the effects.
func (l *listener) Preempt(p *cluster.Pod, candidates []place.ForeignVictims, on func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	chosen, err := l.Foreign.Preempt(p, candidates, on)
	a := Answer{Victims: chosen}
	if err != nil {
		a.Err = err.Error()
	}
	l.e.out.heard = append(l.e.out.heard, a)
	l.e.tellHeard()
	return chosen, err
}

// tellHeard puts what foreign code answered among the effects.
func (e *Engine) tellHeard() {
	if len(e.out.heard) > 0 {
		e.emit(Heard{e.out.heard})
		e.out.heard = nil
	}
}

// Recorded answers in place of foreign code what it answered when a recording was made. Tell it the answers of a cycle
// before the cycle. What does not depend on the moment, it asks the code itself.
type Recorded struct {
	Foreign
	answers []Answer
}

// Tell gives the answers of the next cycle.
func (r *Recorded) Tell(answers []Answer) { r.answers = answers }

func (r *Recorded) next() Answer {
	if len(r.answers) == 0 {
		return Answer{Err: "the recording has no answer of foreign code here"}
	}
	a := r.answers[0]
	r.answers = r.answers[1:]
	return a
}

// Filter gives the recorded answer.
func (r *Recorded) Filter(*cluster.Pod, []string) (map[string]place.ForeignRejection, error) {
	a := r.next()
	if a.Err != "" {
		return nil, errors.New(a.Err)
	}
	return a.Rejected, nil
}

// Score gives the recorded answer.
func (r *Recorded) Score(*cluster.Pod, []string) []place.ForeignScore { return r.next().Scores }

// Preempt gives the recorded answer.
func (r *Recorded) Preempt(*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	a := r.next()
	if a.Err != "" {
		return nil, errors.New(a.Err)
	}
	return a.Victims, nil
}
