// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package kube

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

func TestMain(m *testing.M) {
	probe.Main(m, func(n int) func() { seeded = mutant(n); return func() { seeded = -1 } })
}

// Each of the mutants makes the test fail that it names.
func TestMutants(t *testing.T) {
	for n, m := range mutants {
		t.Run(m.name, func(t *testing.T) { probe.SeenBy(t, n, m.breaks, "^"+m.test+"$") })
	}
}
