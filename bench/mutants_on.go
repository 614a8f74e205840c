// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package bench

// seeded is the fault in force; only tests set it.
var seeded mutant = -1

func mutated(m mutant) bool { return seeded == m }

// mutation describes one fault.
type mutation struct{ name, breaks, test string } // test is the one that sees it

var mutants = []mutation{
	updatesIgnored:   {"updates-ignored", "null does not wait for updates of nodes", "TestTheNullBinderWaits"},
	claimedReused:    {"claimed-reused", "devices are given to another pod while the claim has them", "TestTheNullBinderReusesWhatIsFree"},
	podTwice:         {"pod-twice", "null takes a pod twice", "TestTheNullBinderPlaysWhatMayBeScheduled"},
	groupPerPod:      {"group-per-pod", "the writes of a group are made for each of its pods", "TestTheNullBinderWritesOfGroupsAndVolumes"},
	volumesUnwritten: {"volumes-unwritten", "the writes of volumes are left out", "TestTheNullBinderWritesOfGroupsAndVolumes"},
	victimsOwn:       {"victims-own", "what was done to a victim is in its own script", "TestARecordingSaysWhoMadeRoom"},
	sharedToFirst:    {"shared-to-first", "all statuses of a shared claim are the first pod's", "TestARecordingSaysWhoseClaim"},
	bindToldTwice:    {"bind-told-twice", "the event of a bind is played twice", "TestARecordingSaysWhoMadeRoom"},
	leaderIgnored:    {"leader-ignored", "null does not wait for the bind of another pod", "TestTheNullBinderWaits"},
	needsBefore:      {"needs-before", "a pod waits for what happened before it was refused", "TestWhatAPodWaitedFor"},
	pendingSteady:    {"pending-steady", "pods of a steady state that are pending at its end count", "TestWhichPodsAreMeasured"},
	gangHalfBound:    {"gang-half-bound", "a gang of which a pod has no node looks bound", "TestGangsAreBoundWhenAllPodsAre"},
	lastSecond:       {"last-second", "the last, broken second counts", "TestViewOfASpan"},
	othersIgnored:    {"others-ignored", "what others use beside a scheduler is no reason against a row", "TestARowCountsOnlyWhenNullWasBusy"},
	createWaits:      {"create-waits", "create-only waits for pods that nobody schedules", "TestCreateOnlyWaitsForNobody"},
	noControllers:    {"no-controllers", "nobody makes claims out of templates", "TestTheGroundOfAWorkload"},
	deviceTwice:      {"device-twice", "a device that two claims have is no fault", "TestDevicesSoldTwice"},
	devicesOfNodes:   {"devices-of-nodes", "resources that devices stand for are counted against nodes", "TestDevicesStandForResources"},
	limitsIgnored:    {"limits-ignored", "a report measured with other limits is gone on with", "TestReportsOfAnotherKindAreNotGoneOnWith"},
	failedKept:       {"failed-kept", "a run that failed is not made again", "TestWhatWasMeasuredIsKeptAndGoneOnWith"},
	roundsInRow:      {"rounds-in-row", "all rounds of a workload are made before the next has its turn", "TestEveryWorkloadHasItsTurnBeforeTheSecondRound"},
	settingsShared:   {"settings-shared", "a scheduler without settings gets those of the one beside it", "TestSettingsOfAFile"},
	interruptForgets: {"interrupt-forgets", "after an interrupt nothing is left of what was measured", "TestAnInterruptLeavesWhatWasOver"},
}
