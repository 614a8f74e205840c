// SPDX-License-Identifier: Apache-2.0

package bench

// mutant is a fault that can be put into the measuring on purpose, to show that the tests see it. Builds without the tag
// kumiki_mutants hold none of them: mutated is then constantly false and the compiler drops the faulty paths.
type mutant int

// The faults; mutants (mutants_on.go) says what each breaks.
const (
	updatesIgnored mutant = iota
	claimedReused
	podTwice
	groupPerPod
	volumesUnwritten
	victimsOwn
	sharedToFirst
	bindToldTwice
	needsBefore
	pendingSteady
	gangHalfBound
	lastSecond
	othersIgnored
	createWaits
	noControllers
	deviceTwice
	devicesOfNodes
	limitsIgnored
	failedKept
	roundsInRow
	settingsShared
	interruptForgets
	leaderIgnored
)
