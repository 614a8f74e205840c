// SPDX-License-Identifier: Apache-2.0

package record

// WhatIf is the answer to the question whether a pod or gang would be placed under conditions. Nothing is changed.
type WhatIf struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	// Pod or Gang (namespace/name) is the subject of the question.
	Pod      *PodRef `json:"pod,omitempty"`
	Gang     string  `json:"gang,omitempty"`
	Priority int32   `json:"priority"`
	// If are the conditions, in the order in which they were applied.
	If []Supposed `json:"if"`
	// Now is the present prospect, Then the prospect under all conditions, if the subject were tried next.
	Now  Prospect `json:"now"`
	Then Prospect `json:"then"`
	// Moved is what happens to the pods that the conditions remove from their nodes; nil if they remove none.
	Moved *Moved `json:"moved,omitempty"`
	// Notes are what the answer leaves out.
	Notes []string `json:"notes,omitempty"`

	// Only is the namespace to which the answer is limited, because the reader may not see others; empty for a whole
	// answer.
	Only string `json:"only,omitempty"`
}

// Supposed is one condition and its effect.
type Supposed struct {
	// If is the condition with all names in full.
	If string `json:"if"`
	// Does is what changes, in words.
	Does string `json:"does"`
	// Leave is the number of pods that leave their nodes, Stay of those that belong to the node and stay.
	Leave int `json:"leave,omitempty"`
	Stay  int `json:"stay,omitempty"`
	// Nodes are the nodes that it adds; not all of them if there are many.
	Nodes []string `json:"nodes,omitempty"`
	Added int      `json:"added,omitempty"`
}

// Outcome is the state of the subject of a WhatIf.
type Outcome string

// The outcomes.
const (
	HasPlace   Outcome = "has-place"  // it is on a node, or its gang is
	Fits       Outcome = "fits"       // it would be placed
	FitsEvict  Outcome = "fits-evict" // it would be placed after evictions
	FitsNot    Outcome = "fits-not"   // it waits
	MayNot     Outcome = "may-not"    // it is not tried: a gate holds it
	Unanswered Outcome = "unanswered" // judging it failed
	NoneLeft   Outcome = "none-left"  // the conditions leave no waiting pod of it
	NotOurs    Outcome = "not-ours"   // its scheduler name is another scheduler's
)

// Prospect is what would happen to a pod or a gang.
type Prospect struct {
	Outcome Outcome `json:"outcome"`
	// Node is where a pod is, or would be placed; with evictions, the node from which pods are evicted.
	Node string `json:"node,omitempty"`
	// Places are the nodes on which the pods of a gang would be placed.
	Places []Nomination `json:"places,omitempty"`
	// Fit is the result of the filters for a pod, Gang the result of the search for a gang.
	Fit  *Fit     `json:"fit,omitempty"`
	Gang *GangFit `json:"gang,omitempty"`
	// Preemption is which pods it would evict, or why none; nil if it needs no evictions, or its profile never
	// evicts.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Reason is why it is not tried, or what failed.
	Reason string `json:"reason,omitempty"`
}

// Moved is what happens to pods that were removed from their nodes. Controllers create most of them again, and those
// are tried: pods of higher priority before the subject of the question, the others after it.
type Moved struct {
	// Pods are all that leave; no controller creates the Lost ones again.
	Pods int `json:"pods"`
	Lost int `json:"lost,omitempty"`
	// These are created again and are placed by other schedulers, so they are not judged.
	OtherSchedulers int `json:"strangers,omitempty"`
	// Tried were judged, one by one: First of them before the subject of the question, and Fit of them were placed.
	Tried int `json:"tried"`
	First int `json:"first,omitempty"`
	Fit   int `json:"fit"`
	// Blocked are pods that were not placed, with the reasons; not all of them if there are many.
	Blocked []BlockedPod `json:"blocked,omitempty"`
	// BlockedElsewhere is the number of pods that were removed from Blocked because they are in namespaces that the
	// reader may not see.
	BlockedElsewhere int `json:"blockedElsewhere,omitempty"`
}

// BlockedPod is a pod that was not placed.
type BlockedPod struct {
	Pod     PodRef `json:"pod"`
	Message string `json:"message"`
}

// Refusal is why a question has no answer.
type Refusal struct {
	// Missing: an object that a condition names does not exist. About: the subject of the question does not exist.
	// Forbidden: the reader may not ask it. With none of them the question itself is invalid.
	Missing, About, Forbidden bool
	Message                   string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }
