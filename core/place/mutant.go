// SPDX-License-Identifier: Apache-2.0

package place

// mutation is a fault that a test can put into the search to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation        mutation = iota
	nominationStays            // a verdict under nominations outlives the decision
	ownAlone                   // a pod goes where it is nominated though others expected there leave no room
	rowMissed                  // a changed row is not judged again
	scoreMissed                // a changed row is not scored again
	epochIgnored               // scores stay though something besides their row changed
	leftoversRead              // what a column held before it was prepared anew is counted
	normalOverAll              // normalising looks at nodes that do not fit
	tieToFirst                 // the draw is not asked
	budgetIgnored              // classes are never dropped
	wideSkipped                // wide filters have no say
	supposedUncounted          // filters that count pods of other rows are not told of nominated ones
	foreignIgnored             // what foreign code rejects is taken
	rawScores                  // wide scores are not normalised
	lateFirst                  // a filter after a wide one overrules it
	quotaShort                 // the window ends one node early
	windowStands               // the window does not move on
	rejectsUncounted           // the window moves on by the nodes that fit alone
	sampleFirst                // a sample is the first rows, not drawn ones
	rankMissed                 // a changed row keeps its place in the ranking
	measureKept                // totals stay when what they are measured by changes
	wingsKept                  // the highest summaries of a ranking stay
	nextFirst                  // the runner-up is any row but the winner
	regroupMissed              // a row that leaves its group joins no other
	groupsUnjudged             // wide filters have no say about groups
	kinMissed                  // a node that changes is the same to kin
	lastRejects                // what a node lacks overrules what its kin rejects
	quietTaken                 // every filter that can be quiet is taken to be
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
