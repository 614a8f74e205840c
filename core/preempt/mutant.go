// SPDX-License-Identifier: Apache-2.0

package preempt

// mutation is a fault that a test can put into the search for victims to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation        mutation = iota
	equalsEvicted              // pods of the same priority may go
	neverIgnored               // a pod with preemptionPolicy Never evicts others
	awaitedIgnored             // a pod evicts again while its victims are going
	violationsIgnored          // budgets do not count in the choice of a node
	budgetsUnread              // budgets protect nobody
	sparedByPlace              // protected pods are not spared first
	sumIgnored                 // sums of priorities do not count
	youngestKept               // the node whose victim has run longest is taken
	oldestOfAll                // the start of victims of lower priority counts
	unstartedOldest            // a pod that has not started counts as the oldest
	youngestFirst              // of equal priority the youngest is spared first
	nobodySpared               // all pods of lower priority go
	shelfMissed                // a changed row is not looked at again
	ageMissed                  // a start that is learnt later is missed
	boundHigh                  // a bound counts a victim that need not go
	lastRow                    // of equal losses the last row is taken
	limitIgnored               // all nodes are tried whatever the limit
	restIgnored                // what is told of nodes that were not tried is left out
	listCutShort               // of the cheapest candidates the last is left out
	offeredIgnored             // nodes count with what they say that they offer
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
