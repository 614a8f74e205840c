// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// upstream makes the metrics that dashboards know. Names, labels, buckets, help and levels are facts about
// kube-scheduler 1.37.1; conformance/metrics holds them to it.
func (m *Metrics) upstream() {
	m.attempts = m.counters(what{subsystem, "schedule_attempts_total",
		"Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, " +
			"while 'error' means an internal scheduler problem.",
		metrics.STABLE, ""}, "result", "profile")
	m.attemptDuration = m.histograms(what{subsystem, "scheduling_attempt_duration_seconds",
		"Scheduling attempt latency in seconds (scheduling algorithm + binding)", metrics.STABLE, ""},
		buckets{0.001, 2, 15}, "result", "profile")
	m.algorithm = m.histogram(what{subsystem, "scheduling_algorithm_duration_seconds",
		"Scheduling algorithm latency in seconds", metrics.BETA, ""}, buckets{0.001, 2, 15})
	m.eventHandling = m.histograms(what{subsystem, "event_handling_duration_seconds",
		"Event handling latency in seconds.", metrics.ALPHA, ""}, buckets{0.0001, 2, 12}, "event")
	m.pending = m.gauges(what{subsystem, "pending_pods",
		"Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means " +
			"number of pods in backoffQ; 'unschedulable' means number of pods in unschedulableEntities that the " +
			"scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the " +
			"scheduler never attempted to schedule because they are gated; 'incomplete' means number of pods in " +
			"incompletePodGroupPods; 'pending' means number of pods in pendingPodGroupPods.",
		metrics.STABLE, ""}, "queue")
	m.queuedEntities = m.gauges(what{subsystem, "queued_entities",
		"Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not " +
			"members of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' " +
			"means number of entities in backoffQ; 'unschedulable' means number of entities in " +
			"unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the number of " +
			"unschedulable entities that the scheduler never attempted to schedule because they are gated.",
		metrics.ALPHA, ""}, "queue", "type")
	m.sli = m.histograms(what{subsystem, "pod_scheduling_sli_duration_seconds",
		"E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might " +
			"involve multiple scheduling attempts.",
		metrics.BETA, ""}, buckets{0.01, 2, 20}, "attempts")
	m.podAttempts = m.histogram(what{subsystem, "pod_scheduling_attempts",
		"Number of attempts to successfully schedule a pod.", metrics.STABLE, ""}, buckets{1, 2, 5})
	m.afterFlush = m.counter(what{subsystem, "pod_scheduled_after_flush_total",
		"Number of pods that were successfully scheduled after being flushed from unschedulableEntities due to " +
			"timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
		metrics.ALPHA, ""})
	m.extensionPoint = m.histograms(what{subsystem, "framework_extension_point_duration_seconds",
		"Latency for running all plugins of a specific extension point.", metrics.STABLE, ""}, buckets{0.0001, 2, 12},
		"extension_point", "status", "profile")
	m.pluginDuration = m.histograms(what{subsystem, "plugin_execution_duration_seconds",
		"Duration for running a plugin at a specific extension point.", metrics.BETA, ""}, buckets{0.00001, 1.5, 20},
		"plugin", "extension_point", "status")
	m.evaluations = m.counters(what{subsystem, "plugin_evaluation_total",
		"Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, " +
			"Filter, PreScore, and Score).",
		metrics.BETA, ""}, "plugin", "extension_point", "profile")
	m.hints = m.histograms(what{subsystem, "queueing_hint_execution_duration_seconds",
		"Duration for running a queueing hint function of a plugin.", metrics.ALPHA, ""}, buckets{0.00001, 1.5, 20},
		"plugin", "event", "hint")
	m.incoming = m.counters(what{subsystem, "queue_incoming_pods_total",
		"Number of pods added to scheduling queues by event and queue type.", metrics.STABLE, ""}, "queue", "event")
	m.incomingEntities = m.counters(what{subsystem, "queue_incoming_entities_total",
		"Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity " +
			"types are either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
		metrics.ALPHA, ""}, "queue", "event", "type")
	m.inflightEvents = m.gauges(what{subsystem, "inflight_events",
		"Number of events currently tracked in the scheduling queue.", metrics.ALPHA, ""}, "event")
	m.Goroutines = m.gauges(what{subsystem, "goroutines",
		"Number of running goroutines split by the work they do such as binding.", metrics.BETA, ""}, "operation")
	m.cacheSize = m.gauges(what{subsystem, "cache_size",
		"Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", metrics.ALPHA, ""}, "type")
	m.unschedulable = m.gauges(what{subsystem, "unschedulable_pods",
		"The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all " +
			"plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
		metrics.BETA, ""}, "plugin", "profile")
	m.ClaimCreates = m.counters(what{deviceSubsystem, "resourceclaim_creates_total",
		"Number of ResourceClaims creation requests, categorized by creation status, admin access, and owning API " +
			"group and kind (either Pod or scheduling.k8s.io/PodGroup)",
		metrics.ALPHA, ""}, "status", "admin_access", "owner_api_group", "owner_api_kind")
	m.victims = m.histogram(what{subsystem, "preemption_victims",
		"Number of selected preemption victims for preemption initiated by a single pod", metrics.STABLE, ""},
		buckets{1, 2, 7})
	m.preemptions = m.counter(what{subsystem, "preemption_attempts_total",
		"Total preemption attempts in the cluster till now", metrics.STABLE, ""})
	m.EvictionTime = m.histograms(what{subsystem, "preemption_goroutines_duration_seconds",
		"Duration in seconds for running goroutines for the preemption.", metrics.ALPHA, "1.37.0"},
		buckets{0.01, 2, 20}, "result")
	m.Evictions = m.counters(what{subsystem, "preemption_goroutines_execution_total",
		"Number of preemption goroutines executed.", metrics.ALPHA, ""}, "result")
}

