// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// SubQueue is where a pod waits.
type SubQueue string

// The sub-queues.
const (
	Active        SubQueue = "active"
	Backoff       SubQueue = "backoff"       // after a rejection
	ErrorBackoff  SubQueue = "error backoff" // after an error
	Unschedulable SubQueue = "unschedulable"
	Gated         SubQueue = "gated"
	InFlight      SubQueue = "in flight"
)

// Place is where a pod is, with the counts that its next backoff depends on.
type Place struct {
	In SubQueue
	// Attempts, Rejected and Errors are upstream's Attempts, UnschedulableCount and
	// ConsecutiveErrorsCount. 0 for a pod in flight.
	Attempts, Rejected, Errors int
}

func (p Place) String() string {
	if p.In == "" {
		return "nowhere"
	}
	return fmt.Sprintf("%s (attempts %d, rejected %d, errors %d)", p.In, p.Attempts, p.Rejected, p.Errors)
}

// Size is what a pod counts on a node. The last two are with defaults for containers without requests.
type Size struct{ MilliCPU, Memory, Ephemeral, NonZeroCPU, NonZeroMemory int64 }

// Rejection is how an attempt ended. Without Plugins and Pending it was an error.
type Rejection struct {
	Plugins, Pending []string
	// Nominate is the node that the pod is promised from now on; "" drops what it was
	// promised before.
	Nominate string
}

// Queue is a scheduling queue under comparison.
type Queue interface {
	// NodeSet tells of an added (old nil) or updated node.
	NodeSet(old, node *v1.Node)
	NodeGone(node *v1.Node)
	// PodSet tells of an added (old nil) or updated pod, pending or bound.
	PodSet(old, pod *v1.Pod)
	PodGone(pod *v1.Pod)
	// ObjectSet tells of an added (old nil) or updated object; ObjectGone of a deleted one.
	ObjectSet(old, obj scenario.APIObject)
	ObjectGone(old scenario.APIObject)
	// Pop takes the next pod and returns its UID, or "" when none is ready.
	Pop() string
	// Size returns what a pod in flight will count on its node.
	Size(uid string) Size
	// Fail gives back a pod in flight. The pod is as the API has it now, or nil when
	// it is gone.
	Fail(uid string, now *v1.Pod, why Rejection)
	// SetHold opens or closes HoldGate; no event tells of it.
	SetHold(open bool)
	// Done ends the attempt of a pod in flight that is assumed and will be bound: it
	// is nominated no more.
	Done(uid string, now *v1.Pod)
	Activate(pods []*v1.Pod)
	// Advance moves the clock; never called with less than the time before.
	Advance(now time.Time)
	// Places returns UID -> place for every pod the queue knows.
	Places() map[string]Place
	// NominatedOn returns the UIDs of the pods nominated to a node, sorted.
	NominatedOn(node string) []string
	// Series returns the metrics of this queue since its start.
	Series() Series
	Close()
}
