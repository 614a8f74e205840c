// SPDX-License-Identifier: Apache-2.0

// Package shrink owns the search for the smallest input that still shows something: scenario files and recordings from
// which parts are removed as long as a predicate holds (delta debugging: Zeller and Hildebrandt, "Simplifying and
// isolating failure-inducing input", 2002; on trees: Misherghi and Su, "HDD", 2006).
//
// The result is minimal in this sense: no single part that may be removed can be removed. It is not the smallest of
// all.
package shrink
