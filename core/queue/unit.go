// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Unit is what is scheduled as a whole: the pods of a gang that have no node yet, or a single pod, which is a gang of
// one. Other packages only read its fields, except Members of a unit that Done removed and Requeue returns.
type Unit struct {
	// Key is namespace/name, of the gang or the pod.
	Key string // derived: the name of the gang or the pod
	// Gang is zero for a pod in no gang.
	Gang cluster.GangKey // kept
	// Members are the pods as they were popped, in the order of compareMembers; Requeue adopts newer versions that
	// were observed in flight. Invariant: never empty.
	Members []*cluster.Pod // kept
	// First and Joined are when the first and the last of the pods arrived.
	First, Joined record.Time // kept

	// Attempts counts Pops.
	Attempts int // kept
	// UnschedulableCount counts rejections; it never decreases. ErrorCount counts errors since the last rejection.
	// The backoff depends on ErrorCount unless that is 0.
	UnschedulableCount, ErrorCount int // kept
	// Since is the time of the last arrival: Add or Requeue (upstream: Timestamp).
	Since record.Time // kept
	// FirstActive is when the unit first entered the active queue, 0 before; time behind a gate is not in it.
	FirstActive record.Time // kept
	// BackoffUntil is when the backoff of the last failure ends, 0 for none.
	BackoffUntil record.Time // kept

	// Plugins are those that rejected or gated the unit, sorted; Pending those that wait for something outside the
	// scheduler.
	Plugins, Pending []string // kept
	// Gate is the plugin that keeps the unit out of the active queue, with its reason.
	Gate, GateReason string // kept
	// memberGates are the plugins that keep single members of a gang back, sorted; see Admission.
	memberGates []string // kept
	// Aside is why the unit is set aside; empty if it is not.
	Aside string // kept
	// Flushed: since its last attempt the unit was found to have waited longer than the timeout.
	Flushed bool // kept
	// flushedAt is when that was found last (upstream: FlushTimestamp); 0 for never.
	flushedAt record.Time // kept

	profile *profile // kept
	seq     uint64   // kept; of the last arrival; rises with Since
	turn    uint64   // kept; order among equals: seq, or for a gang its first seq
	urgent  bool     // kept; see Queue.SkipBackoff
	extra   bool     // kept; see Gangs.Extra
	// declared: see Gangs.Priority.
	declared bool            // kept
	early    bool            // derived: set by each attempt. In flight: it was popped before its backoff was over
	at       place           // kept
	sub      record.SubQueue // derived: follows from the place between attempts. As last reported in a move
	pos      int             // derived: its position in the heap of its place
	group    *group          // derived: follows from what rejected it. In which it waits, or waited last
	// alike are the indistinguishable units of its group; nil while it waits in no group.
	alike *alike // derived: as group
	slot  int    // derived: its position in alike.units
	// stateIndex is where the State that was taken last has the unit, from 1 on.
	stateIndex int   // derived: valid for one State
	marker     entry // derived: in no list between attempts

	rank *cluster.Pod // kept; its priority; represents the unit in the order of the queue
	// oldest is when the oldest of the pods was created.
	oldest record.Time // derived: from the members
	// kinds are, of a gang, a member of each spec; empty until oneOfEachSpec is called.
	kinds []*cluster.Pod // derived: from the members
	ask   record.Time    // kept; when its gate is to be checked again, 0 for no time
	// watched: see Queue.Watch. Invariant: it has plugins if and only if Queue.watched has the unit.
	watched WaitResult // kept

	// What happened in flight; nil if nothing did.
	next    map[cluster.UID]*cluster.Pod // derived: nil between attempts. Member -> its newer version
	gone    map[cluster.UID]bool         // derived: nil between attempts. Member -> it was deleted
	joining []*cluster.Pod               // derived: nil between attempts. Pods that joined the gang
}

// place is the state of a unit: the structure of the queue that holds it.
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
	// Plugins are those that rejected the unit; Pending those that wait for something outside the scheduler and whose
	// wake skips the backoff. With neither the attempt failed for another reason and is repeated after a backoff,
	// without an event.
	Plugins, Pending []string
	// Err marks an error regardless of the plugins.
	Err bool
	// Watched is what EndWatch returned for a unit that Done removed. Without it events may have been missed.
	Watched WaitResult
}

// Pod returns the unit's pod, the first one of a gang.
func (u *Unit) Pod() *cluster.Pod { return u.Members[0] }

