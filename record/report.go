// SPDX-License-Identifier: Apache-2.0

package record

// PodReport is the state of a pod, and why it is pending or on its node. Its figures on nodes are computed from the
// store at the time of the query, so they may be newer than Last.
type PodReport struct {
	// At is the time of the engine's last tick, to which every other time in the report is relative.
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Pod      PodRef `json:"pod"`
	// Gang is namespace/name of the gang that the pod declares.
	Gang string `json:"gang,omitempty"`
	// Group is namespace/name of the pod's group, if its pods are scheduled one by one.
	Group string `json:"group,omitempty"`
	// Profile is the pod's scheduler name.
	Profile  string `json:"profile"`
	Priority int32  `json:"priority"`
	Created  Time   `json:"created,omitempty"`

	// Where is the sub-queue that holds the pod; Gone if none does, as for a placed pod.
	Where SubQueue `json:"where"`
	// Since is when the pod entered its present state.
	Since Time `json:"since,omitempty"`
	// Node is the pod's node, empty while it waits.
	Node string `json:"node,omitempty"`
	// Assumed: Node is decided but not yet observed as bound.
	Assumed bool `json:"assumed,omitempty"`
	// Before is what must happen before the pod is bound: plugins for which it waits, or whose writes are in
	// progress.
	Before []string `json:"before,omitempty"`
	// Terminating pods hold their capacity until they are gone.
	Terminating bool `json:"terminating,omitempty"`
	// Nominated is the node on which capacity is being freed for the pod.
	Nominated string `json:"nominated,omitempty"`

	// Paused is set while scheduling is paused, so that the pod is not placed.
	Paused *Pause `json:"paused,omitempty"`

	// Attempts counts tries; Unschedulable and Errors count their results and determine the backoff.
	Attempts      int  `json:"attempts"`
	Unschedulable int  `json:"unschedulable,omitempty"`
	Errors        int  `json:"errors,omitempty"`
	BackoffUntil  Time `json:"backoffUntil,omitempty"`
	// FlushAt is when the pod is tried again without an event.
	FlushAt Time `json:"flushAt,omitempty"`

	// Gates are the scheduling gates of the pod; Gate is the plugin that keeps it out of the active queue.
	Gates []string `json:"gates,omitempty"`
	Gate  string   `json:"gate,omitempty"`

	// Requests are the amounts that the pod requests.
	Requests []ResourceAmount `json:"requests,omitempty"`

	// Last is the newest decision on the pod, nil if it has not been tried or the record is gone.
	Last *Decision `json:"last,omitempty"`
	// Evicted is the newest decision by which pods were evicted for the pod, if that is older than Last.
	Evicted *Decision `json:"evicted,omitempty"`
	// Fit is the present result of the filters. Nil for a pod that has a node, and for a pod of another scheduler.
	Fit *Fit `json:"fit,omitempty"`
	// Preemption is which pods the pod would evict if it were tried now, or why none; nil for a pod that fits, and
	// for a pod that never evicts.
	Preemption *Preemption `json:"preemption,omitempty"`
	// WaitsFor are the events that would wake the pod, by rejecting plugin.
	WaitsFor []WaitsFor `json:"waitsFor,omitempty"`
	// Moves are the latest moves of the pod in the queue, oldest first.
	Moves []QueueMove `json:"moves,omitempty"`

	// Only is the namespace to which the answer is limited, because the reader may not see others; empty for a whole
	// answer.
	Only string `json:"only,omitempty"`
}

// ResourceAmount is an amount of one resource: CPU in thousandths of a core, bytes, or a plain count.
type ResourceAmount struct {
	Resource string `json:"resource"`
	Value    int64  `json:"value"`
	// Overflowed amounts exceed int64; no node has enough for them.
	Overflowed bool `json:"overflowed,omitempty"`
}

