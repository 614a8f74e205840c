// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// TestMutants puts each fault of mutant.go into the engine and demands that the random histories or the stories see it. A
// fault that nothing sees is a rule that nothing holds.
func TestMutants(t *testing.T) {
	probe.QuickRapid(t, 2000)
	for m := 1; m < engine.Mutations; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			defer engine.SetMutant(m)()
			switch {
			case goesAnotherWay(t, "testdata/*.txt", func(script []byte) []byte { return newStory(t).play(script) }),
				goesAnotherWay(t, "testdata/preempt/*.txt", func(script []byte) []byte { return newRobbing(t).play(script) }):
				t.Log("seen by stories")
			case goesAnotherWay(t, "testdata/simulated/*.txt", func(script []byte) []byte { return newSimulation(t).play(script) }):
				t.Log("seen by scenarios on a simulated cluster")
			case goesAnotherWay(t, "testdata/sessions/*.txt", func(script []byte) []byte { return newSitting(t).play(script) }):
				t.Log("seen by stories of sessions")
			case goesAnotherWay(t, "testdata/whatif/*.txt", func(script []byte) []byte { return newAsking(t).play(script) }):
				t.Log("seen by stories of questions")
			case probe.Fails(func(p *probe.T) { askedAboutUnits(p) }):
				t.Log("seen by TestForeignCodeIsAskedAboutUnits")
			case probe.Fails(func(p *probe.T) { unprovedIsTold(p) }):
				t.Log("seen by TestUnprovedIsTold")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, history) }):
				t.Log("seen by random histories")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, gangHistory) }):
				t.Log("seen by random histories of gangs")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, gangEviction) }):
				t.Log("seen by random histories of evictions in units")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { groupHistory(t) }) }):
				t.Log("seen by random histories of groups")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, besideStrangers) }):
				t.Log("seen by random histories beside strangers")
			default:
				t.Errorf("nothing sees mutant %d of core/engine/mutant.go", m)
			}
		})
	}
}
