// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// TestRunsEndWithTheReason: pods larger than any node wait, and the run ends because nothing can change that; a
// ReplicaSet whose pods end is filled without end, and the run ends at its limit.
func TestRunsEndWithTheReason(t *testing.T) {
	kumiki := func() sim.Stepper {
		return engine.New(engine.Config{Profiles: []engine.Profile{engine.DefaultProfile(v1.DefaultSchedulerName)},
			Less: basic.PrioritySort{}, InitialBackoff: record.Second, MaxBackoff: 10 * record.Second,
			UnschedulableTimeout: 300 * record.Second})
	}
	const nodes = "nodes: [{name: n, count: 2, capacity: {cpu: 4, memory: 8Gi, pods: 110}}]\n"
	for _, c := range []struct {
		text    string
		why     sim.Reason
		pending float64
	}{
		{"workloads: [{name: w, count: 3, requests: {cpu: 5}}]", sim.Stuck, 3},
		{"workloads: [{name: w, kind: gang, size: 4, requests: {cpu: 3}}]", sim.Stuck, 4},
		{"until: 2h\nworkloads: [{name: w, kind: replicaSet, work: 1m, requests: {cpu: 1}}]", sim.AtLimit, 0},
		{"workloads: [{name: w, work: 1m, requests: {cpu: 1}}]", sim.Finished, 0},
	} {
		f, err := Read([]byte(nodes + c.text))
		if err != nil {
			t.Fatal(err)
		}
		run, err := f.Start(1, []sim.Scheduler{{Name: "a", Make: kumiki}})
		if err != nil {
			t.Fatal(err)
		}
		r := run.Finish(nil)
		if m, _ := r.Find("pods.pending"); r.Reason != c.why || *m.Value != c.pending {
			t.Errorf("%s: ended because %s with %v pods pending, want %s with %v", c.text, r.Reason, *m.Value, c.why, c.pending)
		}
	}
}
