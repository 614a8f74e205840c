// SPDX-License-Identifier: Apache-2.0

package record

import "slices"

// Time is a moment in nanoseconds since the Unix epoch. core receives it only from ticks.
type Time int64

// Second is one second of Time.
const Second Time = 1_000_000_000

// PodRef identifies one pod for all time: its name may be used again, its UID may not.
type PodRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Key returns namespace/name.
func (r PodRef) Key() string { return r.Namespace + "/" + r.Name }

// SubQueue is where a unit waits.
type SubQueue string

// The states of a unit. Gone means that the queue no longer holds it.
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
	// Event is the label of the cause, as in upstream's queue_incoming_pods_total: UnscheduledPodAdd, NodeAdd,
	// AssignedPodDelete, ScheduleAttemptFailure, BackoffComplete, UnschedulableTimeout, ForceActivate and so on.
	Event string `json:"event"`
	// Hint is the plugin whose hint decided, empty if no hint was called.
	Hint string `json:"hint,omitempty"`
	// Cause is one sentence for users.
	Cause string `json:"cause,omitempty"`
}

// Reason counts the nodes that one plugin rejected for one reason.
type Reason struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
	// Unresolvable is the number of Nodes on which no eviction would help.
	Unresolvable int `json:"unresolvable,omitempty"`
	// Examples are up to three node names, in the order of rows.
	Examples []string `json:"examples,omitempty"`
}

// PluginScore is one plugin's contribution to a node's total score.
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

// Verdict is the result of an attempt.
type Verdict string

// The results of an attempt.
const (
	Placed        Verdict = "placed"        // a node was chosen
	DoesNotFit    Verdict = "unschedulable" // no node fits; events may change that
	AttemptFailed Verdict = "error"         // an internal error; tried again after a backoff
	SetAside      Verdict = "set-aside"     // handling the pod panicked; it waits until it changes
	// placed, and undone because another scheduler took the capacity; tried again at once
	Recalled Verdict = "recalled"
)

// Path is the algorithm by which a search evaluated the nodes. All have the same result; they differ in cost.
type Path string

// The paths, the cheapest first.
const (
	Ranked  Path = "ranked"  // no node was evaluated: the ranking for equivalent pods was reused
	Grouped Path = "grouped" // one node of each group was evaluated that the pod cannot distinguish
	Scanned Path = "scanned" // each node was evaluated, or each of those that the pod names
)

// GangPart is the part of a decision on a gang in the record of one of its pods.
type GangPart struct {
	Name   string `json:"name"`   // namespace/name
	Source string `json:"source"` // the API or annotation that declares it
	// Decision is the number of the decision on the gang, the same for all its pods.
	Decision uint64 `json:"decision"`
	// Quorum is the minimum number of pods with a node, Held the number that had one before, Members the number that
	// were tried and Placed the number that were placed: if the gang did not fit, in the best try.
	Quorum  int `json:"quorum"`
	Held    int `json:"held,omitempty"`
	Members int `json:"members"`
	Placed  int `json:"placed"`
	Tried   int `json:"tried,omitempty"` // searches for a node of one pod
	// Domains are the topology domains of the placement, or those that were tried.
	Domains []string `json:"domains,omitempty"`
	// Verdict is why the gang was not placed, in words, and Proof why it never will be.
	Verdict string `json:"verdict,omitempty"`
	Proof   string `json:"proof,omitempty"`
}

// Decision is one attempt to place one unit.
type Decision struct {
	// Number counts decisions since the start of the engine; it is the key of the random choice among ties.
	Number uint64 `json:"number"`
	// Instance is the local planner that decided, whose numbers and attempts are its own; empty for the loop.
	Instance string  `json:"instance,omitempty"`
	At       Time    `json:"at"`
	Revision uint64  `json:"revision"` // of the store the decision read
	Pod      PodRef  `json:"pod"`
	Profile  string  `json:"profile"`
	Attempt  int     `json:"attempt"`
	Verdict  Verdict `json:"verdict"`
	Nodes    int     `json:"nodes"`    // nodes in the cluster
	Feasible int     `json:"feasible"` // nodes that fit
	Tied     int     `json:"tied,omitempty"`
	// Path is how the nodes were evaluated; empty if none was.
	Path Path `json:"path,omitempty"`

	// Gang is set if the decision was on the pod's gang.
	Gang *GangPart `json:"gang,omitempty"`

	Winner   *Candidate `json:"winner,omitempty"`
	RunnerUp *Candidate `json:"runnerUp,omitempty"`
	// PreFilter is set if a plugin rejected the pod before any node was evaluated.
	PreFilter string   `json:"preFilter,omitempty"`
	Reasons   []Reason `json:"reasons,omitempty"`
	// Plugins are the rejecting plugins, sorted; their events wake the pod.
	Plugins []string `json:"plugins,omitempty"`
	// Message is the text of the event and of the PodScheduled condition.
	Message string `json:"message,omitempty"`
	// Preemption is set if no node fits and a search for victims was made.
	Preemption *Preemption `json:"preemption,omitempty"`
}

// Clone copies the parts that the engine may use again in its next Step.
func (d Decision) Clone() Decision {
	d.Winner, d.RunnerUp = d.Winner.clone(), d.RunnerUp.clone()
	d.Plugins = slices.Clone(d.Plugins)
	d.Reasons = slices.Clone(d.Reasons)
	for i := range d.Reasons {
		d.Reasons[i].Examples = slices.Clone(d.Reasons[i].Examples)
	}
	return d
}

func (c *Candidate) clone() *Candidate {
	if c == nil {
		return nil
	}
	out := *c
	out.Scores = slices.Clone(c.Scores)
	return &out
}
