// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package kube

// seeded is the fault in force; only tests set it, before anything runs.
var seeded mutant = -1

func mutated(m mutant) bool { return seeded == m }

// mutation describes one fault.
type mutation struct{ name, breaks, test string } // test is the one that sees it

var mutants = []mutation{
	admissionTakenBack: {"admission-taken-back", "a newer status takes an admission back", "TestTheNewestStatusOfAGangIsWritten"},
	waitsAgain:         {"waits-again", "a group that was placed once is shown as waiting again", "TestANativeGroupShowsHowItStands"},
	otherGroup:         {"other-group", "a status goes to another pod group of the name", "TestAnotherObjectOfTheNameGetsNoStatus"},
	otherObject:        {"other-object", "a status goes to another object of the name", "TestAnotherObjectOfTheNameGetsNoStatus"},
	notReadAgain:       {"not-read-again", "after a conflict the group is not read again", "TestAStatusIsWrittenWhateverHappens"},
	neverGivesWay:      {"never-gives-way", "a status that cannot be written keeps others waiting", "TestStatusesOfOtherGangsGoFirst"},
	wholeForEver:       {"whole-for-ever", "a status that was once part of its object is taken for that for ever", "TestTheStatusGoesWhereItIsServed"},
	finishedReopened:   {"finished-reopened", "a phase that somebody else wrote is taken back", "TestPhasesThatControllersWaitFor"},
	admittedIgnored:    {"admitted-ignored", "a group of Volcano without pods is not let in", "TestTheNewestStatusOfAGangIsWritten"},
	membersNotRetold:   {"members-not-retold", "pods are not told anew when pod groups begin to count", "TestPodGroupsCountOnceTheyCanBeRead"},
	unreadCounts:       {"unread-counts", "pod groups count before they can be read", "TestPodGroupsCountOnceTheyCanBeRead"},
	prefixForgotten:    {"prefix-forgotten", "an object that is gone is looked for under the name of another API", "TestSeveralAPIsDeclareGangs"},
	basicIsGang:        {"basic-is-gang", "a basic group is a gang of one", "TestNativePodGroups"},
	allocatedKept:      {"allocated-kept", "claims that have devices are kept in full", "TestWhatMayBeWrittenIsKeptInFull"},
	knownForEver:       {"known-for-ever", "after a conflict the object is not read", "TestWhatIsKnownIsNotReadFirst"},
	endedTold:          {"ended-told", "pods that have ended are told as pods that run", "TestPodsThatHaveEndedAreGone"},
}
