// SPDX-License-Identifier: Apache-2.0

package gang

// mutation is a fault that a test can put into the search to show that the suite sees it.
type mutation int

// The faults, by what they leave out or do wrong.
const (
	noMutation       mutation = iota
	triesKept                 // a try that failed is not taken back
	quorumShort               // one member less than the quorum will do
	domainsLeft               // a pass in a domain looks at all rows
	boundElsewhere            // the domain of bound members does not bind the others
	extrasCounted             // the least demanding members are taken for the most demanding ones
	slackForgotten            // those that demand much must all have a place
	apartByNode               // members that repel each other in a zone do so on a node alone
	neverIsNow                // what never fits is told by the room that there is now
	blameNobody               // a dead end goes back past the members that are in the way
	slackBlameless            // a dead end goes back past the members that were passed over
	amountsMerged             // rows are alike whatever they have left
	touchedMerged             // a row with members on it is like the others of its class
	unitOrderOnly             // no other order is tried
	nobodyTogether            // members that must be near each other are not tried in single domains
	neverDig                  // nothing is tried besides passes
	siblingsPromised          // a promise to one member keeps the others away
	refusalFinal              // a member that a plugin refuses on one row is tried on no other
	holdsMixed                // what is held goes to members by the order of places
	holdsKept                 // what plugins hold is not released when a member is taken back
	roomiestFirst             // the domain with the most room is taken first
	preferredIgnored          // preferred domains have no say
	levelsIgnored             // only the widest preferred key has a say
	budgetIgnored             // the search goes on for ever
	affinityFirst             // members come before those that they must be near
	hopeIgnoresSlack          // members that may be left out are needed too
	unprovedNever             // what is not known for sure is called never
	offeredIgnored            // nodes count with what they say that they offer
	refusersUnheard           // plugins that refuse a member while reserving are not told
	keepIgnored               // members keep places that they were to give back
	mutations
)

// mutant is the fault in force; only tests set it.
var mutant mutation
