// SPDX-License-Identifier: Apache-2.0

// Package gang owns the search for the placement of a whole gang: rows for enough of its members at once, or for
// none.
//
// Place works inside one open cluster.Trial. The profile's own Placer places each member on the state with all
// earlier placements, so that affinity, spread, ports, volumes and devices hold between members as they do between
// pods. A placement that was found stays in the trial; a failed search leaves nothing in it.
//
// The search goes from cheap to expensive, and ends at the first placement it finds: a pass in the unit's order;
// bounds that prove that there is none (bounds.go); passes in other orders, and on the rows with the least capacity
// left (orders.go); passes in single domains for members that must be near each other; backtracking
// (backtracking.go). A gang of equivalent members needs only the first two. A topology confines the search to
// domains, the smallest that may hold the gang first (domains.go).
//
// Invariants: after any verdict but Placed the store is unchanged; a Placed gang has at least its quorum of
// placements; NeverFits always has a proof; the same need on the same state has the same answer.
//
// Rejected: one pod at a time with a wait at the end (two gangs then hold parts of each other's capacity); a mixed
// integer programming solver, which does not know what plugins decide about pods that are not placed yet.
package gang
