// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"os"
	"testing"
)

// mutants says what each mutation breaks and which story tells of it.
var mutants = [mutations]struct{ breaks, story string }{
	equalityEndsBackoff:       {breaks: "a backoff ends in the second it ends in", story: "02-backoff"},
	backoffByAttempts:         {breaks: "the backoff follows all attempts, errors included", story: "03-errors"},
	backoffNotAligned:         {breaks: "backoffs end at fractions of a second", story: "02-backoff"},
	errorsCountAsRejections:   {breaks: "errors have no count of their own", story: "03-errors"},
	errorCountStays:           {breaks: "a rejection does not end a run of errors", story: "03-errors"},
	errorsPoppedFromBackoff:   {breaks: "Pop cuts an error's backoff short", story: "03-errors"},
	orderByFirstArrival:       {breaks: "a rejected unit goes before those that came while it was tried", story: "17-fairness"},
	inFlightEventsIgnored:     {breaks: "a wakeup between Pop and Requeue is lost", story: "06-lost-wakeup"},
	inFlightUpdateIgnored:     {breaks: "an update of a pod in flight is lost", story: "12-updates"},
	inFlightActivationIgnored: {breaks: "the activation of a pod in flight is lost", story: "10-activate"},
	doneKeepsEvents:           {breaks: "events stay when nobody in flight can ask for them", story: "06-lost-wakeup"},
	eventsWithoutFlight:       {breaks: "events are kept although nobody is in flight", story: "06-lost-wakeup"},
	timeoutFlushesGated:       {breaks: "the timeout asks gates that did not ask for it", story: "18-gate-events"},
	timeoutInclusive:          {breaks: "the timeout is a moment too short", story: "08-timeout"},
	timeoutNotRecorded:        {breaks: "a timeout is no event for those in flight", story: "09-timeout-in-flight"},
	noTaintAfterAdd:           {breaks: "a taint that goes from a new node wakes nobody who asked for new nodes", story: "14-hints"},
	nilHintSkips:              {breaks: "a registration without a hint never wakes", story: "14-hints"},
	panicSkips:                {breaks: "a hint that panics keeps the pod waiting", story: "14-hints"},
	pendingWaitsForBackoff:    {breaks: "a pending plugin's event does not skip the backoff", story: "13-pending"},
	pendingNotIndexed:         {breaks: "the index forgets pending plugins", story: "13-pending"},
	wildcardWakesOthers:       {breaks: "an activation in flight wakes everyone in flight", story: "10-activate"},
	gateForgotten:             {breaks: "gates are asked in plugin order, not the last one first", story: "07-gates"},
	gateOpenToAnyEvent:        {breaks: "events of other plugins ask the gates", story: "18-gate-events"},
	asideWakes:                {breaks: "a unit that was set aside is tried again", story: "15-aside"},
	deleteKeepsNomination:     {breaks: "a deleted pod keeps its nomination", story: "11-nominations"},
	returnedLast:              {breaks: "a unit whose placement was taken back goes behind its equals", story: "19-returned"},
	rejectedGangSleeps:        {breaks: "a rejected gang does not hear that its declaration has changed", story: "20-gang"},
	gangLosesTurn:             {breaks: "a rejected gang goes behind pods that came while it was tried", story: "20-gang"},
	quorumIgnored:             {breaks: "a gang is tried before enough of its pods are there", story: "20-gang"},
	firstMemberJudges:         {breaks: "an event is judged by the first pod of a gang alone", story: "20-gang"},
	lateMemberLost:            {breaks: "a pod that comes while its gang is tried is lost", story: "20-gang"},
	extrasFirst:               {breaks: "pods beyond what their gang needs go before those that others need", story: "22-extras"},
	extrasOvertake:            {breaks: "pods beyond what their gang needs take room while those who need it back off", story: "22-extras"},
	restCounts:                {breaks: "an attempt before its time that comes to nothing counts", story: "23-early"},
	restDeaf:                  {breaks: "what helps during an attempt before its time is not heard", story: "23-early"},
	restForEver:               {breaks: "a unit that was tried before its time waits for an event", story: "23-early"},
	unknownApart:              {breaks: "an update of a pod that is not known makes a second unit of its gang", story: "20-gang"},
	headSpeaks:                {breaks: "extras of a higher priority hide who is needed behind them", story: "22-extras"},
	apartTogether:             {breaks: "the pods of a group that are scheduled one by one wait for each other", story: "24-apart"},
	oneOfEachSpec:             {breaks: "a hint that reads a pod is asked about one member of each spec", story: "25-member-gates"},
	memberGatesUnheard:        {breaks: "an event that opens a member's gate does not wake the gang", story: "25-member-gates"},
	freedUnheard:              {breaks: "capacity that a nomination kept is not reported when the nomination ends", story: "11-nominations"},
	alikeForEver:              {breaks: "a pod that has changed is still asked about as one of those it was alike", story: "21-alike"},
	ageIgnored:                {breaks: "age does not count among equals", story: "22-sessions"},
	errorsNotMustered:         {breaks: "units that back off after an error miss the session", story: "22-sessions"},
	gatedNotMustered:          {breaks: "gates are not asked when a session starts", story: "22-sessions"},
	updateDropsNomination:     {breaks: "an update from before the nomination takes it away", story: "11-nominations"},
}

// Each mutation of the queue is caught twice: by the story named, and by the property against the model.
func TestMutants(t *testing.T) {
	for m := sound + 1; m < mutations; m++ {
		c := mutants[m]
		if c.breaks == "" {
			t.Errorf("mutation %d has no story", m)
			continue
		}
		t.Run(c.story+"/"+c.breaks, func(t *testing.T) {
			mutant = m
			defer func() { mutant = sound }()
			text, err := os.ReadFile("testdata/" + c.story + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			if told, err := tell(string(text)); err == nil && told == string(text) {
				t.Errorf("the story %s does not notice", c.story)
			}
			switch {
			case m == alikeForEver:
				if alikeAgrees(200) == nil {
					t.Error("the twin that asks about each pod does not notice")
				}
			case m >= rejectedGangSleeps: // the model knows pods by themselves only
			case !modelNotices():
				t.Error("the model does not notice")
			}
		})
	}
}

// modelNotices plays a fixed row of random histories until one differs.
func modelNotices() bool {
	for seed := range 1500 {
		if differs(seed%6, steps.Example(seed)) {
			return true
		}
	}
	return false
}

// differs counts a panic as a difference.
func differs(config int, ops []op) (different bool) {
	defer func() { different = different || recover() != nil }()
	return compare(config, ops) != nil
}

// Without a mutation the same histories agree, so that it is the mutation that TestMutants sees.
func TestNoMutant(t *testing.T) {
	if modelNotices() {
		t.Fatal("the queue differs from the model")
	}
}
