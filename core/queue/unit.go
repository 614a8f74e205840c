// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Unit is what is scheduled as a whole: the pods of a gang that have no place yet, or a pod by itself, which is a
// gang of one. Outside this package its fields are only read, but for Members of a unit that Done let go and Requeue
// takes back.
type Unit struct {
	// Key is namespace/name, of the gang or the pod.
	Key string
	// Gang is zero for a pod by itself.
	Gang cluster.GangKey
	// Members are the pods as they were popped, in the order of compareMembers; a newer version seen in flight enters
	// with Requeue. Never empty.
	Members []*cluster.Pod
	// First and Joined are when the first and the last of the pods came.
	First, Joined record.Time

	// Attempts counts Pops.
	Attempts int
	// UnschedulableCount counts rejections; it never goes down. ErrorCount counts errors since the last rejection.
	// The backoff follows ErrorCount if there is one.
	UnschedulableCount, ErrorCount int
	// Since is the time of the last arrival: Add or Requeue (upstream: Timestamp).
	Since record.Time
	// FirstActive is when the unit first entered the active queue, 0 before; time behind a gate is not in it.
	FirstActive record.Time
	// BackoffUntil is when the backoff of the last failure ends, 0 for none.
	BackoffUntil record.Time

	// Plugins are those that rejected or gated the unit, sorted; Pending those that wait for something outside.
	Plugins, Pending []string
	// Gate is the plugin that keeps the unit out of the active queue, with its reason.
	Gate, GateReason string
	// memberGates are the plugins that keep single members of a gang back, sorted; see Admission.
	memberGates []string
	// Message is that of the last rejection.
	Message string
	// Aside is why the unit is set aside; empty when it is not.
	Aside string
	// Flushed tells that since its last attempt the unit was found to wait longer than the timeout.
	Flushed bool

	profile *profile
	seq     uint64 // of the last arrival; rises with Since
	turn    uint64 // among equals: seq, or for a gang its first
	urgent  bool   // see Queue.Hurry
	extra   bool   // see Gangs.Extra
	// declared: see Gangs.Priority.
	declared bool
	early    bool // in flight: it was popped before its backoff was over
	at       place
	sub      record.SubQueue // as last reported in a move
	pos      int             // in the heap of its place
	group    *group          // where it waits, or waited last
	alike    *alike          // those it waits among that are alike; nil while it waits in no group
	slot     int             // in alike.units
	marker   entry           // in the in-flight list

	rank *cluster.Pod // what stands for the unit in the order of the queue
	// oldest is when the oldest of the pods was created.
	oldest record.Time
	kinds  []*cluster.Pod // of a gang: a member of each spec
	ask    record.Time    // when its gate is to be asked again, 0 for no time

	// What happened in flight; nil before.
	next    map[cluster.UID]*cluster.Pod // member -> its newer version
	gone    map[cluster.UID]bool         // member -> it was deleted
	joining []*cluster.Pod               // pods that came to the gang
}

// place is where the queue holds a unit.
type place uint8

const (
	nowhere place = iota
	active
	backoff
	errorBackoff
	waiting // unschedulable or gated
	resting // see Rest
	aside
	inFlight
)

// Rejection is how an attempt ended.
type Rejection struct {
	// Plugins are those that rejected the unit; Pending those that wait for something outside and whose wake skips the
	// backoff. With neither the attempt failed for another reason and is repeated after a backoff, without an event.
	Plugins, Pending []string
	// Err marks an error whatever the plugins said.
	Err bool
	// Message is kept for people.
	Message string
}

// Pod is the unit's pod, the first of a gang.
func (u *Unit) Pod() *cluster.Pod { return u.Members[0] }

// UID is that of Pod.
func (u *Unit) UID() cluster.UID { return u.Members[0].UID }

// Priority is what the unit ranks as.
func (u *Unit) Priority() int32 { return u.rank.Spec.Priority }

// Extra tells that the unit's gang has what it needs without it.
func (u *Unit) Extra() bool { return u.extra }

// MemberGates are the plugins that keep single members of a gang back, as they were asked last; sorted.
func (u *Unit) MemberGates() []string { return u.memberGates }

// AskAt is when the gate of a gang is to be asked again, 0 for no time.
func (u *Unit) AskAt() record.Time { return u.ask }

// Early tells of a unit in flight that it was popped before its backoff was over.
func (u *Unit) Early() bool { return u.early }

// Resting tells that the unit backs off, and fits nowhere as far as the queue has heard; see Rest.
func (u *Unit) Resting() bool { return u.at == resting }

// hears reports whether events are put to the hints of the plugins that rejected the unit.
func (u *Unit) hears() bool { return u.at == waiting || u.at == resting }

// latest is the newest version known of a pod of the unit.
func (u *Unit) latest(uid cluster.UID) *cluster.Pod {
	if newer := u.next[uid]; newer != nil {
		return newer
	}
	if i := u.index(uid); i >= 0 {
		return u.Members[i]
	}
	for _, p := range u.joining {
		if p.UID == uid {
			return p
		}
	}
	panic(cluster.Broken("unit " + u.Key + " is asked for pod " + string(uid) + ", which it does not hold"))
}

// shown is the sub-queue that people see.
func (u *Unit) shown() record.SubQueue {
	switch u.at {
	case active:
		return record.Active
	case backoff, resting, errorBackoff:
		return record.Backoff
	case waiting:
		if u.Gate != "" {
			return record.Gated
		}
		return record.Unschedulable
	case aside:
		return record.Unschedulable
	case inFlight:
		return record.InFlight
	}
	return record.Gone
}

// failed reports whether the last attempt ended without a rejecting plugin.
func (u *Unit) failed() bool { return len(u.Plugins) == 0 && len(u.Pending) == 0 }

// setOf is a sorted copy without repeats, in the room of old.
func setOf(old, names []string) []string {
	set := append(old[:0], names...)
	slices.Sort(set)
	return slices.Compact(set)
}

// insert puts one name into a sorted set.
func insert(set []string, name string) []string {
	i, known := slices.BinarySearch(set, name)
	if known {
		return set
	}
	return slices.Insert(set, i, name)
}
