// SPDX-License-Identifier: Apache-2.0

package record

// Preemption is the preemption part of a decision that found no node.
type Preemption struct {
	// Node is the nominated node, empty if no pod is evicted; Victims are the pods evicted from it, the most
	// important first.
	Node    string   `json:"node,omitempty"`
	Victims []Victim `json:"victims,omitempty"`
	// Violations is the number of victims that a disruption budget protects.
	Violations int `json:"violations,omitempty"`
	// Nodes is the number of nodes on which evictions might have helped, Tried the number of these that were
	// simulated without the victims; for the others the amounts that pods hold decided.
	Nodes int `json:"nodes,omitempty"`
	Tried int `json:"tried,omitempty"`
	// Denominated are pods of lower priority that lost their nomination to the node.
	Denominated []PodRef `json:"denominated,omitempty"`
	// Others are the next best nodes, the cheapest first: they are computed on request, and not kept with decisions.
	Others []VictimNode `json:"others,omitempty"`
	// Message is why no pod is evicted.
	Message string `json:"message,omitempty"`

	// The rest is set if the search was by preemption units: when the preemptor is a gang, or victims may be gangs.

	// Units are the victims by the units that are evicted as a whole, in the order of Victims: gangs, and single
	// pods.
	Units []VictimUnit `json:"units,omitempty"`
	// Loss is the cost of the victims; nil if the unit only waits for pods that terminate already.
	Loss *UnitsLoss `json:"loss,omitempty"`
	// Unproved is the number of units that were not proved necessary (that the preemptor does not fit beside them),
	// because that would have taken too many simulations. All of them are in the way of the placement that was found.
	// Mostly 0.
	Unproved int `json:"unproved,omitempty"`
	// Considered are units of lower priority that stay, with the reasons; not all of them if there are many.
	Considered []VictimUnit `json:"considered,omitempty"`
	// Places are the nodes that are nominated for the pods of a gang; Node is the node of the first of them.
	Places []Nomination `json:"places,omitempty"`
	// Awaited are pods that terminate already and whose capacity suffices, so that no pod is evicted; not all of them
	// if there are many.
	Awaited []PodRef `json:"awaited,omitempty"`
	// Stuck are pods that are long past the end of their grace period: their capacity is not counted on. Not all of
	// them if there are many.
	Stuck []PodRef `json:"stuck,omitempty"`
	// Wasted is the number of pods that earlier evictions for the same gang or pod removed without effect: it was not
	// placed on any of their nodes.
	Wasted int `json:"wasted,omitempty"`
	// PausedUntil is the end of a preemption pause, because other pods took the capacity that evictions freed; 0 for
	// no pause.
	PausedUntil Time `json:"pausedUntil,omitempty"`
	// DelayedUntil is the end of the time that the unit waits for new nodes before pods are evicted for it; 0 for no
	// such time. A report shows all the same which pods would be evicted.
	DelayedUntil Time `json:"delayedUntil,omitempty"`

	// Elsewhere counts what was removed from the lists above because it is in namespaces that the reader may not see;
	// nil if nothing was removed.
	Elsewhere *Elsewhere `json:"elsewhere,omitempty"`
}

// Elsewhere counts, for each list of a Preemption, the items in namespaces that the reader may not see.
type Elsewhere struct {
	Victims     int `json:"victims,omitempty"`
	Denominated int `json:"denominated,omitempty"`
	Units       int `json:"units,omitempty"`
	Considered  int `json:"considered,omitempty"`
	Awaited     int `json:"awaited,omitempty"`
	Stuck       int `json:"stuck,omitempty"`
}

// OtherNamespace stands for the name of an object in a namespace that the reader may not see. It is no valid name.
const OtherNamespace = "(another namespace)"

// VictimCount returns the number of victims, including those in namespaces that the reader may not see.
func (p *Preemption) VictimCount() int {
	if p.Elsewhere == nil {
		return len(p.Victims)
	}
	return len(p.Victims) + p.Elsewhere.Victims
}

// VictimNode is another node on which evictions would free enough capacity, and why it is not chosen.
type VictimNode struct {
	Node       string `json:"node"`
	Victims    int    `json:"victims"`
	Violations int    `json:"violations,omitempty"`
	Highest    int32  `json:"highest"` // priority among the victims
	Why        string `json:"why"`
}

// VictimUnit is a preemption unit: the pods of a gang, or one pod.
type VictimUnit struct {
	// Name is namespace/name of the gang or the pod.
	Name string `json:"name"`
	// Gang is true for a gang.
	Gang bool `json:"gang,omitempty"`
	// Priority is the priority that protects it: the one that the gang declares, or the highest of its pods.
	Priority int32 `json:"priority"`
	Pods     int   `json:"pods"` // that hold capacity
	// Violations is the number of its pods that a disruption budget protects.
	Violations int `json:"violations,omitempty"`
	// Why is why it stays; empty for a victim.
	Why string `json:"why,omitempty"`
}

// Evicts reports whether pods are evicted, or awaited on a nominated node. A nil Preemption evicts none.
func (p *Preemption) Evicts() bool { return p != nil && p.Node != "" }

// AgreedVictims returns how many of the victims have declared that they may be evicted for gangs.
func (p *Preemption) AgreedVictims() (n int) {
	for i := range p.Victims {
		if p.Victims[i].Agreed {
			n++
		}
	}
	return n
}

// UnitsLoss is the cost of evicting units, in the order in which costs are compared (answer A11 of the gang rules).
type UnitsLoss struct {
	Violations int   `json:"violations"`
	Highest    int32 `json:"highest"` // priority among the victims
	Units      int   `json:"units"`
	Pods       int   `json:"pods"`
	// Oldest is the start of the victim that has run longest, 0 if none has started.
	Oldest Time `json:"oldest,omitempty"`
}

// Nomination is the nominated node of a pod.
type Nomination struct {
	Pod  PodRef `json:"pod"`
	Node string `json:"node"`
}

// Victim is a pod that is evicted so that another pod gets its capacity.
type Victim struct {
	Pod      PodRef `json:"pod"`
	Priority int32  `json:"priority"`
	// TurnedBack: the pod was decided and not bound yet. It is not deleted, but waits for a node again.
	TurnedBack bool `json:"turnedBack,omitempty"`
	// Going: the pod was being deleted already.
	Going bool `json:"going,omitempty"`
	// Shielded: a disruption budget protects it.
	Shielded bool `json:"shielded,omitempty"`
	// Agreed: the pod declares that it may be evicted for gangs, so that its eviction is none by priority.
	Agreed bool `json:"agreed,omitempty"`
}
