// SPDX-License-Identifier: Apache-2.0

//go:build !kumiki_mutants

package devices

// MutantsBuilt tells whether this build can hold the faults of Mutants.
const MutantsBuilt = false

// SetMutant does nothing in this build; with the build tag kumiki_mutants it puts Mutants[n] into the plugin until
// restore is called.
func SetMutant(n int) (restore func()) { return func() {} }

func mutated(mutant) bool { return false }
