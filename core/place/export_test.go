// SPDX-License-Identifier: Apache-2.0

package place

// Mutations is the number of faults, counting from 1.
const Mutations = int(mutations)

// SetMutant puts a fault in until restore is called.
func SetMutant(n int) (restore func()) {
	mutant = mutation(n)
	return func() { mutant = noMutation }
}

// LookAtEachRow keeps a Placer from grouping and ranking rows.
func LookAtEachRow(pl *Placer) { pl.eachRow = true }

// Judged tells whether there are verdicts: not when the pod was rejected before any node was looked at.
func Judged(o Outcome) bool { return o.look.judged }

// Groupings is how many groupings a Placer keeps.
func Groupings(pl *Placer) int { return len(pl.groupings) }
