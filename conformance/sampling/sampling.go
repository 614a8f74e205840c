// SPDX-License-Identifier: Apache-2.0

// Package sampling owns the settings of comparisons on generated cases: how many cases, and from which seed. It reads
// them from the environment, where `make conformance N=… SEED=…` puts them.
package sampling

import (
	"os"
	"strconv"
	"testing"
)

// Cases returns KUMIKI_CASES, or the given number if it is not set.
func Cases(t testing.TB, otherwise int) int {
	t.Helper()
	return number(t, "KUMIKI_CASES", otherwise)
}

// First returns KUMIKI_FIRST, the number of the first generated cluster, or 0 if it is not set. A long comparison can
// be made in pieces with it.
func First(t testing.TB) int {
	t.Helper()
	return number(t, "KUMIKI_FIRST", 0)
}

// Seed returns KUMIKI_SEED, or 1 if it is not set.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return SeedOr(t, 1)
}

// SeedOr returns KUMIKI_SEED, or the given seed if it is not set.
func SeedOr(t testing.TB, otherwise int) uint64 {
	t.Helper()
	return uint64(number(t, "KUMIKI_SEED", otherwise))
}

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number of cases or a seed", name, text)
	}
	return n
}
