// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"
)

// Catches: a cost with the wrong sign, or against another scheduler.
func TestCostsOfPlugins(t *testing.T) {
	with, without := LatencyOf([]float64{2}), LatencyOf([]float64{1.5})
	got := costs([]WorkloadRow{{Scheduler: Kumiki, Latency: with, CPU: Spread{Median: 3}}, {Scheduler: "kumiki~NodePorts", Latency: without, CPU: Spread{Median: 2.5}}})
	if want := []string{"NodePorts costs kumiki 25 % of the p99, and 0.50 CPU seconds of 3.00"}; !slices.Equal(got, want) {
		t.Errorf("printed %q, want %q", got, want)
	}
}
