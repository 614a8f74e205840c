// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Loss is what evictions cost, compared field by field in this order (upstream: preemption.go, pickOneNodeForPreemption).
type Loss struct {
	// Violations are the victims that a disruption budget protects.
	Violations int
	// Highest is the highest priority among the victims.
	Highest int32
	// Sum adds up the victims' priorities, each raised so that none is negative: otherwise a crowd of negative priority
	// would count as cheaper than one pod of it.
	Sum int64
	// Victims is their number.
	Victims int
	// Oldest is when the oldest of those with the highest priority started; the later, the smaller is the loss.
	Oldest record.Time
}

// raise makes the lowest priority count 0.
const raise = math.MaxInt32 + 1

// notStarted stands for the start of a pod that has not started: upstream takes the present, which is later than any.
const notStarted record.Time = math.MaxInt64

// startOf is when a pod started, as it counts here.
func startOf(p *cluster.Pod) record.Time {
	if p.Start == 0 {
		return notStarted
	}
	return p.Start
}

// lossOf is what it costs to evict pods, which is at least one.
func lossOf(victims []*cluster.Pod, violations int) Loss {
	l := Loss{Violations: violations, Highest: math.MinInt32, Victims: len(victims), Oldest: notStarted}
	for _, p := range victims {
		l.add(p.Spec.Priority, startOf(p))
	}
	return l
}

// add counts a victim but for its number.
func (l *Loss) add(priority int32, start record.Time) {
	l.Sum += int64(priority) + raise
	switch {
	case priority > l.Highest:
		l.Highest, l.Oldest = priority, start
	case priority == l.Highest:
		l.Oldest = min(l.Oldest, start)
	}
}

// compare is negative when l is the smaller loss.
func (l Loss) compare(other Loss) int {
	oldest := cmp.Compare(other.Oldest, l.Oldest)
	return cmp.Or(cmp.Compare(l.Violations, other.Violations), cmp.Compare(l.Highest, other.Highest), cmp.Compare(l.Sum, other.Sum),
		cmp.Compare(l.Victims, other.Victims), oldest)
}

// NewCandidate is a candidate that foreign code has chosen.
func NewCandidate(n cluster.NodeIdx, victims []*cluster.Pod, violations int) Candidate {
	return Candidate{Node: n, Victims: victims, Loss: lossOf(victims, violations)}
}

// Differs names the first thing in which l is a larger loss than another, empty when it is none.
func (l Loss) Differs(other Loss) Difference {
	switch {
	case l.compare(other) <= 0:
		return ""
	case l.Violations != other.Violations:
		return MoreViolations
	case l.Highest != other.Highest:
		return HigherPriority
	case l.Sum != other.Sum && l.Victims <= other.Victims:
		return HigherSum
	case l.Sum != other.Sum || l.Victims != other.Victims:
		return MoreVictims
	}
	return RanLonger
}

// Difference is by what one loss is larger than another, in the order in which losses are compared.
type Difference string

// The differences. A larger sum of priorities reads as more victims where there are more.
const (
	MoreViolations Difference = "violations"
	HigherPriority Difference = "priority"
	HigherSum      Difference = "priorities"
	MoreVictims    Difference = "victims"
	RanLonger      Difference = "age"
)

// HasStarted tells when the oldest of the most important victims started; ok is false if it has not.
func (l Loss) HasStarted() (at record.Time, ok bool) {
	return l.Oldest, l.Oldest != notStarted
}
