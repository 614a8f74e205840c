// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"fmt"
	"slices"
)

// Cause is why pods wait. The list is closed.
type Cause uint8

// The causes.
const (
	// Arrivals: no stage is at capacity; pods take their service time only.
	Arrivals Cause = iota
	WatchDelivery
	Plugin
	Hints
	Preemption
	GangSearch
	Intake
	Observers
	// SchedulerCPU is CPU time of the scheduling loop that is none of the kinds above.
	SchedulerCPU
	ForeignCode
	Lock
	GC
	CPUStarvation
	ClientLimit
	InFlightLimit
	DecidedAheadLimit
	APF
	APIServerCPU
	Etcd
	APILatency
	Prepare
	Backoff
	LostWakeUp
	Gate
	NoCapacity
	Victims
	SessionPeriod
	Pause

	// Causes is the number of causes.
	Causes = int(iota)
)

// cause has the texts of a Cause.
type cause struct {
	name, what, setting string
}

// of has the texts: Cause -> its texts.
var of = [Causes]cause{
	Arrivals: {"arrivals", "the scheduler waits for pods: no stage is at capacity",
		"none in the scheduler: what creates pods limits the rate"},
	WatchDelivery: {"watch-delivery", "the API server's watch delivers changes late",
		"CPU and watch cache of the API server, and the network to it"},
	Plugin: {"plugin", "a plugin uses the time of the scheduling loop",
		"disable the plugin, or use fewer constraints that it evaluates"},
	Hints: {"hints", "queueing hints use the time of the scheduling loop",
		"fewer waiting pods, or stricter events of custom plugins"},
	Preemption: {"preemption", "the search for victims uses the time of the scheduling loop",
		"preemptionPolicy: Never, or fewer priorities"},
	GangSearch: {"gang-search", "the search for places of gangs uses the time of the scheduling loop",
		"smaller gangs, or a smaller search budget"},
	Intake: {"intake", "changes of the cluster use the time of the scheduling loop",
		"fewer changes of nodes and pods per second"},
	Observers: {"observers", "recording uses the time of the scheduling loop",
		"--record: leave it out, or use a faster disk"},
	SchedulerCPU: {"scheduler-cpu", "the scheduling loop is busy with other work",
		"a faster CPU; kumiki profile top names functions"},
	ForeignCode: {"foreign-code", "the scheduling loop waits for extenders or hosted plugins",
		"make the extenders faster, or remove them from the configuration"},
	Lock: {"lock", "the scheduling loop waits for a lock",
		"none: report it, with the profile"},
	GC: {"gc", "garbage collection uses the CPU of the scheduler",
		"GOGC and GOMEMLIMIT of the scheduler"},
	CPUStarvation: {"cpu-starvation", "threads of the scheduler wait for a CPU",
		"CPU limit and request of the scheduler, or other load on its node"},
	ClientLimit: {"client-limit", "the rate limit of the scheduler's client delays requests",
		"clientConnection.qps and burst"},
	InFlightLimit: {"in-flight-limit", "the limit on binds in flight delays binds",
		"inFlightBinds in the pluginConfig Kumiki"},
	DecidedAheadLimit: {"decided-ahead-limit", "the limit on decisions without an outcome stops the loop",
		"none: the limit is fixed"},
	APF: {"apf", "requests wait in queues of API Priority and Fairness",
		"the PriorityLevelConfiguration that serves the scheduler"},
	APIServerCPU: {"api-server-cpu", "the API server has too little CPU",
		"CPU of the API server, or fewer requests of other clients"},
	Etcd: {"etcd", "etcd answers late",
		"disk and network of etcd"},
	APILatency: {"api-latency", "requests take long outside of the API server's handlers",
		"network and proxies between scheduler and API server"},
	Prepare: {"prepare", "volumes or devices of pods are not ready",
		"the volume controller, or the device driver"},
	Backoff: {"backoff", "pods that may fit wait for the end of their backoff",
		"podInitialBackoffSeconds and podMaxBackoffSeconds"},
	LostWakeUp: {"lost-wake-up", "pods wait although they may be tried and the loop is idle",
		"none: report it, with the profile"},
	Gate: {"gate", "scheduling gates or missing gang members keep pods out of the queue",
		"what removes the gates, or creates the members"},
	NoCapacity: {"no-capacity", "no node has capacity for the pods",
		"more nodes, or smaller requests; kumiki why POD has the reasons"},
	Victims: {"victims", "evicted pods do not terminate",
		"terminationGracePeriodSeconds and finalizers of the victims"},
	SessionPeriod: {"session-period", "pods wait for the next session",
		"sessionPeriod in the pluginConfig Kumiki"},
	Pause: {"pause", "scheduling is paused, or the process does not hold the lease",
		"kumiki resume, or the lease"},
}

// String returns the name, as in JSON.
func (c Cause) String() string {
	if int(c) < Causes {
		return of[c].name
	}
	return fmt.Sprintf("cause %d", c)
}

// What says in a sentence what the cause is.
func (c Cause) What() string { return of[c].what }

// Setting is what changes it.
func (c Cause) Setting() string { return of[c].setting }

// MarshalText returns the name. A cause that does not exist is an error.
func (c Cause) MarshalText() ([]byte, error) {
	if int(c) >= Causes {
		return nil, fmt.Errorf("%s does not exist", c)
	}
	return []byte(of[c].name), nil
}

// UnmarshalText accepts a name that String returns.
func (c *Cause) UnmarshalText(text []byte) error {
	i := slices.IndexFunc(of[:], func(one cause) bool { return one.name == string(text) })
	if i < 0 {
		return fmt.Errorf("cause %q does not exist", text)
	}
	*c = Cause(i)
	return nil
}
