// SPDX-License-Identifier: Apache-2.0

package plugin

// mutant is a fault that can be put into a plugin on purpose, to show that the tests see it. Builds without the tag
// kumiki_mutants hold none of them: mutated is then constantly false and the compiler drops the faulty paths.
type mutant int

// The faults; Mutants says what each breaks.
const (
	fitPodsOffByOne mutant = iota
	fitExactRejected
	fitEphemeralFree
	fitScalarFree
	fitAlwaysResolvable
	fitOneReason
	fitIgnoredCounts
	fitGroupByPrefix
	fitOverflowLands
	fitColumnSkipsMemory
	fitHintAnyNode
	fitHintPendingDelete
	fitHintAnyScaleDown
	scoreRealRequests
	scorePodRealRequest
	scoreUnaskedScalar
	scoreWeightsSwapped
	scoreRoundsUp
	mostUnclamped
	ratioTruncates
	ratioZeroCounts
	balancedFinalOnly
	balancedSample
	balancedNonZero
	balancedBestEffort
	taintEffectIgnored
	taintNoExecuteFree
	taintEmptyKeyEqual
	taintScoreAllEffects
	taintHintAnyNode
	cordonAlwaysTolerated
	nameAnyNode
	portsNoWildcard
	portsNoProtocol
	portsHintAnyDelete
	affinityTermsAnded
	affinityGtOrEqual
	affinityNotInNeedsKey
	affinityBrokenTermKept
	affinityAddedIgnored
	affinityWeightOne
	affinityNamesUnion
	affinityHintMatchedBefore
	imageNoSpread
	imageNoFloor
	imageOneContainer
	gatesOpen
	priorityReversed
)

// Mutation describes one fault.
type Mutation struct {
	Name   string
	Breaks string
}

// Mutants lists the faults. The index is what SetMutant takes.
var Mutants = []Mutation{
	fitPodsOffByOne:           {"fit-pods-off-by-one", "a node takes one pod more than it allows"},
	fitExactRejected:          {"fit-exact-rejected", "a request equal to what is free is refused"},
	fitEphemeralFree:          {"fit-ephemeral-free", "ephemeral storage is not checked"},
	fitScalarFree:             {"fit-scalar-free", "extended resources and huge pages are not checked"},
	fitAlwaysResolvable:       {"fit-always-resolvable", "a request above allocatable counts as one that evictions could help"},
	fitOneReason:              {"fit-one-reason", "only the first of several reasons is told"},
	fitIgnoredCounts:          {"fit-ignored-counts", "ignoredResources has no effect"},
	fitGroupByPrefix:          {"fit-group-by-prefix", "ignoredResourceGroups matches any name that begins alike"},
	fitOverflowLands:          {"fit-overflow-lands", "an overflowed request is compared like any other"},
	fitColumnSkipsMemory:      {"fit-column-skips-memory", "the column form forgets memory when CPU is asked for too"},
	fitHintAnyNode:            {"fit-hint-any-node", "a node that is too small wakes the pod"},
	fitHintPendingDelete:      {"fit-hint-pending-delete", "the deletion of a pending pod wakes the pod"},
	fitHintAnyScaleDown:       {"fit-hint-any-scale-down", "a scale-down of a resource that is not asked for wakes the pod"},
	scoreRealRequests:         {"score-real-requests", "NodeResourcesFit scores real requests of the node, not those with defaults"},
	scorePodRealRequest:       {"score-pod-real-request", "NodeResourcesFit scores the real request of the pod, not that with defaults"},
	scoreUnaskedScalar:        {"score-unasked-scalar", "extended resources that the pod does not ask for are scored"},
	scoreWeightsSwapped:       {"score-weights-swapped", "resource weights are applied in reverse order"},
	scoreRoundsUp:             {"score-rounds-up", "LeastAllocated rounds up"},
	mostUnclamped:             {"most-unclamped", "MostAllocated goes above 100 on overcommitted nodes"},
	ratioTruncates:            {"ratio-truncates", "RequestedToCapacityRatio truncates instead of rounding"},
	ratioZeroCounts:           {"ratio-zero-counts", "RequestedToCapacityRatio counts the weight of resources that score 0"},
	balancedFinalOnly:         {"balanced-final-only", "balance is scored after the pod instead of by its change"},
	balancedSample:            {"balanced-sample", "the deviation of three or more resources divides by n-1"},
	balancedNonZero:           {"balanced-non-zero", "balance counts defaults for silent containers"},
	balancedBestEffort:        {"balanced-best-effort", "pods without requests are scored for balance"},
	taintEffectIgnored:        {"taint-effect-ignored", "a toleration covers every effect"},
	taintNoExecuteFree:        {"taint-no-execute-free", "NoExecute taints do not reject"},
	taintEmptyKeyEqual:        {"taint-empty-key-equal", "a toleration without a key matches nothing"},
	taintScoreAllEffects:      {"taint-score-all-effects", "the taint score counts NoSchedule taints too"},
	taintHintAnyNode:          {"taint-hint-any-node", "a node that was tolerated before wakes the pod"},
	cordonAlwaysTolerated:     {"cordon-always-tolerated", "any toleration lets a pod onto a cordoned node"},
	nameAnyNode:               {"name-any-node", "spec.nodeName is ignored"},
	portsNoWildcard:           {"ports-no-wildcard", "0.0.0.0 is an address like any other"},
	portsNoProtocol:           {"ports-no-protocol", "UDP and TCP ports conflict"},
	portsHintAnyDelete:        {"ports-hint-any-delete", "the deletion of any pod with ports wakes the pod"},
	affinityTermsAnded:        {"affinity-terms-anded", "all node selector terms must match"},
	affinityGtOrEqual:         {"affinity-gt-or-equal", "Gt and Lt let equal values pass"},
	affinityNotInNeedsKey:     {"affinity-not-in-needs-key", "NotIn wants the label to be there"},
	affinityBrokenTermKept:    {"affinity-broken-term-kept", "requirements that do not parse are left out of their term"},
	affinityAddedIgnored:      {"affinity-added-ignored", "addedAffinity has no effect"},
	affinityWeightOne:         {"affinity-weight-one", "preferred terms all weigh 1"},
	affinityNamesUnion:        {"affinity-names-union", "names within one term are joined, not intersected"},
	affinityHintMatchedBefore: {"affinity-hint-matched-before", "a node that matched before wakes the pod"},
	imageNoSpread:             {"image-no-spread", "image sizes are not scaled by how many nodes have them"},
	imageNoFloor:              {"image-no-floor", "the lower threshold of image sizes is 0"},
	imageOneContainer:         {"image-one-container", "the upper threshold does not grow with the containers"},
	gatesOpen:                 {"gates-open", "scheduling gates do not hold pods back"},
	priorityReversed:          {"priority-reversed", "low priorities go first"},
}
