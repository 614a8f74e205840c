// SPDX-License-Identifier: Apache-2.0

package metrics

// Difference is a metric that upstream has, too, and counts in another way.
type Difference struct {
	Name string
	// Why says what differs, for people.
	Why string
}

// Differences are all of them. There is none in names, types, labels, buckets, help and stability levels.
var Differences = []Difference{
	{"scheduler_inflight_events", "one label, all; upstream has one for each kind of event"},
	{"scheduler_event_handling_duration_seconds", "an event that is two changes at once counts its whole duration under both; what nobody here looks at is not watched, and so not counted"},
	{"scheduler_queue_incoming_pods_total",
		"a waiting pod that another scheduler binds is not woken by its own bind before it is removed"},
	{"scheduler_queue_incoming_entities_total",
		"counts a pod that an event makes active at once, whatever its backoff; upstream does not"},
	{"scheduler_framework_extension_point_duration_seconds", "PreEnqueue, Permit, PostBind, Unreserve and Sign are no steps here; Filter and Score also cover what is kept from earlier decisions"},
	{"scheduler_plugin_execution_duration_seconds", "plugins whose answers are kept are measured when they work, which is not in each cycle; the status is always Success; a plugin filters and scores all nodes at once, so one value covers them all"},
	{"scheduler_plugin_evaluation_total", "counts when a plugin works: once for all nodes where upstream counts each node, and not at all where its answers are kept"},
	{"scheduler_queueing_hint_execution_duration_seconds", "hints of one in ten events, at most 64 of one event; upstream measures all"},
	{"scheduler_goroutines", "operations binding, prebinding and DefaultPreemption only: a decision is made by one goroutine"},
	{"scheduler_permit_wait_duration_seconds", "never counted: no plugin has Permit"},
	{"scheduler_preemption_victims",
		"counts the victims of a gang, too; upstream counts these in a metric of the gate GenericWorkload"},
	{"scheduler_preemption_goroutines_duration_seconds",
		"from the decision until the last victim is deleted; upstream's begins when a goroutine does"},
	{"scheduler_batch_attempts_total", "never counted: pods that are alike share what is kept of a class, which is no batch that can be missed"},
	{"scheduler_batch_cache_flushed_total", "never counted, as above"},
	{"scheduler_batch_rescore_attempts_total", "never counted, as above"},
	{"scheduler_batch_rescore_duration_seconds", "never counted, as above"},
	{"scheduler_pre_queueing_hint_evaluations_total", "never counted: the gate SchedulerPreQueueingHints is off"},
	{"scheduler_get_node_hint_duration_seconds", "never counted, as above"},
	{"scheduler_store_schedule_results_duration_seconds", "never counted, as above"},
	{"scheduler_dra_bindingconditions_allocations_total", "never counted: a wait for devices is not told apart by driver"},
	{"scheduler_dra_bindingconditions_wait_duration_seconds", "never counted, as above"},
	{"scheduler_volume_scheduling_stage_error_total", "never counted: an error of a volume is one of the pod's attempt, and counted there"},
	{"scheduler_volume_binder_cache_requests_total", "never counted: there is no such cache"},
}
