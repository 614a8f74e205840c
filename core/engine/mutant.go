// SPDX-License-Identifier: Apache-2.0

package engine

// mutation is a fault that a test can put into the engine to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation          mutation = iota
	bindWithoutRoom              // a decision does not take the room
	roomKept                     // a failed bind keeps the room
	nobodyWoken                  // room that is freed wakes nobody
	freedNowhere                 // freed room is told of without its node, so hints skip it
	failedDropped                // a pod whose bind failed does not come back
	ghostRequeued                // a pod that has gone comes back after its bind failed
	deletingPlaced               // a pod that is going away is placed
	neverDone                    // a placed unit stays in flight
	boundKeptQueued              // a pod seen bound stays in the queue
	conditionAlways              // a condition is written though the API server has it
	timeRunsBack                 // a tick may go back
	elsewhereFree                // a pod bound elsewhere is not counted there until the watch shows it
	boundUnready                 // a pod is bound though what it needs is not ready
	holdsKept                    // what was held for a pod that turns back stays held
	objectsWakeNobody            // changes of objects wake nobody
	restoredSilently             // nobody is told that something is not taken any more
	remedyKept                   // what a plugin would give up is not given up
	announcedAgain               // that a pod must wait is told each time it is asked
	nobodyExpects                // where a pod that waits is about to go is not shown
	judgedOnItself               // a pod that holds room is judged as if another held it
	tieRegretted                 // another node of the same score counts as worse
	firstBlamed                  // regret is laid at the first plugin
	elsewhereStays               // a pod that was bound elsewhere than decided leaves room that nobody hears of
	foreignTrusted               // a pod that someone else binds makes nobody look again
	newestKept                   // of the pods on their way to a node the newest keeps the room
	judgedWithItself             // a pod that is judged again counts against itself
	recalledHeld                 // a recalled pod keeps its room
	recalledTwice                // a recall is asked for again
	recalledGoesOn               // a pod that is recalled during its writes goes on to its bind
	lateUnheard                  // a pod that came through although it was recalled makes nobody look again
	boundNowhere                 // a pod is bound to a node that is gone
	promiseKept                  // a node that was shown for a pod stays shown when the pod turns back before that is seen
	quietSkipped                 // a gang that does not say its size is tried with its first pod
	sizesMixed                   // pods of a gang may state different sizes
	statusRepeated               // a gang's status is written though it was asked for already
	regroupedLate                // a pod changes its gang although others of it have a place
	orphansUndone                // pods that no controller makes again are evicted to undo a gang
	memberGivenUp                // the bind of a gang's member is not tried again
	waitsUntold                  // nobody is told that a gang waits for its pods
	lossUnheard                  // pods of a gang that wait do not hear that another lost its place
	nothingHeld                  // no room is held for a blocked gang
	everybodyHolds               // each blocked gang holds room
	heldForever                  // a hold does not end with its time
	halfGangs                    // a gang gets places for fewer pods than it needs
	membersApart                 // members of a gang are queued by their own age
	countedByUID                 // two pods of one name count as two where names count
	checkedNever                 // members are searched places for although too few are there
	nobodyReplaced               // a lost member waits until the gang has its quorum again
	quorumNotAwaited             // a member goes without the others
	siblingsSleep                // the first that has a place wakes nobody
	seatForEver                  // a member waits for the others without end
	promisesKept                 // what was promised to a gang's pods stays promised when one has no place
	nothingTolerated             // one member without a place is one too many
	someAreReady                 // a gang is let go although some of its pods wait for something else
	readyAtOnce                  // a gang that is to go with the next permit goes by itself
	wakesUnheard                 // a gang is not looked at again when what its pods waited for has come
	gateOpen                     // a pod is tried while its evictions are under way
	gateOpensLate                // its gate stays closed until all evictions are answered
	evictedTwice                 // a pod evicts again while its victims are not seen to go
	flightsDeleted               // a victim that is not bound yet is deleted, not turned back
	notNominated                 // a node that is being freed is free for all
	nominationsStay              // pods of lower priority go on to count on a node that is freed for another
	failureUnheard               // a pod whose evictions failed waits for an event
	doneOpens                    // a gate opens with the answer although victims are not seen to go
	knocksAtOnce                 // a pod is tried as its victims begin to go
	knocksUnheard                // what wanted to wake a pod is forgotten while its victims take long to end
	lastGoesUnheard              // a gate that the last victim opens as it goes tries nobody
	gatedForgotten               // what woke a pod behind its gate is forgotten
	strongestCounts              // a gang has others evicted by its most important pod
	gangsBroken                  // pods of gangs that go whole are evicted one by one
	strangersEvicted             // pods of other schedulers, and those of their nodes, are evicted for gangs
	hopelessAsk                  // a gang that never fits evicts others
	lateEvict                    // a pod that comes late to a gang that has what it needs evicts others
	neverIgnored                 // a gang one of whose pods never preempts does
	restartForgets               // after a restart a gang evicts again while victims of before are going
	newVictims                   // when an eviction fails midway, other victims are chosen
	lastEndUnheard               // a gang is not tried when its last victim is gone
	lostNodeUnheard              // a gang is not tried when a node goes on which room was made for it
	thrashUnseen                 // pods are evicted for a pod for ever, though others take the room
	pausesEqual                  // a pause does not grow
	pauseForEver                 // nobody is tried when its pause is over
	stalledForEver               // a gang that cannot be tried keeps the room that was made for it
	restStays                    // what is left of a gang whose eviction failed midway stays
	restartLeavesRest            // what a scheduler before left of a gang stays
	wasteUncounted               // evictions in vain are not told of
	costUntold                   // it is not told what the victims on a node cost
	sessionsLeak                 // what comes in during a session takes effect at once
	sessionsHang                 // a session that nobody goes on with does not end
	sessionsUnspaced             // sessions follow each other without a pause
	sessionsRepeat               // a session tries a unit again
	questionsShow                // a question is an ordinary transaction
	gonePromised                 // a promise to a pod that is supposed gone counts
	drainsAll                    // a drain takes the pods that belong to the node
	hostsShared                  // added nodes have the host name of the one that they are like
	movedAfter                   // pods that are made again go behind what is asked about, whatever their priority
	extrasWithMinimum            // a gang takes more than it needs while others wait
	extrasTakeAll                // pods beyond what a gang needs take the places that a blocked gang could use
	extrasHold                   // room is held for pods beyond what a gang needs
	pastRemembered               // a gang of which nothing is left is taken for what it was
	raiseBreaks                  // a gang that is asked to be larger after a restart is taken back
	partForgotten                // a gang that is in part when the last of its binds is done is left so
	staleKept                    // a rejected gang's pods stay promised to nodes that they were once nominated to
	terminatingCounts            // pods that go away count as members
	laterReasonsUntold           // a gang whose gate shuts late is not told why
	timeoutUnread                // room is held for a gang for longer than its members may wait
	stuckForEver                 // a pod that does not go is waited for without end
	patienceEqual                // who has given up on victims is as impatient with the next ones
	stuckCounted                 // a pod that does not go is counted on as room to come
	stuckNodeRobbed              // more pods are evicted from a node on which one does not go
	stuckUnheard                 // who waits for a pod that does not go is not tried
	stuckLetGo                   // a gang loses the room that it waits for when there is no other
	refusedAtOnce                // who cannot have pods evicted tries so without a pause
	newUnits                     // when an eviction for a pod by itself fails midway, other victims are chosen
	unitsUnasked                 // foreign code is not asked where units go
	askedInPart                  // what foreign code leaves of a gang goes without the rest
	nothingSpent                 // what strict budgets allow is not less after evictions until their controller says so
	budgetsUnheard               // who evicts nobody because of strict budgets is not tried when they allow more
	unprovedUntold               // it is not told of how many victims it was not asked whether they are needed
	heldUnasked                  // room is held although the configuration says that none is
	gainUnheard                  // pods of a gang that wait do not hear that somebody else gave another one a place
	earlyTriesTold               // an attempt before its time that comes to nothing is counted and told
	barrenForEver                // a look in vain counts for pods of its kind whatever happens
	moreIsOther                  // evictions on a node count as in vain when more must go there
	marksUnread                  // what a pod that waits says of its gang may change without a look at the gang
	keptForEver                  // a pod stays in a gang of which nothing is left, though it names another one
	robbedEvictsAgain            // a pod without a gate evicts its victims again when another takes its nomination
	sparedForNobody              // a gang that does not wait for room keeps some from the extras of others
	toldTooSeldom                // that a gang waits is not told when its gate is asked again before that
	doomedCount                  // pods that are asked to go count for those of their gang that wait
	gateAskedOnce                // a gang is tried although its gate has closed since it became active
	memberGateKept               // the gate of an eviction that keeps a gang's pod back is not asked again when it opens
	declaredUncounted            // a gang leaves capacity to pods that count less than it declares
	gatedMembersUnheard          // a rejected gang is not woken by what would let its other members in
	firstLeftSpeaks              // the surplus members that are left wait for what may help the first of them only
	selectorsUnheard             // preemptors that budgets bar are not tried when a budget's selector changes
	labelsUnheard                // preemptors that budgets bar are not tried when a victim's labels change
	refundForgotten              // what was spent of a budget on an eviction that failed stays spent
	turnedUnheard                // a preemptor is not tried when a victim that was turned back is bound all the same
	surplusCounts                // members that a gang does not need count when its right to evict is judged
	lostNotRegained              // a gang that lost its nominations does not get them again while its victims go
	needlessGo                   // victims that are not needed any more are asked for again
	unnominatedFirst             // a member that never preempts takes the place that others were evicted for a sibling
	basicTogether                // the pods of a basic group are one unit
	profilesMixed                // a gang whose pods ask for different schedulers is tried
	freedUnheard                 // capacity that a nomination kept is not reported when the nomination ends
	refusedEachSecond            // a gang whose one victim cannot be deleted asks again each second
	protectionUnheard            // preemptors are not tried when the object that protects a gang's pods changes
	barredUnsaid                 // a gang of several sets of preemptors that budgets bar is not tried when they allow more
	chargesUncleared             // preemptors that a budget bars are not tried when what was spent of it is forgotten
	strictByNodes                // with strict budgets a pod evicts nobody where upstream's search ends with protected pods
	protectedGo                  // the rest of a set of victims goes although it is protected by now
	siblingsKeepAway             // the nomination of a member behind a gate keeps its siblings away
	siblingsEvict                // pods of a basic group evict each other where it declares less than they have
	nativeSurplusWaits           // surplus members of native groups evict nobody
	basicUntold                  // the status of a basic group does not show that its pods do not fit
	freedByOwnPriority           // capacity that a gang kept by its declared priority is reported to pods up to its pods' own
	doomedForEver                // they do not count although their eviction failed
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