// entity returns the unit as a Less sees it.
func (u *Unit) entity() plugin.QueuedEntity {
	return plugin.QueuedEntity{Pod: u.rank, Gang: u.Gang, Since: u.Since, FirstActive: u.FirstActive,
		BackoffUntil: u.BackoffUntil, Attempts: u.Attempts, Unschedulable: u.UnschedulableCount, Errors: u.ErrorCount,
		Plugins: u.Plugins, Pending: u.Pending, Gate: u.Gate}
}

// UID returns the UID of Pod.
func (u *Unit) UID() cluster.UID { return u.Members[0].UID }

// Priority returns the unit's priority in the queue.
func (u *Unit) Priority() int32 { return u.rank.Spec.Priority }

// Extra reports whether the unit's gang has its minimum without the unit, so that its pods are surplus members.
func (u *Unit) Extra() bool { return u.extra }

// MemberGates returns the plugins that kept single members of a gang back at the last check; sorted.
func (u *Unit) MemberGates() []string { return u.memberGates }

// AskAt returns when the gate of a gang is to be checked again, 0 for no time.
func (u *Unit) AskAt() record.Time { return u.ask }

// Early reports whether a unit in flight was popped before its backoff was over.
func (u *Unit) Early() bool { return u.early }

// Resting reports whether the unit backs off and fits no node as far as the queue knows; see Rest.
func (u *Unit) Resting() bool { return u.at == resting }

// receivesEvents reports whether events are passed to the hints of the plugins that rejected the unit.
func (u *Unit) receivesEvents() bool { return u.at == waiting || u.at == resting }

// latest returns the newest known version of a pod of the unit.
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

// shown returns the sub-queue that users see.
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

// setOf returns a sorted copy without repetitions, in the memory of old.
func setOf(old, names []string) []string {
	set := append(old[:0], names...)
	slices.Sort(set)
	return slices.Compact(set)
}

// insert adds one name to a sorted set.
func insert(set []string, name string) []string {
	i, known := slices.BinarySearch(set, name)
	if known {
		return set
	}
	return slices.Insert(set, i, name)
}

// changed updates what is derived from the members of a unit.
func (q *Queue) changed(u *Unit) {
	u.oldest = u.Members[0].Created
	if u.Gang == (cluster.GangKey{}) {
		u.rank = u.Members[0]
		q.reorder(u)
		return
	}
	for _, p := range u.Members[1:] {
		u.oldest = min(u.oldest, p.Created)
	}
	slices.SortFunc(u.Members, compareMembers)
	u.kinds = u.kinds[:0]
	rank, spec := *u.Members[0], *u.Members[0].Spec
	spec.Priority, u.declared = q.cfg.Gangs.Priority(u)
	rank.Spec = &spec
	u.rank, u.extra = &rank, q.cfg.Gangs.Extra(u)
	for _, p := range u.Members {
		q.nominated.rank(p, u.rankOf(p))
	}
	q.reorder(u)
}

// reorder moves a unit to its place among the others of its state.
func (q *Queue) reorder(u *Unit) {
	if h, ordered := q.holders[u.at].(*heap); ordered {
		h.fix(u)
	}
}

// compareMembers orders the pods of a unit: by priority, by age, by name (rule R13).
func compareMembers(a, b *cluster.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Spec.Priority, a.Spec.Priority),
		cmp.Compare(a.Created, b.Created),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// oneOfEachSpec returns the first member of each spec. It finds them at the first call after a change: they are not
// needed each time that a pod joins a large gang.
func (u *Unit) oneOfEachSpec() []*cluster.Pod {
	if len(u.kinds) == 0 {
		known := map[*cluster.PodSpec]bool{}
		for _, p := range u.Members {
			if !known[p.Spec] {
				known[p.Spec] = true
				u.kinds = append(u.kinds, p)
			}
		}
	}
	return u.kinds
}

// index returns the position of a pod among the members, -1 if it is none.
func (u *Unit) index(uid cluster.UID) int {
	return slices.IndexFunc(u.Members, func(p *cluster.Pod) bool { return p.UID == uid })
}

// gangName returns the gang's name in records, empty for a pod in no gang.
func (u *Unit) gangName() string {
	if u.Gang == (cluster.GangKey{}) {
		return ""
	}
	return u.Key
}

// rankOf returns the priority that a nominated pod of the unit has.
func (u *Unit) rankOf(p *cluster.Pod) int32 {
	if !u.declared {
		return p.Spec.Priority
	}
	return u.Priority()
}
