// SPDX-License-Identifier: Apache-2.0

package place

// LookAtEachRow keeps a Placer from grouping and ranking rows.
func LookAtEachRow(pl *Placer) { pl.eachRow = true }

// Judged reports whether there are verdicts: not when the pod was rejected before any node was looked at.
func Judged(o Outcome) bool { return o.search.judged() }

// Groupings is how many groupings a Placer keeps.
func Groupings(pl *Placer) int { return pl.cache.Groupings() }
