// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// own makes the metrics that only kumiki has.
func (m *Metrics) own() {
	a := func(name, help string) what { return what{kumiki, name, help, metrics.ALPHA, ""} }
	m.step = m.histograms(a("step_duration_seconds",
		"Duration of a step of the scheduling cycle in seconds, measured in one of ten cycles."),
		buckets{0.000001, 4, 12}, "step")
	m.loopSeconds = m.counters(a("loop_seconds_total",
		"Seconds that the scheduling loop spent, by state: cycle (it decides), event (it takes a change, an outcome "+
			"or the time), observer (an observer of its steps, such as --record), other, idle (nothing may be tried), "+
			"limited (a pod may be tried, and too many decisions have no outcome yet), held (a pod may be tried, and "+
			"scheduling is paused or the lease is not held). A rest is counted when it ends, after one second at "+
			"most."),
		"state")
	m.setAside = m.counter(a("pods_set_aside_total",
		"Number of pods set aside until they change, because handling them panicked."))
	m.setAsideNow = m.gauge(a("pods_set_aside",
		"Number of pods that are currently set aside until they change, because handling them panicked."))
	m.troubles = m.counter(a("troubles_total",
		"Number of internal errors that were contained."))
	m.UnknownBinds = m.counters(a("bind_unknown_outcomes_total",
		"Number of binds whose answer left the outcome open, by the outcome that a later read found."), "outcome")
	m.PluginFailures = m.counters(a("plugin_failures_total",
		"Number of times a plugin of kube-scheduler's framework misbehaved, by extension point and kind: panic, "+
			"bad_answer (an unknown status, or a score out of range), slow (the scheduling loop waits for a call), "+
			"timeout (a call took longer than pluginTimeout), modified (the plugin modified an object that was "+
			"lent to it; see hosted.check), misuse (an event that is not watched, or a method of "+
			"Handle that is absent)."), "plugin", "extension_point", "kind")
	m.EventsDropped = m.counter(a("events_dropped_total",
		"Number of events about pods that were dropped, the oldest first, because the API server did not accept them "+
			"fast enough."))
	m.Heartbeat = m.gauge(a("loop_heartbeat_seconds",
		"Unix time of the last iteration of the scheduling loop, in seconds; there is at least one per second."))
	m.firstDecision = m.gauge(a("time_to_first_decision_seconds",
		"Seconds from the start of the scheduler to its first decision."))
	m.ConditionPatches = m.counters(a("condition_patches_total",
		"Number of patches of the PodScheduled condition, by result: written, equal (not sent), moot (the pod is "+
			"bound or gone), refused."), "result")
	m.evictionsWasted = m.counter(a("evictions_wasted_total",
		"Number of pods evicted for a pod or a gang that was not placed on the freed capacity: other pods took it, "+
			"a node was deleted, the pod or gang was placed elsewhere, or it is gone."))
	m.evictedForGangs = m.counter(a("evicted_for_gangs_total",
		"Number of pods evicted so that a gang could start, which they had declared to allow. They are not counted by "+
			"scheduler_preemption_victims."))
	m.victimsUnproved = m.counter(a("evictions_unproved_total",
		"Number of units (gangs, and pods without a gang) that were evicted for a gang without a proof that the gang "+
			"does not fit beside them, because the proof takes too long."))
	m.victimsStuck = m.counter(a("victims_stuck_total",
		"Number of evicted pods that still ran long after the end of their grace period, so that capacity was "+
			"searched elsewhere."))
	m.preemptionPauses = m.counter(a("preemption_pauses_total",
		"Number of preemption pauses started: evictions for the pods of an owner stop for a while after other "+
			"schedulers repeatedly took the freed capacity."))
	m.GangStatuses = m.counters(a("gang_statuses_total",
		"Number of statuses for the objects that declare gangs, by result: written, equal (not sent), moot (the "+
			"object is gone), refused."), "source", "result")
	m.Ungrouped = m.counter(a("pods_without_readable_group_total",
		"Number of pods that name a pod group and are scheduled alone, because the API server does not serve pod "+
			"groups or does not let the scheduler read them."))
	m.gangsPart = m.histogram(a("gang_partially_bound_seconds",
		"Seconds from the first bound pod of a gang to the pod that completes its minimum number, as seen by the "+
			"watch."), buckets{0.001, 4, 11})
	m.gangsPartNow = m.gauge(a("gangs_partially_bound",
		"Number of gangs with some pods bound, but fewer than their minimum, that were never complete. Updated once "+
			"a second."))
	m.gangsPartLongest = m.gauge(a("gang_partially_bound_longest_seconds",
		"Seconds since the oldest of the currently partially bound gangs became partially bound; 0 without such a "+
			"gang."))
	m.gangsWaiting = m.gauges(a("gangs_waiting",
		"Number of gangs with unplaced pods, by what they wait for: pods (some do not exist yet), turn (not tried "+
			"yet), room (free capacity), never (the gang does not fit even on an empty cluster), gave_up (no "+
			"placement was found within the search budget), error, extras (the minimum is placed, surplus members "+
			"wait). Updated once a second."), "for")
	m.gangHold = m.histograms(a("gang_hold_seconds",
		"Seconds for which capacity was reserved for a blocked gang, by result: placed, given_up."),
		buckets{0.25, 2, 12}, "result")
	m.backfilled = m.counters(a("backfilled_pods_total",
		"Number of pods placed on capacity reserved for a gang because they end before it can start, by what became "+
			"of them: ended, late (there after their end). Counted when the reservation ends."), "result")
	m.gangHeldPods = m.gauge(a("gang_held_pods",
		"Number of pods of a blocked gang for which capacity is reserved. Updated once a second."))
	m.oversold = m.gauge(a("oversold_nodes",
		"Number of nodes whose pods request more of a resource than is allocatable. Updated once a second."))
	m.oversells = m.counter(a("oversells_seen_total",
		"Number of times a node was found oversold that was not oversold a second before."))
	m.staleness = m.gauges(a("watch_staleness_seconds",
		"Seconds since the API server last sent data over a watch. An idle watch gets a bookmark about once a "+
			"minute."), "watch")
	m.WatchGaps = m.counters(a("watch_gaps_total",
		"Number of objects whose changes a watch lost although it stayed connected, as found by an audit. Each audit "+
			"that finds one lists all objects again."), "watch")
	m.Takeover = m.gauge(a("takeover_seconds",
		"Seconds from winning the lease to the first iteration of the loop that can schedule, with all objects "+
			"listed; 0 before."))
	m.paths = m.counters(a("decisions_total",
		"Number of searches for a node, by how the nodes were visited, the cheapest first: ranked (the class keeps "+
			"them in order), grouped (one node of each group), scanned (each node)."), "path")
	m.PodsLent = m.counter(a("pods_lent_total",
		"Number of versions of pods that were lent to local planners."))
	m.Proposals = m.counters(a("proposals_total",
		"Number of proposals of local planners, by the arbiter's verdict: taken, refused, gone (the unit does not "+
			"wait for a placement any more), and by the plugin that refused a placement."), "verdict", "plugin")
	m.rechecked = m.counter(a("foreign_binds_rechecked_total",
		"Number of pods found bound to a node by another scheduler while this scheduler had binds to that node in "+
			"flight."))
	m.conflicts = m.counters(a("foreign_conflicts_total",
		"Number of decided pods that no longer fit after another scheduler bound a pod to their node, by result: "+
			"recalled (before the bind was sent), too_late (the bind was in flight), released (no bind had been "+
			"requested yet)."), "result")
	m.work = m.counters(a("work_total",
		"Amount of work of the scheduling core, by kind. It is a function of the cluster's events: equal on a fast "+
			"and on a slow machine, and in a replay. Updated once a second."), "kind")
	m.uselessWakeUps = m.counters(a("useless_wakeups_total",
		"Number of wake-ups of pods and gangs after which the next attempt placed nothing, by the plugin whose hint "+
			"woke them and the event."), "plugin", "event")
	m.engineSteps = m.counters(a("engine_steps_total",
		"Number of Steps of the scheduling core, by lane (cycles: scheduling cycles; events: all others) and by "+
			"whether their CPU time was measured: exact, disturbed (the thread had a CPU for less than 95 % of the "+
			"Step; its CPU time is counted too), not_measured. Updated once a second."), "lane", "cpu")
	m.cpu = m.counters(a("cpu_seconds_total",
		"CPU time of the measured Steps of the scheduling core, by lane, as the clock of the thread shows it. It has "+
			"no value where Steps are not measured: outside of Linux, and with profiles that call foreign code. "+
			"Updated once a second."), "lane")
	m.Incidents = m.counters(a("incidents_total",
		"Number of incidents that the flight recorder detected, by cause: slow-iteration, no-binds, bind-unanswered, "+
			"watch-lag, api-unanswered, lease-unrenewed, lease-lost, panic, overcommitted-node, gc-pause, by-hand."),
		"cause")
	m.RecordingsEnded = m.counters(a("recordings_ended_total",
		"Number of recordings of --record that ended before the scheduler did, by reason: limit (the size limit is "+
			"reached), disk_full, write (another error of the disk), too_slow (the disk is slower than the "+
			"scheduler)."), "reason")
	m.timings(a)
	m.limit = m.gauges(a("limit",
		"Value of a configured or fixed limit, by the cause that kumiki profile why names: in-flight-limit (binds in "+
			"flight), decided-ahead-limit (decisions without an outcome), session-period (seconds between sessions; "+
			"there is none if pods are tried at once)."), "cause")
	m.paused = m.gauge(a("paused",
		"1 while this process leads and is paused by the annotation on its lease, so that it binds no pods; 0 "+
			"otherwise."))
}
