// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// styleOf is a style by its name in configurations; nil is the engine's own way.
func styleOf(name string) *engine.Style {
	var s engine.Style
	switch name {
	case "transaction":
		return nil
	case "coscheduling":
		s = engine.Coscheduling()
	case "pfnet":
		s = engine.Pfnet()
	case "improvedCoscheduling":
		s = engine.ImprovedCoscheduling()
	default:
		panic(fmt.Sprintf("no style %q", name))
	}
	return &s
}

// TestStylesHoldNothingForEver runs random histories of gangs under each style: binds fail, nodes and pods vanish, the
// scheduler is killed at any point. Held at every moment: no node is oversold. Held once the longest wait is over and nothing
// more is tried: nobody holds a seat, nothing is assumed, the queue counts nothing as in flight, and the tape plays to the
// same effects.
// It catches the mutants seatForEver and bindWithoutRoom.
func TestStylesHoldNothingForEver(t *testing.T) { rapid.Check(t, styleHistory) }

func styleHistory(t *rapid.T) {
	w := newWorld(t)
	w.style = styleOf(rapid.SampledFrom([]string{"coscheduling", "pfnet", "improvedCoscheduling"}).Draw(t, "style"))
	w.restart()
	w.gangsCome(t)
	w.calm = true
	for range 30 {
		w.drain()
		w.send(engine.Cycle{}) // not until nothing is ready: some styles never come to that
	}
	for range 100 {
		w.now += 2 * record.Second
		w.send(engine.Tick{Now: w.now})
		w.drain()
	}
	w.checkLedger()
	w.checkReplay()
}
