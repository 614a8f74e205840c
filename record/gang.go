// SPDX-License-Identifier: Apache-2.0

package record

// GangReport is the state of a gang and why it waits.
type GangReport struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Name     string `json:"name"`     // namespace/name
	// Source is the API or annotation that declares the gang.
	Source string `json:"source"`
	// Quorum is the minimum number of pods that must have a node before any is bound. Stated is false if it is not
	// declared but derived from the existing pods.
	Quorum int  `json:"quorum"`
	Stated bool `json:"stated"`
	// OneByOne is true for a group whose pods are scheduled one by one: the reports on the pods have the reasons.
	OneByOne bool `json:"oneByOne,omitempty"`
	// Desired is the desired number of pods: as declared, or as many as exist. Pods beyond Quorum are surplus
	// members.
	Desired int `json:"desired,omitempty"`
	// SparedFor is the first of the gangs to which surplus members must leave the nodes that its best try found.
	SparedFor string `json:"sparedFor,omitempty"`
	// Bound pods are observed as bound, Coming ones are decided, Waiting ones are neither.
	Bound   int `json:"bound"`
	Coming  int `json:"coming,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// Missing is the number of pods that must be created before the gang is tried.
	Missing  int   `json:"missing,omitempty"`
	Priority int32 `json:"priority"`

	// Where is the sub-queue of its waiting pods, Since its time of entry, and Attempts the number of tries.
	Where        SubQueue `json:"where"`
	Since        Time     `json:"since,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	BackoffUntil Time     `json:"backoffUntil,omitempty"`
	// Gate is the plugin that keeps the gang from being tried, with its reason.
	Gate   string `json:"gate,omitempty"`
	Reason string `json:"reason,omitempty"`

	Pods []GangPod `json:"pods"`
	// Fit is what a search finds now; nil if no pod waits, or the gate is closed.
	Fit *GangFit `json:"fit,omitempty"`
	// Preemption is which pods the gang would evict if it were tried now, or why none; nil if it fits, or never
	// evicts.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Last is the newest decision on the gang, nil if it has not been tried or the record is gone.
	Last *Decision `json:"last,omitempty"`
	// Evicted is the newest decision by which pods were evicted for the gang, if that is older than Last.
	Evicted *Decision `json:"evicted,omitempty"`
	// Holds is the capacity reserved for this gang, HeldByOther the capacity that another gang reserves.
	Holds       *GangHold `json:"holds,omitempty"`
	HeldByOther *GangHold `json:"heldByOther,omitempty"`
	// PartialSince is the time since which some pods are bound, but fewer than the quorum; 0 if that is not the case.
	PartialSince Time `json:"partialSince,omitempty"`
	// Estimate is when the gang may start, 0 if unknown, and Basis is the basis of the estimate.
	Estimate Time   `json:"estimate,omitempty"`
	Basis    string `json:"basis,omitempty"`

	// Only is the namespace to which the answer is limited, because the reader may not see others; empty for a whole
	// answer.
	Only string `json:"only,omitempty"`
}

// GangList is all gangs at one moment: those whose pods wait or have a node, and those that an object declares.
type GangList struct {
	At Time `json:"at"`
	// Counts are of all gangs, whatever Gangs lists.
	Counts GangCounts `json:"counts"`
	// Paused is set while scheduling is paused.
	Paused *Pause `json:"paused,omitempty"`
	// Gangs are sorted by namespace, name and source.
	Gangs []GangEntry `json:"gangs,omitempty"`

	// Only is the namespace to which the gangs are limited, because the reader may not see others; empty for a whole
	// answer.
	Only string `json:"only,omitempty"`
}

// GangCounts counts gangs.
type GangCounts struct {
	Gangs int `json:"gangs"`
	// Waiting gangs have pods without a node. Partial ones have some bound pods, but fewer than their minimum.
	Waiting int `json:"waiting"`
	Partial int `json:"partial"`
}

// GangEntry is the state of one gang, without a search for places. Fields mean what they mean in GangReport.
type GangEntry struct {
	Name         string   `json:"name"` // namespace/name
	Source       string   `json:"source"`
	Quorum       int      `json:"quorum"`
	Stated       bool     `json:"stated"`
	OneByOne     bool     `json:"oneByOne,omitempty"`
	Desired      int      `json:"desired,omitempty"`
	Bound        int      `json:"bound"`
	Coming       int      `json:"coming,omitempty"`
	Waiting      int      `json:"waiting,omitempty"`
	Missing      int      `json:"missing,omitempty"`
	Priority     int32    `json:"priority"`
	Where        SubQueue `json:"where"`
	Since        Time     `json:"since,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	BackoffUntil Time     `json:"backoffUntil,omitempty"`
	Gate         string   `json:"gate,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	PartialSince Time     `json:"partialSince,omitempty"`
	// Pod is the first of the waiting pods; nil if none waits, or they are scheduled one by one.
	Pod *PodRef `json:"pod,omitempty"`
	// Plugins are those that rejected the gang at its last attempt, or gate it; sorted.
	Plugins []string `json:"plugins,omitempty"`
	// Verdict is why the last attempt did not place the gang; empty if there was none, or the record is gone.
	Verdict string `json:"verdict,omitempty"`
	// Holds is the capacity reserved for the gang.
	Holds *GangHold `json:"holds,omitempty"`
}

// GangPod is one pod of a gang.
type GangPod struct {
	Pod   PodRef `json:"pod"`
	State string `json:"state"` // bound, coming, waiting, gated, terminating
	// Node is where the pod is, or where the best try placed it.
	Node string `json:"node,omitempty"`
	Note string `json:"note,omitempty"`
}

// GangFit is the result of a search for a placement.
type GangFit struct {
	// Verdict is "placed" if the gang would be placed now.
	Verdict string `json:"verdict"`
	Placed  int    `json:"placed"` // in the best try
	Needed  int    `json:"needed"`
	Tried   int    `json:"tried"` // searches for a node of one pod
	// Blocked is the first pod without a node, and Message the reason.
	Blocked string   `json:"blocked,omitempty"`
	Message string   `json:"message,omitempty"`
	Proof   string   `json:"proof,omitempty"`
	Domains []string `json:"domains,omitempty"`
}

// GangHold is capacity that is reserved for a blocked gang.
type GangHold struct {
	Gang  string   `json:"gang"`
	Pods  int      `json:"pods"`
	Nodes []string `json:"nodes"` // sorted
	Since Time     `json:"since"`
	Until Time     `json:"until"`
	// Start is the earliest start of the gang by the known ends of pods, 0 for unknown. Backfilled is how many pods
	// that end before it were placed on the capacity.
	Start      Time `json:"start,omitempty"`
	Backfilled int  `json:"backfilled,omitempty"`
}
