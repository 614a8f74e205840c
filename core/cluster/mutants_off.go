// SPDX-License-Identifier: Apache-2.0

//go:build !kumiki_mutants

package cluster

func mutated(mutant) bool { return false }
