// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
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

// Part returns what the decision of each member says of its gang.
func (a *Attempt) Part() *record.GangPart {
	return &record.GangPart{
		Name: a.Gang.String(), Source: string(a.Gang.Source), Decision: a.Number, Quorum: a.Quorum, Held: a.Held,
		Members: len(a.Need.Members), Placed: a.Answer.Most, Tried: a.Answer.Tried, Domains: a.Answer.Domains,
	}
}

// Message returns what became of the attempt, in the words of events and conditions.
func (a *Attempt) Message() string {
	ans, members := a.Answer, len(a.Need.Members)
	if ans.Proof != "" && !a.Surplus { // whatever else is in the way, and that changes
		return fmt.Sprintf("gang %s %s: %s", a.Gang, ans.Verdict, ans.Proof)
	}
	message := fmt.Sprintf("gang %s %s: %d of %d pods found a place, %d are needed",
		a.Gang, ans.Verdict, max(ans.Most, 0), members, a.Need.Quorum)
	switch {
	case a.Surplus:
		message = NoExtras(a.Gang, members)
	case a.Held > 0:
		message += fmt.Sprintf(" besides the %d that have one", a.Held)
	}
	if ans.Unavailable != "" {
		message += ". " + ans.Unavailable
	}
	switch {
	case ans.Err != nil:
		return fmt.Sprintf("gang %s: %v", a.Gang, ans.Err)
	case ans.Why.Message != "" && ans.Blocked >= 0:
		return message + fmt.Sprintf(". %s: %s", a.First().Name, ans.Why.Message)
	}
	return message
}

// NoExtras returns the message that surplus members of a gang found no place.
func NoExtras(key cluster.GangKey, count int) string {
	return fmt.Sprintf("gang %s has the pods that it needs, and there is no room for the %d beyond them", key, count)
}

// Placed returns the members that have a node.
func (a *Attempt) Placed() map[cluster.UID]bool {
	placed := map[cluster.UID]bool{} // member -> it has a node
	for i, p := range a.Need.Members {
		if a.Answer.Nodes[i] != cluster.NoNode {
			placed[p.UID] = true
		}
	}
	return placed
}
