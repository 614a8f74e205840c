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
