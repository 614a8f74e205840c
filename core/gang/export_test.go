// SPDX-License-Identifier: Apache-2.0

package gang

// Mutations is the number of faults, counting from 1.
const Mutations = int(mutations)

// SetMutant puts a fault in until restore is called.
func SetMutant(n int) (restore func()) {
	mutant = mutation(n)
	return func() { mutant = noMutation }
}
