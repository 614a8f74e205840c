// SPDX-License-Identifier: Apache-2.0

package engine

import (
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
	l.e.out.foreignAnswers = append(l.e.out.foreignAnswers, a)
	return rejected, err
}

// Score asks and notes.
func (l *listener) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	scores := l.Foreign.Score(p, nodes)
	l.e.out.foreignAnswers = append(l.e.out.foreignAnswers, Answer{Scores: scores})
	return scores
}

// Preempt asks, notes, and puts what was noted among the effects.
func (l *listener) Preempt(p *cluster.Pod, candidates []place.ForeignVictims, on func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	chosen, err := l.Foreign.Preempt(p, candidates, on)
	a := Answer{Victims: chosen}
	if err != nil {
		a.Err = err.Error()
	}
	l.e.out.foreignAnswers = append(l.e.out.foreignAnswers, a)
	l.e.emitForeignAnswers()
	return chosen, err
}

// emitForeignAnswers emits the answers of foreign code as an effect.
func (e *Engine) emitForeignAnswers() {
	if len(e.out.foreignAnswers) > 0 {
		e.emit(Heard{Answers: e.out.foreignAnswers})
		e.out.foreignAnswers = nil
	}
}
