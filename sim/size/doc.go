// SPDX-License-Identifier: Apache-2.0

// Package size owns the question how few nodes of one shape hold given pods: the fewest with which a scheduler places
// all of them, beside a number with which no scheduler can.
//
// The upper side is found by trying: a binary search over the number of nodes for each of several orders of the pods.
// Whether k nodes suffice is not monotonic for every scheduler, so the result is a number that was seen to suffice, and
// not the smallest one of that scheduler. The lower side is a relaxation for each resource: the sum of the requests,
// and the bound of Martello and Toth (L2, "Knapsack Problems", 1990, chapter 8), which takes into account that large
// pods do not share a node.
package size
