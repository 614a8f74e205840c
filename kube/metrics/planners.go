// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Attempted counts an attempt of a local planner that did not place its pod, and how long it took. The pod is counted
// under the plugins that rejected it until it is tried again, there or by the loop. A proposal that the arbiter refused
// is no attempt of its own: kumiki_proposals_total counts it.
func (t *Tally) Attempted(d *record.Decision, took time.Duration) {
	p := t.pods[d.Pod.UID]
	if p == nil || d.Verdict == record.Recalled { // it is bound or gone
		return
	}
	t.blame(p, nil)
	t.setAside(p, false)
	p.profile = d.Profile
	result := "error"
	switch d.Verdict {
	case record.DoesNotFit:
		result = "unschedulable"
		t.blame(p, d.Plugins)
	case record.SetAside:
		t.m.setAside.Inc()
		t.setAside(p, true)
	}
	t.m.algorithm.Observe(took.Seconds())
	t.m.attempts.WithLabelValues(result, p.profile).Inc()
	t.m.attemptDuration.WithLabelValues(result, p.profile).Observe(took.Seconds())
}

// Planner counts an effect of a local planner.
func (t *Tally) Planner(f engine.Effect) {
	if _, is := f.(engine.Trouble); is {
		t.m.troubles.Inc()
	}
}
