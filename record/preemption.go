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
	// Others are the next best nodes, the cheapest first: they are found when somebody asks, and not kept with
	// decisions.
	Others []VictimNode `json:"others,omitempty"`
	// Message is why nobody is evicted.
	Message string `json:"message,omitempty"`

	// The rest is set where the search went by units: when a gang makes room, or gangs may have to.

	// Units are the victims as they go together, in the order of Victims: whole gangs, and pods by themselves.
	Units []VictimUnit `json:"units,omitempty"`
	// Loss is what they cost; nil where units only wait for those that go already.
	Loss *UnitsLoss `json:"loss,omitempty"`
	// Unproved is of how many of the units it was not shown that the preemptor does not fit beside them: that would
	// have taken too many dry runs. They are all in the way of the places that were found. Mostly 0.
	Unproved int `json:"unproved,omitempty"`
	// Considered are units of lower priority that stay, with why; not all of them where there are many.
	Considered []VictimUnit `json:"considered,omitempty"`
	// Places are the nodes that are nominated for the pods of a gang; Node is that of the first of them.
	Places []Nomination `json:"places,omitempty"`
	// Awaited are pods that go already and whose room is enough, so that nobody is evicted; not all where there are
	// many.
	Awaited []PodRef `json:"awaited,omitempty"`
	// Stuck are pods that should be gone for long and are not: their room is not counted on. Not all where there are
	// many.
	Stuck []PodRef `json:"stuck,omitempty"`
	// Wasted counts the pods that were evicted for the same gang or pod before, in vain: it did not get a place on
	// any of their nodes.
	Wasted int `json:"wasted,omitempty"`
	// PausedUntil is until when nobody is evicted for it, because room that was made for it went to others; 0 for no
	// such time.
	PausedUntil Time `json:"pausedUntil,omitempty"`
}

// VictimNode is a node on which evictions would make room too, and why it is not taken.
type VictimNode struct {
	Node       string `json:"node"`
	Victims    int    `json:"victims"`
	Violations int    `json:"violations,omitempty"`
	Highest    int32  `json:"highest"` // priority among the victims
	Why        string `json:"why"`
}

// VictimUnit is what goes together or stays together: the pods of a gang, or one pod.
type VictimUnit struct {
	// Name is namespace/name of the gang or the pod.
	Name string `json:"name"`
	// Gang tells that it is a gang.
	Gang bool `json:"gang,omitempty"`
	// Priority is what protects it: what the gang declares, or the highest of its pods.
	Priority int32 `json:"priority"`
	Pods     int   `json:"pods"` // that hold room
	// Violations are those of its pods that a disruption budget protects.
	Violations int `json:"violations,omitempty"`
	// Why says why it stays; empty for a victim.
	Why string `json:"why,omitempty"`
}

// Evicts reports whether somebody goes, or is waited for on a node that is nominated; nobody does where it is nil.
func (p *Preemption) Evicts() bool { return p != nil && p.Node != "" }

// UnitsLoss is what evictions in units cost, in the order in which losses are compared (answer A11 of the gang rules).
type UnitsLoss struct {
	Violations int   `json:"violations"`
	Highest    int32 `json:"highest"` // priority among the victims
	Units      int   `json:"units"`
	Pods       int   `json:"pods"`
	// Oldest is when the victim that has run longest started, 0 for not yet.
	Oldest Time `json:"oldest,omitempty"`
}

// Nomination is the node on which a pod counts.
type Nomination struct {
	Pod  PodRef `json:"pod"`
	Node string `json:"node"`
}

// Victim is a pod that goes so that another gets its room.
type Victim struct {
	Pod      PodRef `json:"pod"`
	Priority int32  `json:"priority"`
	// TurnedBack: the pod was decided and not bound yet. It is not deleted; it waits for a place again.
	TurnedBack bool `json:"turnedBack,omitempty"`
	// Going: the pod was being deleted already.
	Going bool `json:"going,omitempty"`
	// Shielded: a disruption budget protects it.
	Shielded bool `json:"shielded,omitempty"`
}
