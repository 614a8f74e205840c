// SPDX-License-Identifier: Apache-2.0

package record

// GangReport answers "why does this gang wait" and "how does it stand".
type GangReport struct {
	At       Time   `json:"at"`
	Revision uint64 `json:"revision"` // of the store that was read
	Name     string `json:"name"`     // namespace/name
	// Source is how the gang is declared.
	Source string `json:"source"`
	// Quorum is how many pods must have a place for any to get one. Stated is false when nobody has said and it is
	// taken from the pods that are there.
	Quorum int  `json:"quorum"`
	Stated bool `json:"stated"`
	// OneByOne is true for a group whose pods are scheduled one by one: the report on each of them says why it waits.
	OneByOne bool `json:"oneByOne,omitempty"`
	// Desired is how many pods there shall be: as many as is stated, or as there are. Those beyond Quorum are extras.
	Desired int `json:"desired,omitempty"`
	// SparedFor is the first of the gangs whose best try found places that the extras must leave to them.
	SparedFor string `json:"sparedFor,omitempty"`
	// Bound pods are seen bound, Coming ones are decided, Waiting ones are neither.
	Bound   int `json:"bound"`
	Coming  int `json:"coming,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// Missing is how many pods more must come before the gang is tried.
	Missing  int   `json:"missing,omitempty"`
	Priority int32 `json:"priority"`

	// Where is the sub-queue that holds its waiting pods, Since when, and Attempts how often they were tried.
	Where        SubQueue `json:"where"`
	Since        Time     `json:"since,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	BackoffUntil Time     `json:"backoffUntil,omitempty"`
	// Gate keeps the gang from being tried, with its reason.
	Gate   string `json:"gate,omitempty"`
	Reason string `json:"reason,omitempty"`

	Pods []GangPod `json:"pods"`
	// Fit is what a search finds now; nil when nothing waits, or the gate is shut.
	Fit *GangFit `json:"fit,omitempty"`
	// Preemption is whom it would evict if it were tried now, or why nobody; nil when it fits, or never evicts anybody.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Last is the newest decision about it, nil when it has not been tried or the record is gone.
	Last *Decision `json:"last,omitempty"`
	// Evicted is the newest decision by which others were evicted for it, where that is an older one than Last.
	Evicted *Decision `json:"evicted,omitempty"`
	// Holds is the room held for this gang, HeldByOther that for another, which this one cannot have.
	Holds       *GangHold `json:"holds,omitempty"`
	HeldByOther *GangHold `json:"heldByOther,omitempty"`
	// PartialSince is since when some but not enough pods are bound, 0 when that is not so.
	PartialSince Time `json:"partialSince,omitempty"`
	// Estimate is when the gang may start, 0 when nothing tells, and Basis what that rests on.
	Estimate Time   `json:"estimate,omitempty"`
	Basis    string `json:"basis,omitempty"`
}

// GangPod is one pod of a gang.
type GangPod struct {
	Pod   PodRef `json:"pod"`
	State string `json:"state"` // bound, coming, waiting, gated, terminating
	// Node is where it is, or where the best try put it.
	Node string `json:"node,omitempty"`
	Note string `json:"note,omitempty"`
}

// GangFit is what a search for places finds.
type GangFit struct {
	// Verdict is "placed" when it would be placed now.
	Verdict string `json:"verdict"`
	Placed  int    `json:"placed"` // in the best try
	Needed  int    `json:"needed"`
	Tried   int    `json:"tried"` // searches for a node of one pod
	// Blocked is the first pod without a place, and Message why.
	Blocked string   `json:"blocked,omitempty"`
	Message string   `json:"message,omitempty"`
	Proof   string   `json:"proof,omitempty"`
	Domains []string `json:"domains,omitempty"`
}

// GangHold is room held for a blocked gang.
type GangHold struct {
	Gang  string   `json:"gang"`
	Pods  int      `json:"pods"`
	Nodes []string `json:"nodes"` // sorted
	Since Time     `json:"since"`
	Until Time     `json:"until"`
}
