// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Listen returns foreign code of which each answer is noted. After those about victims, which are asked for behind the
// search, noted is called.
func Listen(f place.Foreign, note func(Answer), noted func()) place.Foreign {
	return &listener{f, note, noted}
}

type listener struct {
	place.Foreign
	note  func(Answer)
	noted func()
}

// Filter asks and notes.
func (l *listener) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	rejected, err := l.Foreign.Filter(p, nodes)
	a := Answer{Rejected: rejected}
	if err != nil {
		a.Err = err.Error()
	}
	l.note(a)
	return rejected, err
}

// Score asks and notes.
func (l *listener) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	scores := l.Foreign.Score(p, nodes)
	l.note(Answer{Scores: scores})
	return scores
}

// Preempt asks, notes, and puts what was noted among the effects.
func (l *listener) Preempt(
	p *cluster.Pod, candidates []place.ForeignVictims, on func(string) ([]record.PodRef, bool),
) ([]place.ForeignVictims, error) {
	chosen, err := l.Foreign.Preempt(p, candidates, on)
	a := Answer{Victims: chosen}
	if err != nil {
		a.Err = err.Error()
	}
	l.note(a)
	l.noted()
	return chosen, err
}
