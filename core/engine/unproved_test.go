// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// unprovedIsTold: a gang of twenty that all differ has others evicted on 150 full nodes. To show that each of these
// is needed takes a dry run each (rule R7). Where only some may be made, it reports how many victims it was not
// shown; and of none where all may be.
func unprovedIsTold(t interface{ Fatalf(string, ...any) }) {
	for _, c := range []struct {
		runs int
		told bool
	}{{12, true}, {units.DefaultDryRuns, false}} {
		e, in := preemptingEngine(preempt.Config{Runs: c.runs}), convert.NewIntake()
		fill(e, in, 150, 4, 1)
		for i := range 20 {
			p := in.Pod(lowOrBoss(fmt.Sprint("boss-", i), "", 100, int64(900+i+1000*(i%2))))
			p.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: "boss"}, Size: 20}
			recordedStep(e, engine.PodSet{Pod: p})
		}
		var made *record.Preemption
		for _, f := range recordedStep(e, engine.Cycle{}) {
			if d, is := f.(engine.Decided); is {
				made = d.Decision.Preemption
			}
		}
		if made == nil || len(made.Victims) != 30 || made.Unproved > 30 || (made.Unproved > 0) != c.told {
			t.Fatalf("with %d dry runs: %+v", c.runs, made)
		}
	}
}

// TestUnprovedIsTold: see unprovedIsTold.
func TestUnprovedIsTold(t *testing.T) { unprovedIsTold(t) }
