// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWorkIsReportedOnce: work is added to the metric with each pass, once, also after the metrics were reset.
func TestWorkIsReportedOnce(t *testing.T) {
	c := newCounting()
	refresh := func() {
		c.tally.periodic = newPeriodic(c.tally.m) // due
		c.tally.Refresh(c.Engine)
	}
	rows := func(kind record.Work) float64 {
		return kubetest.Value(t, c.reg, "kumiki_work_total", "kind="+kind.String())
	}
	c.step(c.node("a", "4"), c.node("b", "4"), engine.Synced{}, c.pod(kubetest.PendingPod("p", "1")), engine.Cycle{})
	refresh()
	first := rows(record.RowsEvaluated)
	if first == 0 || rows(record.HintsEvaluated) != 0 {
		t.Fatalf("%v rows evaluated, %v hints", first, rows(record.HintsEvaluated))
	}
	refresh()
	if again := rows(record.RowsEvaluated); again != first {
		t.Errorf("%v rows evaluated without an event, %v before", again, first)
	}
	c.step(c.pod(kubetest.PendingPod("q", "2")), engine.Cycle{})
	refresh()
	if caught := rows(record.RowsCaughtUp); caught != 1 {
		t.Errorf("%v rows caught up, want the one of the first pod", caught)
	}
}

// BenchmarkDid is the cost of one report of work.
func BenchmarkDid(b *testing.B) {
	var m engine.Meter = NewMeter()
	for b.Loop() {
		m.Did(record.RowsCaughtUp, 1)
	}
}
