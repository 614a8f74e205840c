// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/kumiki-scheduler/kumiki/record"

// reportedWork is the work that was added to the metrics already.
type reportedWork struct {
	counts record.WorkCounts
	steps  [record.StepLanes]record.StepCPU
}

// report adds what was done since the last call. cpu may be nil.
func (r *reportedWork) report(to *Metrics, now record.WorkCounts, cpu *StepCPU) {
	for kind, n := range now {
		// 0 is added too: a kind of which there is none shows as 0.
		to.work.WithLabelValues(record.Work(kind).String()).Add(float64(n - r.counts[kind]))
	}
	r.counts = now
	if cpu == nil {
		return
	}
	for lane := range cpu.lanes {
		is, was, name := cpu.lanes[lane], r.steps[lane], record.StepLane(lane).String()
		add := func(how string, now, before uint64) {
			to.engineSteps.WithLabelValues(name, how).Add(float64(now - before))
		}
		add("exact", is.Measured-is.Disturbed, was.Measured-was.Disturbed)
		add("disturbed", is.Disturbed, was.Disturbed)
		add("not_measured", is.Steps-is.Measured, was.Steps-was.Measured)
		if cpu.clock != nil {
			to.cpu.WithLabelValues(name).Add((is.CPU - was.CPU).Seconds())
		}
	}
	r.steps = cpu.lanes
}
