// SPDX-License-Identifier: Apache-2.0

package record

// WhatIf answers "would it get a place if". Nothing was changed to find that out.
type WhatIf struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	// Pod or Gang (namespace/name) is what is asked about.
	Pod      *PodRef `json:"pod,omitempty"`
	Gang     string  `json:"gang,omitempty"`
	Priority int32   `json:"priority"`
	// If are the conditions, in the order in which they were supposed.
	If []Supposed `json:"if"`
	// Now is how it stands, Then how it would stand under all the conditions, were it tried next.
	Now  Prospect `json:"now"`
	Then Prospect `json:"then"`
	// Moved is what becomes of the pods that the conditions take from their nodes; nil when they take none.
	Moved *Moved `json:"moved,omitempty"`
	// Notes say what the answer leaves out.
	Notes []string `json:"notes,omitempty"`
}

// Supposed is one condition and what it does.
type Supposed struct {
	// If is the condition with all names in full.
	If string `json:"if"`
	// Does says for people what changes.
	Does string `json:"does"`
	// Leave are the pods that leave their nodes for it, Stay those on the node that do not, because they belong to it.
	Leave int `json:"leave,omitempty"`
	Stay  int `json:"stay,omitempty"`
	// Nodes are the nodes that it adds; not all of them where there are many.
	Nodes []string `json:"nodes,omitempty"`
	Added int      `json:"added,omitempty"`
}

// Outcome is how what is asked about stands in a WhatIf.
type Outcome string

// The outcomes.
const (
	HasPlace   Outcome = "has-place"  // it is on a node, or its gang is
	Fits       Outcome = "fits"       // it would get a place
	FitsEvict  Outcome = "fits-evict" // it would get a place once others are evicted
	FitsNot    Outcome = "fits-not"   // it waits
	MayNot     Outcome = "may-not"    // it is not tried: a gate keeps it
	Unanswered Outcome = "unanswered" // judging it failed
	NoneLeft   Outcome = "none-left"  // the conditions leave nothing of it that waits
	NotOurs    Outcome = "not-ours"   // it asks for another scheduler
)

// Prospect is how a pod or a gang stands.
type Prospect struct {
	Outcome Outcome `json:"outcome"`
	// Node is where a pod is, or would go; where others are evicted, from which node.
	Node string `json:"node,omitempty"`
	// Places are where the pods of a gang would go.
	Places []Nomination `json:"places,omitempty"`
	// Fit is what the filters say of a pod, Gang what the search says of a gang.
	Fit  *Fit     `json:"fit,omitempty"`
	Gang *GangFit `json:"gang,omitempty"`
	// Preemption is whom it would evict, or why nobody; nil where it needs to evict nobody, or its profile never does.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Reason is why it is not tried, or what failed.
	Reason string `json:"reason,omitempty"`
}

// Moved is what becomes of pods that were taken from their nodes. A controller makes most of them again, and those are
// tried: of higher priority before what is asked about, the others after it.
type Moved struct {
	// Pods are all that leave; Lost of them nobody makes again.
	Pods int `json:"pods"`
	Lost int `json:"lost,omitempty"`
	// Strangers of them are made again and are placed by other schedulers, so they are not judged.
	Strangers int `json:"strangers,omitempty"`
	// Tried of them were judged, one by one: First of these before what is asked about, and Fit of them found a place.
	Tried int `json:"tried"`
	First int `json:"first,omitempty"`
	Fit   int `json:"fit"`
	// Blocked are pods that found none, with why; not all of them where there are many.
	Blocked []BlockedPod `json:"blocked,omitempty"`
}

// BlockedPod is a pod without a place.
type BlockedPod struct {
	Pod     PodRef `json:"pod"`
	Message string `json:"message"`
}

// Refusal is why a question has no answer.
type Refusal struct {
	// Missing tells that something that a condition names is not there, About that what is asked about is not; with
	// neither the question itself cannot be read.
	Missing, About bool
	Message        string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }
