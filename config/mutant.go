// SPDX-License-Identifier: Apache-2.0

package config

// mutation is a fault that a test can put into the rules to show that the suite sees it.
type mutation int

// The faults, by what goes wrong.
const (
	noMutation          mutation = iota
	zeroIsAbsent                 // a zero that the file says is replaced by the default
	weightStaysZero              // a resource without a weight keeps 0
	defaultsFirst                // arguments are decoded over their defaults
	listDefaulting               // topology spread has no system default
	systemWithList               // default constraints are taken while the type is System
	oneConstraintPerKey          // two constraints on one key are refused though their actions differ
	noCandidates                 // preemption may look at no node
	sampledCandidates            // preemption looks at a share of the nodes although nobody asked for it
	anyBindingTimeout            // devices may be waited for no time at all
	groupWithSlash               // a resource group may hold a slash
	flatShape                    // two points of a shape may share a utilization
	starKeepsMulti               // '*' at a point does not keep multiPoint out
	overrideLast                 // what a point says itself goes after multiPoint
	multiWeightWins              // the weight at multiPoint beats the one at score
	profileShareIgnored          // a profile's percentage does not override the global one
	shareIsNoWindow              // percentageOfNodesToScore does not choose the window
	subsetUnbounded              // randomSubset needs no number
	seedPerProfile               // profiles may contradict each other about the process
	twoBinders                   // two extenders may bind
	weightlessExtender           // an extender that prioritizes needs no weight
	resourceTwice                // two extenders may manage one resource
	nativeManaged                // an extender may manage a native resource
	ignoredAreChecked            // what extenders ask to ignore is checked by NodeResourcesFit
	leaseAnyOrder                // the lease may end before the renewal must
	stylesInSessions             // pods of gangs are decided one by one in sessions
	anySessionPeriod             // sessions may follow each other without a pause
	slotsNowhere                 // slots may be asked for where nothing filters by them
	holdUnbounded                // room may be held for ever
	victimsUnbounded             // victims that do not go may be waited for longer than a day
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
