// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Cause is the condition that an incident begins with.
type Cause string

// The causes.
const (
	SlowIteration  Cause = "slow-iteration"
	NoBinds        Cause = "no-binds"
	BindUnanswered Cause = "bind-unanswered"
	WatchLag       Cause = "watch-lag"
	APIUnanswered  Cause = "api-unanswered"
	LeaseUnrenewed Cause = "lease-unrenewed"
	LeaseLost      Cause = "lease-lost"
	Panic          Cause = "panic"
	Overcommitted  Cause = "overcommitted-node"
	GCPause        Cause = "gc-pause"
	ByHand         Cause = "by-hand"
)

// Causes are all causes.
var Causes = []Cause{SlowIteration, NoBinds, BindUnanswered, WatchLag, APIUnanswered, LeaseUnrenewed, LeaseLost, Panic,
	Overcommitted, GCPause, ByHand}

// texts are the causes in words: cause -> what happened.
var texts = map[Cause]string{
	SlowIteration:  "An iteration of the scheduling loop took too long.",
	NoBinds:        "Pods were ready to be scheduled or being bound, and no bind succeeded.",
	BindUnanswered: "The API server did not answer a bind.",
	WatchLag:       "The watch did not show a bind that the API server had confirmed.",
	APIUnanswered:  "The API server answered no request.",
	LeaseUnrenewed: "The leader did not renew its lease, although the API server answered other requests.",
	LeaseLost:      "The leader lost its lease, and the process ended.",
	Panic:          "A panic was contained while an object was handled.",
	Overcommitted:  "The pods of a node request more than the node has.",
	GCPause:        "The garbage collector stopped the process for too long.",
	ByHand:         "A user asked for a bundle.",
}

// Text returns the cause as a sentence; empty for an unknown one.
func (c Cause) Text() string { return texts[c] }

// Finding is one incident that was detected.
type Finding struct {
	Cause Cause
	At    record.Time
	// Took is the duration that exceeded its limit: of the iteration, since the last bind, since the bind was sent or
	// answered, since the last answer of the API server, since the lease was renewed, or of the pause. It is 0 for
	// causes without a duration.
	Took time.Duration
	// Detail names the object that it is about, such as a pod, or a count; may be empty.
	Detail string
}

// Limits are the durations from which on something is an incident.
type Limits struct {
	// APIUnanswered should be below WatchLag and Lease, which are also exceeded if no request is answered.
	Iteration, NoBinds, BindUnanswered, WatchLag, APIUnanswered, Lease, GCPause time.Duration
}

// DefaultLimits are the limits of a scheduler without sessions, with the usual periods of leader election: a leader
// ends when it has not renewed its lease for about 10 seconds.
var DefaultLimits = Limits{Iteration: 250 * time.Millisecond, NoBinds: 10 * time.Second,
	BindUnanswered: 30 * time.Second, WatchLag: 5 * time.Second, APIUnanswered: 4 * time.Second, Lease: 5 * time.Second,
	GCPause: 50 * time.Millisecond}
