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
	fitBackedChecked
	fitHintAnyClass
	scoreRealRequests
	scorePodRealRequest
	scoreUnaskedScalar
	scoreWeightsSwapped
	scoreRoundsUp
	scoreDevicesUncounted
	mostUnclamped
	ratioTruncates
	ratioZeroCounts
	balancedFinalOnly
	balancedSample
	balancedNonZero
	balancedBestEffort
	balancedHalfOfPod
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
	slotsHoldTwo
	slotsUnresolvable
	slotsColumnConfirmed
	slotsHintPendingDelete
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
	restrictAllModes
	restrictClaimUnresolvable
	restrictOncePerPod
	restrictReadOnlyEBS
	restrictAnyMonitor
	restrictOneReader
	restrictHintEphemeral
	restrictHintAnyNamespace
	limitsNoEphemeral
	limitsAnyOwner
	limitsEveryPlugin
	limitsBoundOnly
	limitsSpecialFree
	limitsColumnBlind
	limitsShortUnseen
	limitsQuietFew
	limitsSharedTwice
	limitsNoAttachments
	limitsAttachedTwice
	limitsAllDrivers
	limitsHintAnyPod
	limitsHintAnyUpdate
	limitsHintAnyAttacher
	zoneOneValue
	zoneUnboundWaits
	zoneUnlabelledRejected
	zoneNoHeir
	zoneResolvable
	zoneColumnHeirOnly
	zoneHintAnyClass
	zoneHintAnyClaim
	zoneHintAnyVolume
	volumeLostUsable
	volumeDeletedUsable
	volumeOwnerIgnored
	volumeImmediateIgnored
	volumeHalfBound
	volumeNoBetaClass
	volumeReachIgnored
	volumeQuietBound
	volumeNameCounts
	volumeMigrationIgnored
	volumeMigrationAnyNode
	volumeMigrationAnyPlugin
	volumeSelectedIgnored
	volumeSizeIgnored
	volumeExactRejected
	volumeModeIgnored
	volumeAttributesIgnored
	volumeLeavingTaken
	volumePhaseIgnored
	volumeSelectorIgnored
	volumeAccessIgnored
	volumePreboundAnywhere
	volumePreboundOptional
	volumeClaimUIDIgnored
	volumeLargestFirst
	volumeTakenTwice
	volumeClaimsUnsorted
	volumeNoProvisionerMakes
	volumeTopologyIgnored
	volumeCapacityIgnored
	volumeMaximumIgnored
	volumeNotAssumed
	volumeNodeNotAssumed
	volumeAlwaysByController
	volumeNotRestored
	volumeNoTimeout
	volumeNodeGoneIgnored
	volumeStaleCounts
	volumeUnbindIgnored
	volumeDeselectIgnored
	volumeConflictIgnored
	volumeHintAnyClass
	volumeHintAnyNamespace
	volumeHintAnyClaim
	volumeHintAnyCSINode
	volumeHintAnyDriver
	volumeHintShrunk
	volumeCatalogStale
	featuresReversed
	featuresResolvable
	featuresFirstOnly
	featuresHintAnyNode
	featuresHintAnyPod
	gatesOpen
	priorityReversed

	podAffinityAnyTerm
	podAffinityFirstAnywhere
	podAffinityFirstAnyPod
	podAffinityFirstNever
	podAffinityNoKeyFits
	podAffinityAsymmetric
	podAffinityAllNamespaces
	podAffinityNoNamespaceSelector
	podAffinityEmptySelectsNone
	podAffinityStrictSelector
	podAffinityAntiFirstTerm
	podAffinityAlwaysResolvable
	podAffinityAntiFirst
	podAffinityTerminatingGone
	podAffinityNeverSkips
	podAffinityBrokenKept
	podAffinitySupposedForgotten
	podAffinitySupposedOneWay
	podAffinitySupposedNoLabels
	podAffinityStaleMarks
	podAffinityColumnOneKey
	podAffinityKnownByTemplate
	podAffinityScoreOneWay
	podAffinityScoreSign
	podAffinityWeightOne
	podAffinityScoreOnce
	podAffinityHardNever
	podAffinityHardAlways
	podAffinityIgnoreNothing
	podAffinityIgnoreAll
	podAffinityNormalFromZero
	podAffinityNormalRounds
	podAffinityHintPending
	podAffinityHintAnyTerm
	podAffinityHintAnyDelete
	podAffinityHintOneWay
	podAffinityHintMatched
	podAffinityHintAnyNode
	podAffinityHintLost
	podAffinityHintGained
	podAffinityHintBroken
	spreadTerminatingCounts
	spreadAnyNamespace
	spreadEmptyCounts
	spreadSkewOffByOne
	spreadSelfIgnored
	spreadMinDomainsIgnored
	spreadAffinityIgnored
	spreadTaintsIgnored
	spreadLabelKeysIgnored
	spreadFirstKeyWill
	spreadAllNodesCount
	spreadNoKeyResolvable
	spreadLeastStays
	spreadSoftFilters
	spreadSystemNeedsKeys
	spreadNoServices
	spreadNoControllers
	spreadHostsAllFit
	spreadWeightsAlike
	spreadSkewUnscored
	spreadKeylessRanked
	spreadLeastIgnored
	spreadHintAnyNamespace
	spreadHintAnyLabels
	spreadHintNoToleration
	spreadHintAnyNode
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
	fitBackedChecked:          {"fit-backed-checked", "resources that a device class backs are asked of the node"},
	fitHintAnyClass:           {"fit-hint-any-class", "a device class that states what it stated before wakes the pod"},
	fitHintAnyScaleDown:       {"fit-hint-any-scale-down", "a scale-down of a resource that is not asked for wakes the pod"},
	scoreRealRequests:         {"score-real-requests", "NodeResourcesFit scores real requests of the node, not those with defaults"},
	scorePodRealRequest:       {"score-pod-real-request", "NodeResourcesFit scores the real request of the pod, not that with defaults"},
	scoreUnaskedScalar:        {"score-unasked-scalar", "extended resources that the pod does not ask for are scored"},
	scoreWeightsSwapped:       {"score-weights-swapped", "resource weights are applied in reverse order"},
	scoreDevicesUncounted:     {"score-devices-uncounted", "devices do not count for the score of the resource that they back"},
	scoreRoundsUp:             {"score-rounds-up", "LeastAllocated rounds up"},
	mostUnclamped:             {"most-unclamped", "MostAllocated goes above 100 on overcommitted nodes"},
	ratioTruncates:            {"ratio-truncates", "RequestedToCapacityRatio truncates instead of rounding"},
	ratioZeroCounts:           {"ratio-zero-counts", "RequestedToCapacityRatio counts the weight of resources that score 0"},
	balancedFinalOnly:         {"balanced-final-only", "balance is scored after the pod instead of by its change"},
	balancedSample:            {"balanced-sample", "the deviation of three or more resources divides by n-1"},
	balancedNonZero:           {"balanced-non-zero", "balance counts defaults for silent containers"},
	balancedBestEffort:        {"balanced-best-effort", "pods without requests are scored for balance"},
	balancedHalfOfPod:         {"balanced-half-of-pod", "the half of the balance that all pods share counts the pod"},
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
	slotsHoldTwo:              {"slots-hold-two", "a node has two slots"},
	slotsUnresolvable:         {"slots-unresolvable", "evictions cannot free a slot"},
	slotsColumnConfirmed:      {"slots-column-confirmed", "the column form does not see pods that are decided and not bound yet"},
	slotsHintPendingDelete:    {"slots-hint-pending-delete", "a pending pod that goes wakes the pod"},
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
	restrictAllModes:          {"restrict-all-modes", "a claim in use keeps every pod out, whatever its access mode"},
	restrictClaimUnresolvable: {"restrict-claim-unresolvable", "a claim in use counts as something evictions cannot help"},
	restrictOncePerPod:        {"restrict-once-per-pod", "a pod that names a claim twice counts once"},
	restrictReadOnlyEBS:       {"restrict-read-only-ebs", "EBS volumes can be shared read only"},
	restrictAnyMonitor:        {"restrict-any-monitor", "RBD images of other clusters conflict"},
	restrictOneReader:         {"restrict-one-reader", "one reader suffices to share a disk with a writer"},
	restrictHintEphemeral:     {"restrict-hint-ephemeral", "the claim of a generic ephemeral volume wakes the pod"},
	restrictHintAnyNamespace:  {"restrict-hint-any-namespace", "a pod of another namespace that goes wakes the pod"},
	limitsNoEphemeral:         {"limits-no-ephemeral", "generic ephemeral volumes are not counted"},
	limitsAnyOwner:            {"limits-any-owner", "a claim that was made for something else serves as a generic ephemeral volume"},
	limitsEveryPlugin:         {"limits-every-plugin", "volumes of every plugin that has migrated are counted"},
	limitsBoundOnly:           {"limits-bound-only", "claims without a volume are not counted"},
	limitsSpecialFree:         {"limits-special-free", "the column form does not look at special volumes where there is room"},
	limitsColumnBlind:         {"limits-column-blind", "the column form always finds room"},
	limitsShortUnseen:         {"limits-short-unseen", "the column form looks at rows with special volumes only"},
	limitsQuietFew:            {"limits-quiet-few", "the filter is quiet when its first suspect has room"},
	limitsSharedTwice:         {"limits-shared-twice", "a volume that the node has already counts again"},
	limitsNoAttachments:       {"limits-no-attachments", "attachments without a pod are not counted"},
	limitsAttachedTwice:       {"limits-attached-twice", "a volume counts for its pod and for its attachment"},
	limitsAllDrivers:          {"limits-all-drivers", "volumes of other drivers count too"},
	limitsHintAnyPod:          {"limits-hint-any-pod", "any pod that goes wakes the pod"},
	limitsHintAnyUpdate:       {"limits-hint-any-update", "a limit that is lowered wakes the pod"},
	limitsHintAnyAttacher:     {"limits-hint-any-attacher", "what any driver detaches wakes a pod with inline volumes"},
	zoneOneValue:              {"zone-one-value", "the zones of a volume are not split"},
	zoneUnboundWaits:          {"zone-unbound-waits", "every class binds claims when a pod is scheduled"},
	zoneUnlabelledRejected:    {"zone-unlabelled-rejected", "nodes without labels have no volume"},
	zoneNoHeir:                {"zone-no-heir", "beta labels of volumes match beta labels of nodes only"},
	zoneResolvable:            {"zone-resolvable", "evictions help against a wrong zone"},
	zoneColumnHeirOnly:        {"zone-column-heir-only", "the column form reads no beta labels of nodes"},
	zoneHintAnyClass:          {"zone-hint-any-class", "a class that binds at once wakes the pod"},
	zoneHintAnyClaim:          {"zone-hint-any-claim", "any claim wakes the pod"},
	zoneHintAnyVolume:         {"zone-hint-any-volume", "any update of a volume wakes the pod"},
	volumeLostUsable:          {"volume-lost-usable", "a claim whose volume is lost does not hold the pod back"},
	volumeDeletedUsable:       {"volume-deleted-usable", "a claim that is being deleted does not hold the pod back"},
	volumeOwnerIgnored:        {"volume-owner-ignored", "any claim of the right name serves as a generic ephemeral volume"},
	volumeImmediateIgnored:    {"volume-immediate-ignored", "claims that are to be bound at once may be unbound"},
	volumeHalfBound:           {"volume-half-bound", "a claim that names a volume counts as bound"},
	volumeNoBetaClass:         {"volume-no-beta-class", "the class of a volume is not read from its annotation"},
	volumeReachIgnored:        {"volume-reach-ignored", "the affinity of bound volumes is not checked"},
	volumeQuietBound:          {"volume-quiet-bound", "where a volume that the pod has can be reached from does not keep the filter from being quiet"},
	volumeNameCounts:          {"volume-name-counts", "match fields in the affinity of a volume count"},
	volumeMigrationIgnored:    {"volume-migration-ignored", "volumes never count in their CSI form"},
	volumeMigrationAnyNode:    {"volume-migration-any-node", "volumes count in their CSI form on nodes that have not handed them over"},
	volumeMigrationAnyPlugin:  {"volume-migration-any-plugin", "Azure files and vSphere disks count in their CSI form"},
	volumeSelectedIgnored:     {"volume-selected-ignored", "a claim whose volume is being made for one node goes to any"},
	volumeSizeIgnored:         {"volume-size-ignored", "a volume that is too small is taken"},
	volumeExactRejected:       {"volume-exact-rejected", "a volume of just the size asked for is not taken"},
	volumeModeIgnored:         {"volume-mode-ignored", "a block device is taken for a file system"},
	volumeAttributesIgnored:   {"volume-attributes-ignored", "volumes of another volume attributes class are taken"},
	volumeLeavingTaken:        {"volume-leaving-taken", "a volume that is being deleted is taken"},
	volumePhaseIgnored:        {"volume-phase-ignored", "volumes that are not available are taken"},
	volumeSelectorIgnored:     {"volume-selector-ignored", "the selector of a claim is not read"},
	volumeAccessIgnored:       {"volume-access-ignored", "access modes are not compared"},
	volumePreboundAnywhere:    {"volume-prebound-anywhere", "a volume bound to the claim beforehand is taken where it cannot be reached"},
	volumePreboundOptional:    {"volume-prebound-optional", "where a volume bound beforehand cannot be reached another is taken"},
	volumeClaimUIDIgnored:     {"volume-claim-uid-ignored", "a volume of an earlier claim of the same name is taken"},
	volumeLargestFirst:        {"volume-largest-first", "the largest volume is taken, not the smallest"},
	volumeTakenTwice:          {"volume-taken-twice", "one volume serves two claims of a pod"},
	volumeClaimsUnsorted:      {"volume-claims-unsorted", "small claims take large volumes before large claims have theirs"},
	volumeNoProvisionerMakes:  {"volume-no-provisioner-makes", "classes without a provisioner make volumes"},
	volumeTopologyIgnored:     {"volume-topology-ignored", "allowed topologies are not checked"},
	volumeCapacityIgnored:     {"volume-capacity-ignored", "capacities of drivers are not checked"},
	volumeMaximumIgnored:      {"volume-maximum-ignored", "the maximum volume size is not read"},
	volumeNotAssumed:          {"volume-not-assumed", "a volume that was decided on is still free for others"},
	volumeNodeNotAssumed:      {"volume-node-not-assumed", "a claim that was told its node still goes anywhere"},
	volumeAlwaysByController:  {"volume-always-by-controller", "a volume that the user gave to the claim is marked as the scheduler's choice"},
	volumeNotRestored:         {"volume-not-restored", "what was supposed for a pod that failed stays so"},
	volumeNoTimeout:           {"volume-no-timeout", "a pod waits for its volumes for ever"},
	volumeNodeGoneIgnored:     {"volume-node-gone-ignored", "a pod waits for volumes on a node that is gone"},
	volumeStaleCounts:         {"volume-stale-counts", "the version before the own write is taken for its outcome"},
	volumeUnbindIgnored:       {"volume-unbind-ignored", "a volume that was taken back from its claim is waited for"},
	volumeDeselectIgnored:     {"volume-deselect-ignored", "a provisioner that gives up is waited for"},
	volumeConflictIgnored:     {"volume-conflict-ignored", "a volume that was made elsewhere binds its pod all the same"},
	volumeHintAnyClass:        {"volume-hint-any-class", "any update of a storage class wakes the pod"},
	volumeHintAnyNamespace:    {"volume-hint-any-namespace", "a claim of the same name in another namespace wakes the pod"},
	volumeHintAnyClaim:        {"volume-hint-any-claim", "any claim wakes the pod"},
	volumeHintAnyCSINode:      {"volume-hint-any-csi-node", "any update of a CSINode wakes the pod"},
	volumeHintAnyDriver:       {"volume-hint-any-driver", "any update of a driver wakes the pod"},
	volumeHintShrunk:          {"volume-hint-shrunk", "capacity that shrinks wakes the pod"},
	volumeCatalogStale:        {"volume-catalog-stale", "volumes are listed as they were when they were first listed"},
	featuresReversed:          {"features-reversed", "a node must lack the features"},
	featuresResolvable:        {"features-resolvable", "evictions help against missing features"},
	featuresFirstOnly:         {"features-first-only", "only the first feature is looked for"},
	featuresHintAnyNode:       {"features-hint-any-node", "any update of a node wakes the pod"},
	featuresHintAnyPod:        {"features-hint-any-pod", "the update of another pod wakes the pod"},
	gatesOpen:                 {"gates-open", "scheduling gates do not hold pods back"},
	priorityReversed:          {"priority-reversed", "low priorities go first"},

	podAffinityAnyTerm:             {"pod-affinity-any-term", "a pod that the first affinity term is about is enough for all of them"},
	podAffinityFirstAnywhere:       {"pod-affinity-first-anywhere", "the first pod of a group may go to nodes without the labels"},
	podAffinityFirstAnyPod:         {"pod-affinity-first-any-pod", "a pod that does not want its own kind counts as the first of a group"},
	podAffinityFirstNever:          {"pod-affinity-first-never", "the first pod of a group fits nowhere"},
	podAffinityNoKeyFits:           {"pod-affinity-no-key-fits", "a node without the label is near everything"},
	podAffinityAsymmetric:          {"pod-affinity-asymmetric", "the anti-affinity of pods on nodes does not bind others"},
	podAffinityAllNamespaces:       {"pod-affinity-all-namespaces", "every term is about all namespaces"},
	podAffinityNoNamespaceSelector: {"pod-affinity-no-namespace-selector", "namespace selectors select nothing"},
	podAffinityEmptySelectsNone:    {"pod-affinity-empty-selects-none", "an empty namespace selector selects no namespace that is not named"},
	podAffinityStrictSelector:      {"pod-affinity-strict-selector", "a namespace selector that no labels satisfy does not reach into all namespaces"},
	podAffinityAntiFirstTerm:       {"pod-affinity-anti-first-term", "only the first anti-affinity term counts"},
	podAffinityAlwaysResolvable:    {"pod-affinity-always-resolvable", "missing affinity counts as something evictions could help"},
	podAffinityAntiFirst:           {"pod-affinity-anti-first", "own anti-affinity goes before own affinity"},
	podAffinityTerminatingGone:     {"pod-affinity-terminating-gone", "pods that terminate do not count"},
	podAffinityNeverSkips:          {"pod-affinity-never-skips", "pods are filtered that nothing could reject"},
	podAffinityBrokenKept:          {"pod-affinity-broken-kept", "preferred terms that cannot be read are left out"},
	podAffinitySupposedForgotten:   {"pod-affinity-supposed-forgotten", "pods that are supposed to come do not count"},
	podAffinitySupposedOneWay:      {"pod-affinity-supposed-one-way", "what supposed pods repel does not count"},
	podAffinitySupposedNoLabels:    {"pod-affinity-supposed-no-labels", "supposed pods see no labels of namespaces"},
	podAffinityStaleMarks:          {"pod-affinity-stale-marks", "the column form keeps what it marked for the key before"},
	podAffinityColumnOneKey:        {"pod-affinity-column-one-key", "the column form looks at one topology key only"},
	podAffinityKnownByTemplate:     {"pod-affinity-known-by-template", "what was read of a pod serves its template in all namespaces"},
	podAffinityScoreOneWay:         {"pod-affinity-score-one-way", "the preferences of pods on nodes score nothing"},
	podAffinityScoreSign:           {"pod-affinity-score-sign", "what a pod wants far scores like what it wants near"},
	podAffinityWeightOne:           {"pod-affinity-weight-one", "preferred terms all weigh 1"},
	podAffinityScoreOnce:           {"pod-affinity-score-once", "many pods score like one"},
	podAffinityHardNever:           {"pod-affinity-hard-never", "required affinity of pods on nodes scores nothing"},
	podAffinityHardAlways:          {"pod-affinity-hard-always", "required affinity of pods on nodes scores with hardPodAffinityWeight 0 too"},
	podAffinityIgnoreNothing:       {"pod-affinity-ignore-nothing", "ignorePreferredTermsOfExistingPods has no effect"},
	podAffinityIgnoreAll:           {"pod-affinity-ignore-all", "ignorePreferredTermsOfExistingPods is for pods with preferences too"},
	podAffinityNormalFromZero:      {"pod-affinity-normal-from-zero", "scores are normalised from 0, not from the least"},
	podAffinityNormalRounds:        {"pod-affinity-normal-rounds", "normalising rounds instead of cutting"},
	podAffinityHintPending:         {"pod-affinity-hint-pending", "pods that wait wake the pod"},
	podAffinityHintAnyTerm:         {"pod-affinity-hint-any-term", "a pod that one of several terms is about wakes the pod"},
	podAffinityHintAnyDelete:       {"pod-affinity-hint-any-delete", "any pod with anti-affinity that goes wakes the pod"},
	podAffinityHintOneWay:          {"pod-affinity-hint-one-way", "a pod that repelled the pod does not wake it when it goes"},
	podAffinityHintMatched:         {"pod-affinity-hint-matched", "a pod that matched before wakes the pod"},
	podAffinityHintAnyNode:         {"pod-affinity-hint-any-node", "any new node wakes the pod"},
	podAffinityHintLost:            {"pod-affinity-hint-lost", "a node that loses the label of an affinity term wakes the pod"},
	podAffinityHintGained:          {"pod-affinity-hint-gained", "a node that gets the label of an anti-affinity term wakes the pod"},
	podAffinityHintBroken:          {"pod-affinity-hint-broken", "terms that cannot be read never wake the pod"},
	spreadTerminatingCounts:        {"spread-terminating-counts", "pods that are being deleted count for spreading"},
	spreadAnyNamespace:             {"spread-any-namespace", "pods of all namespaces count for spreading"},
	spreadEmptyCounts:              {"spread-empty-counts", "a spread selector that matches everything counts pods"},
	spreadSkewOffByOne:             {"spread-skew-off-by-one", "a skew of one more than maxSkew is let pass"},
	spreadSelfIgnored:              {"spread-self-ignored", "the pod does not count for itself"},
	spreadMinDomainsIgnored:        {"spread-min-domains-ignored", "minDomains has no effect"},
	spreadAffinityIgnored:          {"spread-affinity-ignored", "nodes that the pod does not select count for spreading"},
	spreadTaintsIgnored:            {"spread-taints-ignored", "nodeTaintsPolicy Honor has no effect"},
	spreadLabelKeysIgnored:         {"spread-label-keys-ignored", "matchLabelKeys has no effect"},
	spreadFirstKeyWill:             {"spread-first-key-will", "nodes count that have the key of the first constraint only"},
	spreadAllNodesCount:            {"spread-all-nodes-count", "the sums over all nodes are taken where some have no part"},
	spreadNoKeyResolvable:          {"spread-no-key-resolvable", "a missing topology label counts as one that evictions could help"},
	spreadLeastStays:               {"spread-least-stays", "the fewest pods are not looked for again when pods are supposed gone"},
	spreadSoftFilters:              {"spread-soft-filters", "constraints with ScheduleAnyway filter"},
	spreadSystemNeedsKeys:          {"spread-system-needs-keys", "system defaults leave nodes without a zone unscored"},
	spreadNoServices:               {"spread-no-services", "default constraints ignore services"},
	spreadNoControllers:            {"spread-no-controllers", "default constraints ignore controllers"},
	spreadHostsAllFit:              {"spread-hosts-all-fit", "the weight of hosts counts nodes that have no part in scoring"},
	spreadWeightsAlike:             {"spread-weights-alike", "keys with few and with many values weigh the same"},
	spreadSkewUnscored:             {"spread-skew-unscored", "maxSkew does not enter the score"},
	spreadKeylessRanked:            {"spread-keyless-ranked", "nodes without all keys are scored like others"},
	spreadLeastIgnored:             {"spread-least-ignored", "spread scores are normalised without the least one"},
	spreadHintAnyNamespace:         {"spread-hint-any-namespace", "pods of other namespaces wake the pod"},
	spreadHintAnyLabels:            {"spread-hint-any-labels", "changes of labels wake the pod that no constraint sees"},
	spreadHintNoToleration:         {"spread-hint-no-toleration", "a new toleration does not wake a pod whose constraints look at taints"},
	spreadHintAnyNode:              {"spread-hint-any-node", "nodes without the topology labels wake the pod"},
}
