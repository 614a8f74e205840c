// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package cluster

var seeded mutant = -1

// SetMutant puts Mutants[n] into the store and the intake until restore is called. Not for use by several goroutines.
func SetMutant(n int) (restore func()) {
	before := seeded
	seeded = mutant(n)
	return func() { seeded = before }
}

func mutated(m mutant) bool { return seeded == m }

// Mutation describes one fault.
type Mutation struct{ Name, Breaks, test string } // test is one that sees it

// Mutants lists the faults. The index is what SetMutant takes.
var Mutants = []Mutation{
	emptyIsGang:         {"empty-is-gang", "an empty name is a gang", "TestWhatAPodSaysOfItsGang"},
	switchOfAnother:     {"switch-of-another", "a source is read under the switch of another", "TestOnlySourcesThatAreOnCount"},
	disagreementUnheard: {"disagreement-unheard", "declarations that disagree are no fault", "TestWhatAPodSaysOfItsGang"},
	sizeOfNone:          {"size-of-none", "a gang may need no pods", "TestWhatAPodSaysOfItsGang"},
	namespacesShared:    {"namespaces-shared", "gangs of one name in two namespaces are one", "TestWhatAPodSaysOfItsGang"},
	marksApart:          {"marks-apart", "each pod has a mark of its own", "TestMarksAreShared"},
	pendingLeft:         {"pending-left", "what a binding left counts on a pod that has no node", "TestWhatABindingLeft"},
	anyGangLeft:         {"any-gang-left", "what a binding left counts for any gang", "TestWhatABindingLeft"},
	quorumOfNone:        {"quorum-of-none", "a binding may have left a quorum of 0", "TestWhatABindingLeft"},
	groupNotLearnt:      {"group-not-learnt", "a bound pod does not count in its group once that can be read", "TestABoundPodCountsInItsGroupOnceThatCanBeRead"},
	editLearnt:          {"edit-learnt", "an annotation that is edited on a bound pod counts", "TestABoundPodCountsInItsGroupOnceThatCanBeRead"},
	endedStays:          {"ended-stays", "a pod that has ended stays a member of its gang", "TestABoundPodCountsInItsGroupOnceThatCanBeRead"},
	priorityAbsent:      {"priority-absent", "a pod without a priority is the least important", "TestWhereAPriorityComesFrom"},
	priorityClaimed:     {"priority-claimed", "an annotation sets the priority", "TestWhereAPriorityComesFrom"},
	asidesUncut:         {"asides-uncut", "figures of changes stay where they stood when old changes are dropped", "TestRecentIsTheStoreForWhoeverFollowsIt"},
	asidesMadeOnce:      {"asides-made-once", "figures of changes are not made for changes that come later", "TestRecentIsTheStoreForWhoeverFollowsIt"},
}
