// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package cluster

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

func TestMain(m *testing.M) { probe.Main(m, SetMutant) }

// Each of the mutants makes the test fail that it names.
func TestMutants(t *testing.T) {
	for n, m := range Mutants {
		t.Run(m.Name, func(t *testing.T) { probe.SeenBy(t, n, m.Breaks, "^"+m.test+"$") })
	}
}
