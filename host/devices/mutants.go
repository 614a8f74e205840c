// SPDX-License-Identifier: Apache-2.0

package devices

// mutant is a fault that can be put into the plugin on purpose, to show that the tests see it. Builds without the tag
// kumiki_mutants hold none of them: mutated is then constantly false and the compiler drops the faulty paths.
type mutant int

// The faults; Mutants says what each breaks.
const (
	gateOpen mutant = iota
	claimDeletedUsed
	claimOfOthersUsed
	voidCounts
	pendingShared
	classMissingPasses
	selectorIgnored
	stuckPasses
	conditionsIgnored
	failureIgnored
	resolvable
	inventoryStale
	slicesStale
	unsoundLocal
	kindBlind
	kindHalfBlind
	kindConstraintBlind
	kindTakenBlind
	kindUntranslated
	sharedBlind
	sharedNames
	sharedStale
	spentAtLast
	spentUnseen
	spentOfSome
	spentErrors
	answerStale
	unseenFree
	unseenStale
	adminTakes
	capacityFree
	olderClassWins
	extendedIgnored
	staleUsed
	pluginPassedOver
	initDevicesApart
	shareIDsRandom
	assumesNothing
	releaseKeeps
	releaseForgets
	consumerStays
	reservedAgain
	noWait
	waitsForever
	remedyTakesUsed
	remedyBlind
	scoreReversed
	scoreFirstClaimOnly
	countTakenFree
	countAnyDevice
	countsStale
	hintAnyClaim
	hintNoDeallocation
	hintUnchangedStatus
	hintAnyPod
)

// Mutation describes one fault.
type Mutation struct {
	Name   string
	Breaks string
}

// Mutants lists the faults. The index is what SetMutant takes.
var Mutants = []Mutation{
	gateOpen:            {"gate-open", "pods whose claims are missing are tried"},
	claimDeletedUsed:    {"claim-deleted-used", "a claim that is being deleted is used"},
	claimOfOthersUsed:   {"claim-of-others-used", "a generated claim is used whoever owns it"},
	voidCounts:          {"void-counts", "a device stays taken by a decision for a pod that is gone"},
	pendingShared:       {"pending-shared", "a claim whose allocation is decided and not written is used"},
	classMissingPasses:  {"class-missing-passes", "a device class that is not there is no reason"},
	selectorIgnored:     {"selector-ignored", "an allocated claim can be used on any node"},
	stuckPasses:         {"stuck-passes", "a claim whose binding failed is used as it is"},
	conditionsIgnored:   {"conditions-ignored", "binding conditions are not waited for"},
	failureIgnored:      {"failure-ignored", "binding failure conditions are not seen"},
	resolvable:          {"resolvable", "rejections count as ones that evictions could help"},
	inventoryStale:      {"inventory-stale", "claims that changed are not counted anew"},
	slicesStale:         {"slices-stale", "slices that changed are not indexed anew"},
	unsoundLocal:        {"unsound-local", "an unfinished pool with counters is seen by its own nodes only"},
	kindBlind:           {"kind-blind", "nodes are of one kind whatever attributes selectors read"},
	kindHalfBlind:       {"kind-half-blind", "selectors that read attributes in odd ways are taken to read none"},
	kindConstraintBlind: {"kind-constraint-blind", "nodes are of one kind whatever attributes constraints read"},
	kindTakenBlind:      {"kind-taken-blind", "nodes are of one kind whatever is taken of their devices"},
	kindUntranslated:    {"kind-untranslated", "devices of another node of the kind are allocated"},
	sharedBlind:         {"shared-blind", "nodes without devices of their own are of one kind whatever selectors of shared slices say"},
	sharedNames:         {"shared-names", "a node that a shared device names is taken for one that none names"},
	sharedStale:         {"shared-stale", "what the allocator said of shared devices is kept when one of them is taken"},
	spentAtLast:         {"spent-at-last", "the last part of a device, or of counters, cannot be had"},
	spentUnseen:         {"spent-unseen", "devices that are taken are hidden from those who ask for all, or for admin access"},
	spentOfSome:         {"spent-of-some", "a pool is spent when its first device is"},
	spentErrors:         {"spent-errors", "a selector that fails on a device of a spent pool is no error"},
	answerStale:         {"answer-stale", "what the allocator said is kept when a device of the node is taken"},
	unseenFree:          {"unseen-free", "devices of decisions that do not show yet are free"},
	unseenStale:         {"unseen-stale", "whether a decision that does not show still counts is asked once"},
	adminTakes:          {"admin-takes", "admin access takes a device"},
	capacityFree:        {"capacity-free", "consumed capacity is not counted"},
	olderClassWins:      {"older-class-wins", "of two classes for one extended resource the older one counts"},
	extendedIgnored:     {"extended-ignored", "no claim is made for extended resources"},
	staleUsed:           {"stale-used", "a claim left from an earlier attempt is used again"},
	pluginPassedOver:    {"plugin-passed-over", "a claim is made where a device plugin offers the resource"},
	initDevicesApart:    {"init-devices-apart", "init containers get devices of their own"},
	shareIDsRandom:      {"share-ids-random", "two runs give shares different names"},
	assumesNothing:      {"assumes-nothing", "what is decided is not held until it shows"},
	releaseKeeps:        {"release-keeps", "what a failed attempt held stays held"},
	releaseForgets:      {"release-forgets", "devices that may have been written to a claim are given to others before that is known"},
	consumerStays:       {"consumer-stays", "after a failed attempt the pod stays a consumer of its claims"},
	reservedAgain:       {"reserved-again", "a pod that is among the consumers already is added again"},
	noWait:              {"no-wait", "a pod is bound before its devices are attached"},
	waitsForever:        {"waits-forever", "binding conditions that never come are waited for without end"},
	remedyTakesUsed:     {"remedy-takes-used", "a claim that another pod uses is deallocated"},
	remedyBlind:         {"remedy-blind", "claims that could be used somewhere are deallocated"},
	scoreReversed:       {"score-reversed", "later alternatives score higher"},
	scoreFirstClaimOnly: {"score-first-claim-only", "only the first claim is scored"},
	countTakenFree:      {"count-taken-free", "scores count devices that are taken as free"},
	countAnyDevice:      {"count-any-device", "scores count devices that are not of the class"},
	countsStale:         {"counts-stale", "scores count devices as they were"},
	hintAnyClaim:        {"hint-any-claim", "any change of any claim wakes the pod"},
	hintNoDeallocation:  {"hint-no-deallocation", "a claim that gives its devices back wakes nobody else"},
	hintUnchangedStatus: {"hint-unchanged-status", "a change of a claim outside its status wakes the pod"},
	hintAnyPod:          {"hint-any-pod", "claims made for another pod wake the pod"},
}
