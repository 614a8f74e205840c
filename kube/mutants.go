// SPDX-License-Identifier: Apache-2.0

package kube

// mutant is a fault that can be put into the edge on purpose, to show that the tests see it. Builds without the tag
// kumiki_mutants hold none of them: mutated is then constantly false and the compiler drops the faulty paths.
type mutant int

// The faults, in what reads and writes declarations of gangs and in what is written before binds; mutants (mutants_on.go) says what each breaks.
const (
	admissionTakenBack mutant = iota
	waitsAgain
	otherGroup
	otherObject
	notReadAgain
	neverGivesWay
	wholeForEver
	finishedReopened
	admittedIgnored
	membersNotRetold
	unreadCounts
	prefixForgotten
	basicIsGang
	endedTold
	allocatedKept
	knownForEver
)
