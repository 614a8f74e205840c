// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// TestMutants puts each fault of mutant.go into the search and demands that the comparison with the slow twin, or the tests
// of budget, window and samples, see it.
func TestMutants(t *testing.T) {
	probe.QuickRapid(t, 1000)
	profs, plain := profiles(t), defaultProfile(t)
	for m := 1; m < place.Mutations; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			defer place.SetMutant(m)()
			seen := probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { twins(t, profs["wide"]) }) }) ||
				probe.Fails(func(p *probe.T) { budgetHolds(p, plain) }) ||
				probe.Fails(func(p *probe.T) { samplesAreDrawn(p) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, windows) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, place.Rankings) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, place.CodedRankings) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { groupTwins(t, plain, new(paths)) }) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { volumeTwins(t, plain, new(paths)) }) }) ||
				probe.Fails(func(p *probe.T) { rapid.Check(p, func(t *rapid.T) { twins(t, profs["default"]) }) })
			if !seen {
				t.Errorf("nothing sees mutant %d of core/place/mutant.go", m)
			}
		})
	}
}
