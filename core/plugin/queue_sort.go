// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// EntityLess is a Less that reads what the queue knows of pods and gangs. Its answers may contradict each other: then
// the order is any.
type EntityLess interface {
	Less
	// EntityBefore reports whether a goes before b. It is asked instead of Before.
	EntityBefore(a, b QueuedEntity) bool
}

// QueuedEntity is a pod or a gang in the queue.
type QueuedEntity struct {
	// Pod represents it: for a gang, the first member with the priority of the gang.
	Pod  *cluster.Pod
	Gang cluster.GangKey // zero for a pod in no gang
	// Since is the time of the last arrival, FirstActive when it first entered the active queue, and BackoffUntil when
	// its backoff ends; 0 for never.
	Since, FirstActive, BackoffUntil record.Time
	// Attempts, rejections, and errors since the last rejection.
	Attempts, Unschedulable, Errors int
	// Plugins rejected it, Pending of them wait for something outside of the scheduler, Gate holds it.
	Plugins, Pending []string
	Gate             string
}
