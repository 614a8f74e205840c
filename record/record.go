// SPDX-License-Identifier: Apache-2.0

package record

// Time is a moment in nanoseconds since the Unix epoch. core gets it only from ticks.
type Time int64

// Second is one second of Time.
const Second Time = 1_000_000_000

// PodRef names one pod for good: the name may come again, the UID does not.
type PodRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Key is namespace/name.
func (r PodRef) Key() string { return r.Namespace + "/" + r.Name }

// SubQueue is where a unit waits.
type SubQueue string

// The places a unit can be in. Gone means that the queue no longer holds it.
const (
	Active        SubQueue = "active"
	Backoff       SubQueue = "backoff"
	Unschedulable SubQueue = "unschedulable"
	Gated         SubQueue = "gated"
	InFlight      SubQueue = "inflight"
	Gone          SubQueue = "gone"
)

// QueueMove is one step of a unit from one sub-queue to another.
type QueueMove struct {
	At  Time   `json:"at"`
	Pod PodRef `json:"pod"`
	// Gang is namespace/name of the gang whose unit moved; Pod is the first of its members then.
	Gang string   `json:"gang,omitempty"`
	From SubQueue `json:"from"`
	To   SubQueue `json:"to"`
	// Event is the label of what moved it, as in upstream's queue_incoming_pods_total: UnschedulablePodAdd, NodeAdd,
	// AssignedPodDelete, ScheduleAttemptFailure, BackoffComplete, UnschedulableTimeout, ForceActivate and so on.
	Event string `json:"event"`
	// Hint names the plugin whose answer decided, empty when none was asked.
	Hint string `json:"hint,omitempty"`
	// Cause is one sentence for people.
	Cause string `json:"cause,omitempty"`
}

// Reason counts the nodes that one plugin rejected for one reason.
type Reason struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
	// Unresolvable is how many of Nodes no eviction would help.
	Unresolvable int `json:"unresolvable,omitempty"`
	// Examples are up to three node names, in index order.
	Examples []string `json:"examples,omitempty"`
}

// PluginScore is one plugin's part in a node's total.
type PluginScore struct {
	Plugin string `json:"plugin"`
	Raw    int64  `json:"raw"`
	// Weighted is the normalised score (0..100) times the plugin's weight.
	Weighted int64 `json:"weighted"`
}

// Candidate is a node with its score.
type Candidate struct {
	Node   string        `json:"node"`
	Total  int64         `json:"total"`
	Scores []PluginScore `json:"scores,omitempty"`
}

// Verdict is how an attempt ended.
type Verdict string

// The ends of an attempt.
const (
	Placed        Verdict = "placed"        // a node was chosen
	DoesNotFit    Verdict = "unschedulable" // no node fits; events may change that
	AttemptFailed Verdict = "error"         // something broke; tried again after a backoff
	SetAside      Verdict = "set-aside"     // handling the pod panicked; it waits until it changes
	// placed, and taken back because someone else took the room; tried again at once
	Recalled Verdict = "recalled"
)

// Path is the way on which a search went over the nodes. All ways come to the same; they differ in what they cost.
type Path string

// The ways, the cheapest first.
const (
	Ranked  Path = "ranked"  // no node was looked at: pods like this one have them in order
	Grouped Path = "grouped" // a node of each group was looked at that the pod cannot tell apart
	Scanned Path = "scanned" // each node was looked at, or each of those that the pod names
)

// GangPart is a decision on a gang as the record of one of its pods tells of it.
type GangPart struct {
	Name   string `json:"name"`   // namespace/name
	Source string `json:"source"` // how it is declared
	// Decision is the number of the decision on the gang, the same for all its pods.
	Decision uint64 `json:"decision"`
	// Quorum is how many pods must have a place, Held how many had one before, Members how many were tried and Placed
	// how many found one: when the gang did not fit, in the best try.
	Quorum  int `json:"quorum"`
	Held    int `json:"held,omitempty"`
	Members int `json:"members"`
	Placed  int `json:"placed"`
	Tried   int `json:"tried,omitempty"` // searches for a node of one pod
	// Domains are the topology domains that the gang got or that were tried.
	Domains []string `json:"domains,omitempty"`
	// Verdict says in words why the gang has no places, and Proof why it never will.
	Verdict string `json:"verdict,omitempty"`
	Proof   string `json:"proof,omitempty"`
}

// Decision is one attempt to place one unit.
type Decision struct {
	// Number counts decisions since the start of the engine; it keys the draw among ties.
	Number   uint64  `json:"number"`
	At       Time    `json:"at"`
	Revision uint64  `json:"revision"` // of the store the decision read
	Pod      PodRef  `json:"pod"`
	Profile  string  `json:"profile"`
	Attempt  int     `json:"attempt"`
	Verdict  Verdict `json:"verdict"`
	Nodes    int     `json:"nodes"`    // nodes there were
	Feasible int     `json:"feasible"` // nodes that fit
	Tied     int     `json:"tied,omitempty"`
	// Path is how the nodes were looked at; empty when none was.
	Path Path `json:"path,omitempty"`

	// Gang is set when the pod was decided on as one of a gang.
	Gang *GangPart `json:"gang,omitempty"`

	Winner   *Candidate `json:"winner,omitempty"`
	RunnerUp *Candidate `json:"runnerUp,omitempty"`
	// PreFilter is set when a plugin rejected the pod before any node was looked at.
	PreFilter string   `json:"preFilter,omitempty"`
	Reasons   []Reason `json:"reasons,omitempty"`
	// Plugins are the rejecting plugins, sorted; their events wake the pod.
	Plugins []string `json:"plugins,omitempty"`
	// Message is the text of the event and of the PodScheduled condition.
	Message string `json:"message,omitempty"`
	// Preemption is set when the pod fits nowhere and pods were looked for that could make room.
	Preemption *Preemption `json:"preemption,omitempty"`
}
