// SPDX-License-Identifier: Apache-2.0

package queue

// mutation is a way to break this package on purpose, so that tests can show that they would notice.
type mutation uint8

// mutant is the mutation in force; only tests set it.
var mutant mutation

const (
	sound mutation = iota
	equalityEndsBackoff
	backoffByAttempts
	backoffNotAligned
	errorsCountAsRejections
	errorCountStays
	errorsPoppedFromBackoff
	orderByFirstArrival
	inFlightEventsIgnored
	inFlightUpdateIgnored
	inFlightActivationIgnored
	doneKeepsEvents
	eventsWithoutFlight
	timeoutFlushesGated
	timeoutInclusive
	timeoutNotRecorded
	noTaintAfterAdd
	nilHintSkips
	panicSkips
	pendingWaitsForBackoff
	pendingNotIndexed
	wildcardWakesOthers
	gateForgotten
	gateOpenToAnyEvent
	asideWakes
	deleteKeepsNomination
	updateDropsNomination
	returnedLast
	alikeForEver
	rejectedGangSleeps
	gangLosesTurn
	quorumIgnored
	firstMemberJudges
	lateMemberLost
	ageIgnored
	errorsNotMustered
	gatedNotMustered
	extrasFirst
	extrasOvertake
	restCounts
	restDeaf
	restForEver
	unknownApart
	headSpeaks
	apartTogether
	oneOfEachSpec
	memberGatesUnheard
	freedUnheard
	mutations // their number
)
