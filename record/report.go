// SPDX-License-Identifier: Apache-2.0

package record

// PodReport answers "why is this pod pending" or "why is it here". What it says about nodes is computed from the store
// at the moment of asking, so it may be newer than Last.
type PodReport struct {
	// At is the time of the engine's last tick; every other time in the report compares with it.
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Pod      PodRef `json:"pod"`
	// Gang is namespace/name of the gang that the pod says it is in.
	Gang string `json:"gang,omitempty"`
	// Group is the pod group whose pods are scheduled one by one that the pod is in, namespace/name.
	Group string `json:"group,omitempty"`
	// Profile is the scheduler name the pod asks for.
	Profile  string `json:"profile"`
	Priority int32  `json:"priority"`
	Created  Time   `json:"created,omitempty"`

	// Where is the sub-queue that holds the pod; Gone when none does, as for a placed pod.
	Where SubQueue `json:"where"`
	// Since is when the pod came to where it is.
	Since Time `json:"since,omitempty"`
	// Node is where the pod is, empty while it waits.
	Node string `json:"node,omitempty"`
	// Assumed tells that Node is decided but not yet seen bound.
	Assumed bool `json:"assumed,omitempty"`
	// Before is what must happen before the pod is bound: plugins that it waits for, or whose writes are on the way.
	Before []string `json:"before,omitempty"`
	// Terminating pods keep their room until they are gone.
	Terminating bool `json:"terminating,omitempty"`
	// Nominated is the node that is being freed for the pod.
	Nominated string `json:"nominated,omitempty"`

	// Paused is set while the scheduler is paused, and so does not place the pod.
	Paused *Pause `json:"paused,omitempty"`

	// Attempts counts tries; Unschedulable and Errors count how they ended and set the backoff.
	Attempts      int  `json:"attempts"`
	Unschedulable int  `json:"unschedulable,omitempty"`
	Errors        int  `json:"errors,omitempty"`
	BackoffUntil  Time `json:"backoffUntil,omitempty"`
	// FlushAt is when the pod is tried again though nothing woke it.
	FlushAt Time `json:"flushAt,omitempty"`

	// Gates are the scheduling gates of the pod; Gate is the plugin that keeps it out of the active queue.
	Gates []string `json:"gates,omitempty"`
	Gate  string   `json:"gate,omitempty"`

	// Requests are what the pod asks of a node.
	Requests []ResourceAmount `json:"requests,omitempty"`

	// Last is the newest decision about the pod, nil when it has not been tried or the record is gone.
	Last *Decision `json:"last,omitempty"`
	// Evicted is the newest decision by which others were evicted for the pod, where that is an older one than Last.
	Evicted *Decision `json:"evicted,omitempty"`
	// Fit is what the filters say now. Nil for a pod that has a node, and for one of a foreign scheduler.
	Fit *Fit `json:"fit,omitempty"`
	// Preemption is whom the pod would evict if it were tried now, or why nobody; nil for a pod that fits, and where
	// nobody is evicted for it.
	Preemption *Preemption `json:"preemption,omitempty"`
	// WaitsFor are the events that would wake the pod, by rejecting plugin.
	WaitsFor []WaitsFor `json:"waitsFor,omitempty"`
	// Moves are the latest steps of the pod through the queue, oldest first.
	Moves []QueueMove `json:"moves,omitempty"`
}

// ResourceAmount is an amount of one resource: CPU in thousandths of a core, bytes, or a plain count.
type ResourceAmount struct {
	Resource string `json:"resource"`
	Value    int64  `json:"value"`
	// Overflowed amounts are too large to count; no node is large enough for them.
	Overflowed bool `json:"overflowed,omitempty"`
}