// Fit is the result of the filters for one pod on all nodes.
type Fit struct {
	Nodes    int `json:"nodes"`
	Feasible int `json:"feasible"`
	// FeasibleExamples are up to three nodes that fit.
	FeasibleExamples []string `json:"feasibleExamples,omitempty"`
	// PreFilter and PreFilterReason are set if a plugin rejects the pod before any node is evaluated.
	PreFilter       string `json:"preFilter,omitempty"`
	PreFilterReason string `json:"preFilterReason,omitempty"`
	// Reasons count, for each plugin and reason, the nodes rejected: the most nodes first, then by plugin and reason.
	// A node with two reasons of one plugin counts in both.
	Reasons []Reason `json:"reasons,omitempty"`
	// Remedies are changes after which the pod would fit: the one that touches the fewest objects first.
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Remedy is one change after which at least one node would fit.
type Remedy struct {
	// Plugin is the plugin whose verdict would change.
	Plugin string `json:"plugin"`
	// Do is an instruction for users: "free 2 cores on node-7", "remove the taint dedicated=gpu from node-3".
	Do string `json:"do"`
	// Node is the nearest node, which the change concerns; empty if it concerns the pod or any node.
	Node string `json:"node,omitempty"`
	// Resource, Need, Free and Short are by how much the nearest node is too small.
	Resource string `json:"resource,omitempty"`
	Need     int64  `json:"need,omitempty"`
	Free     int64  `json:"free,omitempty"`
	Short    int64  `json:"short,omitempty"`
	// Nodes is the number of nodes that only this plugin rejects.
	Nodes int `json:"nodes,omitempty"`
	// Also are other plugins that reject the same nearest node: the change alone does not suffice there.
	Also []string `json:"also,omitempty"`
}

// WaitsFor lists the events of one plugin that would make the scheduler try the pod again.
type WaitsFor struct {
	Plugin string   `json:"plugin"`
	Events []string `json:"events"`
}

// NodeReport is the state of a node: its pods and their amounts.
type NodeReport struct {
	At            Time   `json:"at"`
	Revision      uint64 `json:"revision"`
	Name          string `json:"name"`
	Unschedulable bool   `json:"unschedulable,omitempty"`
	// Labels and Taints are sorted; a taint has the form key=value:Effect, as in kubectl.
	Labels    []Label         `json:"labels,omitempty"`
	Taints    []string        `json:"taints,omitempty"`
	Resources []NodeResource  `json:"resources"`
	PodCount  int             `json:"podCount"`
	Assumed   int             `json:"assumed"` // of PodCount: decided but not yet observed as bound
	Pods      []PodOnNode     `json:"pods,omitempty"`
	Ports     []string        `json:"ports,omitempty"` // used on the node: protocol/port or protocol/address:port
	Scores    []ScoreReadings `json:"scores,omitempty"`
}

// Label is a key with its value.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// NodeResource is the account of one resource of a node, in the units of ResourceAmount.
//
// Invariant: Requested = Confirmed + Assumed, and Free = Allocatable - Requested; Free is negative on an
// overcommitted node.
type NodeResource struct {
	Resource    string `json:"resource"`
	Allocatable int64  `json:"allocatable"`
	Confirmed   int64  `json:"confirmed"` // of pods observed as bound
	Assumed     int64  `json:"assumed"`   // of pods decided, not yet observed as bound
	Requested   int64  `json:"requested"`
	Free        int64  `json:"free"`
	// Scored is Requested with 100m CPU and 200 MiB for each container without a request; HasScored reports whether
	// this resource has such defaults (CPU and memory do).
	Scored    int64 `json:"scored,omitempty"`
	HasScored bool  `json:"hasScored,omitempty"`
}

// ScoreReadings is which number of NodeResource a scoring plugin reads.
type ScoreReadings struct {
	Plugin string `json:"plugin"`
	// Reads is "requested" or "scored".
	Reads string `json:"reads"`
	// Resources are the resources that the plugin weighs.
	Resources []string `json:"resources"`
}

// PodOnNode is one pod that holds capacity on a node.
type PodOnNode struct {
	Pod         PodRef           `json:"pod"`
	Assumed     bool             `json:"assumed,omitempty"`
	Terminating bool             `json:"terminating,omitempty"`
	Priority    int32            `json:"priority"`
	Holds       []ResourceAmount `json:"holds,omitempty"`
}

// QueueReport is the queue at one moment.
type QueueReport struct {
	At     Time        `json:"at"`
	Counts QueueCounts `json:"counts"`
	// Paused is set while scheduling is paused.
	Paused *Pause `json:"paused,omitempty"`
	// Entries are sorted: active in the order in which they will be tried, then in flight, backoff by its end,
	// unschedulable and gated by name.
	Entries []QueueEntry `json:"entries,omitempty"`
	// InFlightEvents is the number of events kept for the pods in flight; 0 if there are none.
	InFlightEvents int `json:"inFlightEvents,omitempty"`

	// Only is the namespace to which the entries are limited, because the reader may not see others; empty for a whole
	// answer.
	Only string `json:"only,omitempty"`
}

// QueueCounts counts pods per sub-queue.
type QueueCounts struct {
	Active        int `json:"active"`
	InFlight      int `json:"inflight"`
	Backoff       int `json:"backoff"`
	Unschedulable int `json:"unschedulable"`
	Gated         int `json:"gated"`
}

// QueueEntry is one waiting pod.
type QueueEntry struct {
	Pod PodRef `json:"pod"`
	// Gang is namespace/name of the gang whose pods wait together, and Members the UIDs of all of them; Pod is the
	// first of them.
	Gang     string   `json:"gang,omitempty"`
	Members  []string `json:"members,omitempty"`
	Where    SubQueue `json:"where"`
	Profile  string   `json:"profile,omitempty"`
	Priority int32    `json:"priority"`
	Attempts int      `json:"attempts"`
	// Since is when the pod last entered the queue; Created is its creation time.
	Since   Time `json:"since"`
	Created Time `json:"created,omitempty"`
	// Until is the end of the backoff, or of the longest wait in the unschedulable pods; 0 for none.
	Until Time `json:"until,omitempty"`
	// Plugins are those that rejected the pod at its last attempt, or gate it; sorted.
	Plugins []string `json:"plugins,omitempty"`
}

// Pause is a user's request that the scheduler place no pods.
type Pause struct {
	// Since is 0 if it is unknown.
	Since  Time   `json:"since,omitempty"`
	Reason string `json:"reason,omitempty"`
	// By is the user who requested it, if known.
	By string `json:"by,omitempty"`
}
