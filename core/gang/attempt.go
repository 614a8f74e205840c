// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Attempt is one attempt to place the waiting pods of a gang: what is known of them, what is asked of the search, and
// what it answered. Each phase of a scheduling cycle reads what the phases before it found.
type Attempt struct {
	Gang cluster.GangKey
	// Number is that of the decision; Nth is the number of attempts that the pods have had, with this one.
	Number uint64
	Nth    int
	// Waiting are all waiting pods of the gang, in the order of their unit. Invariant: it is not empty, and
	// Need.Members are those of them that no gate holds.
	Waiting []*cluster.Pod
	// Gates are the plugins that hold the others.
	Gates []string
	// Quorum is how many pods of the gang must have a place for any to get one; Held is how many have a place that
	// they keep.
	Quorum, Held int
	// Surplus is set if the gang has its quorum without the waiting pods.
	Surplus bool

	Need        Need
	Nominations place.Nominations // of other pods, that the search respects
	Answer      Answer
}

// Rejecting returns the plugins whose events may help the gang, or those of its members that were left over: the
// plugins that reject a member, and those whose gates hold one.
func (a *Attempt) Rejecting(gates []string) (plugins []string) {
	plugins = a.Answer.Plugins
	if len(plugins) == 0 {
		plugins = a.Answer.Why.Plugins
	}
	return append(plugins[:len(plugins):len(plugins)], gates...)
}

// First returns the first member that the best try did not place, or the first of all.
func (a *Attempt) First() *cluster.Pod { return a.Need.Members[max(a.Answer.Blocked, 0)] }