// Fit is what the filters say of one pod and every node.
type Fit struct {
	Nodes    int `json:"nodes"`
	Feasible int `json:"feasible"`
	// FeasibleExamples are up to three nodes that fit.
	FeasibleExamples []string `json:"feasibleExamples,omitempty"`
	// PreFilter and PreFilterReason are set when a plugin rejects the pod before any node is looked at.
	PreFilter       string `json:"preFilter,omitempty"`
	PreFilterReason string `json:"preFilterReason,omitempty"`
	// Reasons count, for each plugin and reason, the nodes rejected: the most nodes first, then by plugin and reason.
	// A node with two reasons of one plugin counts in both.
	Reasons []Reason `json:"reasons,omitempty"`
	// Remedies say what would make the pod fit: the one that touches the fewest things first.
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Remedy is one change after which at least one node would take the pod.
type Remedy struct {
	// Plugin is the one that would change its mind.
	Plugin string `json:"plugin"`
	// Do says it for people, in the imperative: "free 2 cores on node-7", "remove the taint dedicated=gpu from node-3".
	Do string `json:"do"`
	// Node is the nearest node, the one that the change is about; empty when it is about the pod or any node.
	Node string `json:"node,omitempty"`
	// Resource, Need, Free and Short say by how much the nearest node is too small.
	Resource string `json:"resource,omitempty"`
	Need     int64  `json:"need,omitempty"`
	Free     int64  `json:"free,omitempty"`
	Short    int64  `json:"short,omitempty"`
	// Nodes is how many nodes this plugin alone keeps away from the pod.
	Nodes int `json:"nodes,omitempty"`
	// Also are other plugins that reject the same nearest node: the change alone is not enough there.
	Also []string `json:"also,omitempty"`
}

// WaitsFor lists the events for which one plugin would let the pod be tried again.
type WaitsFor struct {
	Plugin string   `json:"plugin"`
	Events []string `json:"events"`
}

// NodeReport answers "what is on this node and how full is it".
type NodeReport struct {
	At            Time   `json:"at"`
	Revision      uint64 `json:"revision"`
	Name          string `json:"name"`
	Unschedulable bool   `json:"unschedulable,omitempty"`
	// Labels and Taints are sorted; a taint reads key=value:Effect, as kubectl shows it.
	Labels    []Label         `json:"labels,omitempty"`
	Taints    []string        `json:"taints,omitempty"`
	Resources []NodeResource  `json:"resources"`
	PodCount  int             `json:"podCount"`
	Assumed   int             `json:"assumed"` // how many of PodCount are decided but not yet seen bound
	Pods      []PodOnNode     `json:"pods,omitempty"`
	Ports     []string        `json:"ports,omitempty"` // taken on the node: protocol/port or protocol/address:port
	Scores    []ScoreReadings `json:"scores,omitempty"`
}

// Label is a key with its value.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// NodeResource is one row of a node's accounts, in the units of ResourceAmount.
//
// Requested = Confirmed + Assumed, and Free = Allocatable - Requested; Free is negative on a node that was oversold.
type NodeResource struct {
	Resource    string `json:"resource"`
	Allocatable int64  `json:"allocatable"`
	Confirmed   int64  `json:"confirmed"` // of pods seen bound
	Assumed     int64  `json:"assumed"`   // of pods decided, not yet seen bound
	Requested   int64  `json:"requested"`
	Free        int64  `json:"free"`
	// Scored is Requested with 100m CPU and 200 MiB for each container that states no request; HasScored tells
	// whether this resource has such defaults (CPU and memory do).
	Scored    int64 `json:"scored,omitempty"`
	HasScored bool  `json:"hasScored,omitempty"`
}

// ScoreReadings tells which number of NodeResource a scoring plugin reads.
type ScoreReadings struct {
	Plugin string `json:"plugin"`
	// Reads is "requested" or "scored".
	Reads string `json:"reads"`
	// Resources are those that the plugin weighs.
	Resources []string `json:"resources"`
}

// PodOnNode is one pod that holds room on a node.
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
	// Paused is set while the scheduler is paused, and so places nothing.
	Paused *Pause `json:"paused,omitempty"`
	// Entries are sorted: active in the order in which they will be tried, then in flight, backoff by its end,
	// unschedulable and gated by name.
	Entries []QueueEntry `json:"entries,omitempty"`
	// InFlightEvents is how many events are kept for the pods in flight; 0 when none is.
	InFlightEvents int `json:"inFlightEvents,omitempty"`
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
	// first.
	Gang     string   `json:"gang,omitempty"`
	Members  []string `json:"members,omitempty"`
	Where    SubQueue `json:"where"`
	Profile  string   `json:"profile,omitempty"`
	Priority int32    `json:"priority"`
	Attempts int      `json:"attempts"`
	// Since is when the pod was last put into the queue; Created is when it was made.
	Since   Time `json:"since"`
	Created Time `json:"created,omitempty"`
	// Until is the end of the backoff, or of the longest wait in the unschedulable pods; 0 when there is none.
	Until Time `json:"until,omitempty"`
	// Plugins rejected the pod at its last attempt, or gate it; sorted.
	Plugins []string `json:"plugins,omitempty"`
}

// Pause is a wish of a person that the scheduler place nothing.
type Pause struct {
	// Since is 0 when it is not known.
	Since  Time   `json:"since,omitempty"`
	Reason string `json:"reason,omitempty"`
	// By is who asked, as far as it is known.
	By string `json:"by,omitempty"`
}
