// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// TestMutants puts each fault of mutant.go into the search and demands that a story, the comparison with the exact solver,
// or the share of solved instances see it.
func TestMutants(t *testing.T) {
	probe.QuickRapid(t, 3000)
	for m := 1; m < gang.Mutations; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			defer gang.SetMutant(m)()
			if by := whoSees(); by != "" {
				t.Log("seen by", by)
			} else {
				t.Errorf("nothing sees mutant %d of core/gang/mutant.go", m)
			}
		})
	}
}

func whoSees() string {
	for name, story := range stories {
		if probe.Fails(func(p *probe.T) { story(p) }) {
			return "the story " + name
		}
	}
	if probe.Fails(func(p *probe.T) { rapid.Check(p, roomIsNotDenied) }) {
		return "gangs cut out of nodes"
	}
	if probe.Fails(func(p *probe.T) { rapid.Check(p, fewestRacks) }) {
		return "racks"
	}
	for name, m := range mixes {
		if probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { answerHolds(t, m) }) }) {
			return "random gangs, " + name
		}
	}
	for _, f := range families()[:6] {
		if probe.Fails(func(p *probe.T) { f.solve(p, profile(p), 30) }) {
			return "shares of " + f.name
		}
	}
	return ""
}
