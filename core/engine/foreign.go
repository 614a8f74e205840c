// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Foreign is the port through which code that is not native takes part in a decision.
type Foreign = place.Foreign

// Answers notes what plugins of kube-scheduler's framework answer in a Step, or answers instead of them (package
// answers).
type Answers interface {
	// Begin begins a Step.
	Begin()
	// End ends the Step and returns the answers, nil for none. They stay good.
	End() []byte
}

// Answers returns those of the configuration, nil for none.
func (e *Engine) Answers() Answers { return e.cfg.Answers }

// listener notes what foreign code answers, for the effects.
func (e *Engine) listener(f Foreign) Foreign {
	note := func(a Answer) { e.out.foreignAnswers = append(e.out.foreignAnswers, a) }
	return message.Listen(f, note, e.emitForeignAnswers)
}

// emitForeignAnswers emits the answers of foreign code as an effect.
func (e *Engine) emitForeignAnswers() {
	if len(e.out.foreignAnswers) > 0 {
		e.emit(Heard{Answers: e.out.foreignAnswers})
		e.out.foreignAnswers = nil
	}
}
