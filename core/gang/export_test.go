// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// CheckInvariants returns the first invariant of a search's answer, and of the context that it leaves, that does not
// hold; nil if all hold.
func CheckInvariants(need Need, g *Ground, a Answer) error {
	for i := 1; i < len(g.taken); i++ {
		if g.taken[i].mark <= g.taken[i-1].mark {
			return fmt.Errorf("member %d was placed at mark %d, after mark %d", i, g.taken[i].mark, g.taken[i-1].mark)
		}
	}
	if a.Verdict != Placed {
		if len(g.taken) > 0 || a.Nodes != nil || a.Holds != nil {
			return fmt.Errorf("verdict %d, and %d members hold rows %v", a.Verdict, len(g.taken), a.Nodes)
		}
		return nil
	}
	placed := 0
	for i, n := range a.Nodes {
		if n == cluster.NoNode {
			continue
		}
		placed++
		if _, row, assumed, ok := g.state().PodOn(need.Members[i].UID); !ok || !assumed || row != n {
			return fmt.Errorf("member %d is placed on row %d; the trial has it on row %d", i, n, row)
		}
		if !slices.ContainsFunc(g.taken, func(t taken) bool { return t.member == i }) {
			return fmt.Errorf("member %d is placed and not among those that can be rolled back", i)
		}
	}
	if placed < need.Quorum || placed != len(a.Order) || placed != len(g.taken) {
		return fmt.Errorf("%d members placed of %d that are needed; %d in order, %d can be rolled back", placed,
			need.Quorum, len(a.Order), len(g.taken))
	}
	return nil
}
