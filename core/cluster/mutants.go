// SPDX-License-Identifier: Apache-2.0

package cluster

// mutant is a fault that can be put into the store and the intake on purpose, to show that the tests see it. Builds without
// the tag kumiki_mutants hold none of them: mutated is then constantly false and the compiler drops the faulty paths.
type mutant int

// The faults, in what is read of gangs and in what is kept of changes; Mutants (mutants_on.go) says what each breaks.
const (
	emptyIsGang mutant = iota
	switchOfAnother
	disagreementUnheard
	sizeOfNone
	namespacesShared
	marksApart
	pendingLeft
	anyGangLeft
	quorumOfNone
	groupNotLearnt
	editLearnt
	endedStays
	priorityAbsent
	priorityClaimed
	asidesUncut
	asidesMadeOnce
)
