// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package engine_test

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// TestStoriesSeeMutantsOfTheCluster puts faults of core/cluster in that change what a gang is, and demands that the story
// which is about it goes another way.
func TestStoriesSeeMutantsOfTheCluster(t *testing.T) {
	for fault, story := range map[string]string{
		"namespaces-shared": "gang_namespaces",
		"ended-stays":       "gang_ended",
		"priority-absent":   "gang_priority_source",
		"priority-claimed":  "gang_priority_source",
	} {
		t.Run(fault, func(t *testing.T) {
			n := slices.IndexFunc(cluster.Mutants, func(m cluster.Mutation) bool { return m.Name == fault })
			if n < 0 {
				t.Fatal("no such fault in core/cluster")
			}
			defer cluster.SetMutant(n)()
			if !goesAnotherWay(t, "testdata/preempt/"+story+".txt", func(script []byte) []byte { return newRobbing(t).play(script) }) {
				t.Errorf("the story %s does not see that %s", story, cluster.Mutants[n].Breaks)
			}
		})
	}
}
