// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package devices

import "fmt"

// MutantsBuilt tells whether this build can hold the faults of Mutants.
const MutantsBuilt = true

const noMutant mutant = -1

var seeded = noMutant

// SetMutant puts Mutants[n] into the plugin until restore is called. Plugins and what they prepared must be made
// anew after either: some faults sit in preparation. Not for use by several goroutines.
func SetMutant(n int) (restore func()) {
	if n < 0 || n >= len(Mutants) {
		panic(fmt.Sprintf("devices: SetMutant(%d), there are %d", n, len(Mutants)))
	}
	before := seeded
	seeded = mutant(n)
	return func() { seeded = before }
}

func mutated(m mutant) bool { return seeded == m }
