// SPDX-License-Identifier: Apache-2.0

package shadow

// Mutations is the number of faults, counting from 1.
const Mutations = int(mutations)

// SeenAtRandom is the last of the faults that random clusters see, too.
const SeenAtRandom = int(quietInChange)

// SetMutant puts a fault in until restore is called.
func SetMutant(n int) (restore func()) {
	mutant = mutation(n)
	return func() { mutant = noMutation }
}

// MaxDoubts, MaxExamples and MaxReasons are the bounds of what is kept.
const (
	MaxDoubts   = maxDoubts
	MaxExamples = maxExamples
	MaxReasons  = maxReasons
)
