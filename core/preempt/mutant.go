// SPDX-License-Identifier: Apache-2.0

package preempt

// mutation is a fault that a test can put into the search for victims to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation         mutation = iota
	equalsEvicted               // pods of the same priority may go
	neverIgnored                // a pod with preemptionPolicy Never evicts others
	awaitedIgnored              // a pod evicts again while its victims are going
	violationsIgnored           // budgets do not count in the choice of a node
	budgetsUnread               // budgets protect nobody
	sparedByPlace               // protected pods are not spared first
	sumIgnored                  // sums of priorities do not count
	youngestKept                // the node whose victim has run longest is taken
	oldestOfAll                 // the start of victims of lower priority counts
	unstartedOldest             // a pod that has not started counts as the oldest
	youngestFirst               // of equal priority the youngest is spared first
	nobodySpared                // all pods of lower priority go
	shelfMissed                 // a changed row is not looked at again
	ageMissed                   // a start that is learnt later is missed
	expectedTwice               // pods that are expected on a node count twice there
	boundHigh                   // a bound counts a victim that need not go
	lastRow                     // of equal losses the last row is taken
	limitIgnored                // all nodes are tried whatever the limit
	restIgnored                 // what is told of nodes that were not tried is left out
	listCutShort                // of the cheapest candidates the last is left out
	offeredIgnored              // nodes count with what they say that they offer
	budgetsAdvise               // strict budgets do not bind
	unitEquals                  // units of the same priority may go
	gangBroken                  // a gang goes without its pods on other nodes
	ownGangGoes                 // the preemptor's own gang may go
	neverGoes                   // who may not be evicted is
	goingUncounted              // the room of terminating pods is not counted on
	goingAgain                  // terminating pods are victims
	unitBudgetsIgnored          // budgets do not count in the loss of units
	unitHighestIgnored          // nor the highest priority
	unitCountIgnored            // nor the number of units
	podCountIgnored             // nor that of pods
	oldestUnitsGo               // the oldest go, not the newest
	roomBelieved                // where there is room by amounts no dry run is made
	roomShort                   // a row is said to have room for one less
	kindsApart                  // a row that is full for one kind of members is no use for another
	keysUnread                  // the room is that of all domains together
	boundUnread                 // the domain of members that have a node does not bind
	hopelessForGood             // a row that is hopeless now is so whoever goes
	unneededGo                  // nobody asks whether each that is left to go is needed
	unitsUnspared               // all units of lower priority go
	trialKept                   // who was supposed gone stays so
	cutUntold                   // the least is said to be found although sets were left out
	rowsForAll                  // one row must hold the whole gang when sets are thought of
	thriftForgotten             // only the plain form's order is tried
	wayUnknown                  // all go that are on the rows of the places
	uselessGo                   // nobody is left out beforehand
	unitBudgetsAdvise           // strict budgets do not bind where units go
	unitRowMissed               // a changed row is not looked at again for its units
	unitAgeMissed               // nor one on which something was learnt
	gangObjectMissed            // a gang's object that changes is missed
	leaverMissed                // a gang that a pod has left is as before
	gangRowsStay                // a gang's rows keep the priority and the manner in which it went before
	weakestProtects             // a gang is protected by its least important pod
	expectedUncounted           // the room of pods that are expected on a row is free for one pod
	oneRowEnough                // the first row on which somebody's going helps one pod is taken
	singlesOnly                 // a row's cheapest set is taken to be of one unit
	boundTight                  // a row is thought to cost at least one unit more
	budgetHarms                 // who is one of two that a budget is about is thought to break it alone
	roomToComeUntold            // where the room of those who go already is enough, those who stay are told to be too few
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
