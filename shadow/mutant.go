// SPDX-License-Identifier: Apache-2.0

package shadow

// mutation is a fault that a test can put into the shadow to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation       mutation = iota
	believedAtOnce            // a dispute counts at the first look
	neverSettled              // a later look settles nothing
	quietInBursts             // other pods on their way do not make a case less certain
	quietInChange             // changes of the cluster do not make a case less certain
	triedRest                 // pods that were tried in vain are never on their way
	changeIgnored             // a node that has just changed is disputed about
	gatesTimed                // the time behind gates counts as theirs
	retriesTimed              // pods that were tried in vain count in their latency
	refusedTwice              // each new condition counts again
	goneSettles               // a pod that is gone settles its dispute
	mildFirst                 // the mildest examples are kept
	earlyJudged               // binds in the initial lists are judged
	openUnlimited             // any number of disputes is open
	reasonsUnlimited          // any number of reasons is told apart
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
