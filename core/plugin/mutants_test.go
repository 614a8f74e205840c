// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package plugin

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

func TestMain(m *testing.M) { probe.Main(m, SetMutant) }

// The tests of this package fail with any one of the mutants in place.
func TestMutants(t *testing.T) {
	if probe.InFault() {
		return // this process is one of those below
	}
	for n, m := range Mutants {
		t.Run(m.Name, func(t *testing.T) { probe.Seen(t, n, m.Breaks) })
	}
}
