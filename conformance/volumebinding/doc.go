// SPDX-License-Identifier: Apache-2.0

// Package volumebinding owns the comparison of VolumeBinding with upstream's over the life of a decision: verdicts on
// each node, what is reserved and written, what other pods see of it before and after, the wait for volumes, hints.
//
// Where upstream chooses by the order of a Go map, which is no order, the cases leave no choice: volumes of a class
// differ in size, and no two volumes name one claim.
package volumebinding
