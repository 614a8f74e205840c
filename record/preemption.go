// SPDX-License-Identifier: Apache-2.0

package record

// Preemption is what a decision that found no node made of evicting pods.
type Preemption struct {
	// Node is the one that is nominated, empty when nobody is evicted; Victims are the pods that go from it, the most
	// important first.
	Node    string   `json:"node,omitempty"`
	Victims []Victim `json:"victims,omitempty"`
	// Violations are the victims that a disruption budget protects.
	Violations int `json:"violations,omitempty"`
	// Nodes is on how many nodes evictions might have helped, Tried how many of them were tried by supposing the pods
	// gone; on the others what pods hold told enough.
	Nodes int `json:"nodes,omitempty"`
	Tried int `json:"tried,omitempty"`
	// Denominated are pods of lower priority that do not count on the node any more.
	Denominated []PodRef `json:"denominated,omitempty"`
	// Message is why nobody is evicted.
	Message string `json:"message,omitempty"`
}

// Victim is a pod that goes so that another gets its room.
type Victim struct {
	Pod      PodRef `json:"pod"`
	Priority int32  `json:"priority"`
	// TurnedBack: the pod was decided and not bound yet. It is not deleted; it waits for a place again.
	TurnedBack bool `json:"turnedBack,omitempty"`
	// Going: the pod was being deleted already.
	Going bool `json:"going,omitempty"`
}