// upstreamUncounted makes the metrics whose subject does not exist here: they are there for dashboards, at zero where
// they have no labels.
func (m *Metrics) upstreamUncounted() {
	a := func(name, help string) what { return what{subsystem, name, help, metrics.ALPHA, ""} }
	m.histograms(what{subsystem, "permit_wait_duration_seconds", "Duration of waiting on permit.", metrics.BETA, ""},
		buckets{0.001, 2, 15}, "result")
	m.counters(a("batch_attempts_total", "Counts of results when we attempt to use batching."), "profile", "result")
	m.counters(a("batch_cache_flushed_total", "Counts of cache flushes by reason."), "profile", "reason")
	m.counters(a("batch_rescore_attempts_total", "Counts of rescore attempts during opportunistic batching."),
		"profile")
	m.histograms(a("batch_rescore_duration_seconds",
		"Latency for rescoring a node during opportunistic batching."), buckets{0.00001, 2, 12}, "profile")
	m.counters(a("pre_queueing_hint_evaluations_total",
		"Number of PreQueueingHint evaluations, labeled by plugin and result (all_pods or narrowed)."),
		"plugin", "result")
	m.histograms(a("get_node_hint_duration_seconds", "Latency for getting a node hint."), buckets{0.00001, 2, 12},
		"hinted", "profile")
	m.histograms(a("store_schedule_results_duration_seconds", "Latency for storing scheduling results."),
		buckets{0.00001, 2, 12}, "profile")
	m.counters(a("dra_bindingconditions_allocations_total",
		"Number of allocations using devices with BindingConditions, counted per driver per scheduling attempt"),
		"profile", "driver", "status")
	m.histograms(a("dra_bindingconditions_wait_duration_seconds",
		"Time in seconds spent waiting for BindingConditions to be satisfied during PreBind."), buckets{0.1, 2, 14},
		"profile", "driver", "status")
	m.counters(what{volumeSubsystem, "scheduling_stage_error_total", "Volume scheduling stage error count",
		metrics.ALPHA, ""}, "operation")
	m.counters(what{volumeSubsystem, "binder_cache_requests_total", "Total number for request volume binding cache",
		metrics.ALPHA, ""}, "operation")
}
