// SPDX-License-Identifier: Apache-2.0

// Package gang owns the search for places of a whole gang: rows for enough of its members at once, or none for any.
//
// Place works inside one open cluster.Trial. Each member is placed by the profile's own Placer with all that was taken
// before seen as taken, so that affinity, spread, ports, volumes and devices hold between members as they do between
// pods. What is found stays taken in the trial; of what is not found, nothing is left.
//
// The search goes from cheap to dear, and ends at the first places it finds: a pass in the unit's order; bounds that
// prove that there are none (bounds.go); passes in other orders, and on the rows that members fill the most
// (orders.go); passes in single domains for members that must be near each other; backtracking (dig.go). Members that
// are alike need the first two alone. A topology confines it to domains, the smallest that may hold the gang first
// (domains.go).
//
// Invariants: after any verdict but Placed the store is as it was; a Placed gang has as many places as its quorum asks
// for; nobody is called NeverFits without a proof; the same need on the same state has the same answer.
//
// Rejected: one pod at a time with a wait at the end (two gangs then hold parts of each other's room); a solver for
// mixed integer programs, which knows nothing of what plugins say about pods that are not placed yet.
package gang
