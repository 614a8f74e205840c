// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// own makes the metrics that only kumiki has.
func (m *Metrics) own() {
	a := func(name, help string) what { return what{kumiki, name, help, metrics.ALPHA} }
	m.step = m.histograms(a("step_duration_seconds",
		"Seconds in a step of the scheduling cycle, measured in one of ten cycles."), buckets{0.000001, 4, 12}, "step")
	m.setAside = m.counter(a("pods_set_aside_total",
		"Pods set aside until they change, because handling them panicked."))
	m.setAsideNow = m.gauge(a("pods_set_aside",
		"Pods that are set aside until they change, because handling them panicked."))
	m.troubles = m.counter(a("troubles_total",
		"Things that should not have happened and were contained."))
	m.UnknownBinds = m.counters(a("bind_unknown_outcomes_total",
		"Binds whose answer left the outcome open, by what the API server had when asked again."), "outcome")
	m.EventsDropped = m.counter(a("events_dropped_total",
		"Events about pods that were dropped, the oldest first, because the API server did not take them fast enough."))
	m.Heartbeat = m.gauge(a("loop_heartbeat_seconds",
		"Unix time of the scheduling loop's last turn, which comes at least once a second."))
	m.firstDecision = m.gauge(a("time_to_first_decision_seconds",
		"Seconds from the start of the scheduler to its first decision."))
	m.ConditionPatches = m.counters(a("condition_patches_total",
		"Patches of the PodScheduled condition, by result: written, equal (not sent), moot (the pod is bound or gone), refused."), "result")
	m.evictionsWasted = m.counter(a("evictions_wasted_total",
		"Pods evicted for a pod or a gang that did not get a place by it: others took the room, a node went, it found another place, or is gone."))
	m.victimsUnproved = m.counter(a("evictions_unproved_total",
		"Gangs, and pods by themselves, that were evicted for a gang without its having been shown that it does not fit beside them, because that takes too long."))
	m.victimsStuck = m.counter(a("victims_stuck_total",
		"Pods that were to make room, and were there long after the end of their grace period, so that other room was looked for."))
	m.preemptionPauses = m.counter(a("preemption_pauses_total",
		"How often nobody was evicted for an owner of pods any more for a while, because other schedulers took the room that was made."))
	m.GangStatuses = m.counters(a("gang_statuses_total",
		"Statuses for the objects that declare gangs, by result: written, equal (not sent), moot (the object is gone), refused."), "source", "result")
	m.gangsPart = m.histogram(a("gang_partially_bound_seconds",
		"Seconds from the first bound pod of a gang to the one that makes it as many as the gang needs, as the watch shows them."), buckets{0.001, 4, 11})
	m.gangsPartNow = m.gauge(a("gangs_partially_bound",
		"Gangs of which some pods are bound and fewer than they need, and that were not whole before; looked at once a second."))
	m.gangsPartLongest = m.gauge(a("gang_partially_bound_longest_seconds",
		"For how long the first of the gangs that are bound in part now has been so; 0 without any."))
	m.gangsWaiting = m.gauges(a("gangs_waiting",
		"Gangs with pods that have no place, by what they wait for: pods (that are missing), turn (not tried yet), room, never (cannot fit even on "+
			"an empty cluster), gave_up (no place was found within the budget), error, extras (they have what they need). Looked at once a second."), "for")
	m.gangHold = m.histograms(a("gang_hold_seconds",
		"Seconds for which room was held for a blocked gang, by result: placed, or given_up."), buckets{0.25, 2, 12}, "result")
	m.gangHeldPods = m.gauge(a("gang_held_pods",
		"Pods of a blocked gang for which room is held now; looked at once a second."))
	m.oversold = m.gauge(a("oversold_nodes",
		"Nodes on which pods hold more of something than there is, looked at once a second."))
	m.oversells = m.counter(a("oversells_seen_total",
		"How often a node was found oversold that was not a second before."))
	m.staleness = m.gauges(a("watch_staleness_seconds",
		"Seconds since the API server last sent anything over a watch; a silent one brings a bookmark about once a minute."), "watch")
	m.WatchGaps = m.counters(a("watch_gaps_total",
		"Objects of which a watch did not tell although it stayed up, found by asking; everything was listed afresh then."), "watch")
	m.Takeover = m.gauge(a("takeover_seconds",
		"Seconds from winning the lease to the first turn of the loop that might decide, everything having been listed; 0 before."))
	m.paths = m.counters(a("decisions_total",
		"Searches for a node, by the way they went over the nodes: ranked (the class has them in order), grouped (one of each group), "+
			"scanned (each one), the cheapest first."), "path")
	m.rechecked = m.counter(a("foreign_binds_rechecked_total",
		"Pods found bound to a node for which this scheduler had not decided them, while pods of its own were on their way there."))
	m.conflicts = m.counters(a("foreign_conflicts_total",
		"Decided pods that did not fit any more after another was found bound to their node, by result: recalled (before the bind was sent), "+
			"too_late (the bind was on its way), released (no bind had been asked for yet)."), "result")
	m.paused = m.gauge(a("paused",
		"1 while this process leads and is paused by the annotation on its lease, and so binds nothing; 0 otherwise."))
}
