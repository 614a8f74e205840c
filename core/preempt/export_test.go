// SPDX-License-Identifier: Apache-2.0

package preempt

// Mutations is the number of faults, counting from 1.
const Mutations = int(mutations)

// FirstUnitMutation is the first of those that are about units.
const FirstUnitMutation = int(unitEquals)

// SetMutant puts a fault in until restore is called.
func SetMutant(n int) (restore func()) {
	mutant = mutation(n)
	return func() { mutant = noMutation }
}

// Compare is negative when a is the smaller loss.
func Compare(a, b Loss) int { return a.compare(b) }

// PlacesFirst makes a search for units look for places first, as it does where there are many.
func (f *Finder) PlacesFirst() { f.many = 1 }
