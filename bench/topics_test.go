// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Catches: thresholds that pass because no topic was given, and a warning about thresholds that are checked.
func TestTopicsWithoutACheckAreNamed(t *testing.T) {
	plans := []workload.Plan{
		{Threshold: 5},
		{TopicThresholds: map[string]float64{"dra": 40, "alone": 2}},
		{TopicThresholds: map[string]float64{"dra": 60}},
	}
	for topic, want := range map[string][]string{"": {"alone", "dra"}, "dra": nil, "alone": {"dra"}} {
		if got := topicsBeside(plans, topic); !slices.Equal(got, want) {
			t.Errorf("topic %q: %q, want %q", topic, got, want)
		}
	}
}
