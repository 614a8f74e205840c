// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Loss is what evictions cost. Losses are compared field by field in this order (upstream: preemption.go,
// pickOneNodeForPreemption).
type Loss struct {
	// Violations is the number of victims that a disruption budget protects.
	Violations int
	// Highest is the highest priority among the victims.
	Highest int32
	// Sum adds up the victims' priorities, each raised so that none is negative. Otherwise many pods of negative
	// priority would cost less than one.
	Sum int64
	// Victims is the number of victims.
	Victims int
	// Oldest is the earliest start among the victims of the highest priority; the later, the smaller the loss.
	Oldest record.Time
}

// raise makes the lowest priority count 0.
const raise = math.MaxInt32 + 1

// lossOf returns the loss of evicting pods. There must be at least one.
func lossOf(victims []*cluster.Pod, violations int) Loss {
	l := Loss{Violations: violations, Highest: math.MinInt32, Victims: len(victims), Oldest: victim.NotStarted}
	for _, p := range victims {
		l.add(p.Spec.Priority, victim.StartOf(p))
	}
	return l
}

// add counts a victim, except for the number of victims.
func (l *Loss) add(priority int32, start record.Time) {
	l.Sum += int64(priority) + raise
	switch {
	case priority > l.Highest:
		l.Highest, l.Oldest = priority, start
	case priority == l.Highest:
		l.Oldest = min(l.Oldest, start)
	}
}

// Compare is negative when l is the smaller loss.
func (l Loss) Compare(other Loss) int {
	oldest := cmp.Compare(other.Oldest, l.Oldest)
	return cmp.Or(cmp.Compare(l.Violations, other.Violations), cmp.Compare(l.Highest, other.Highest),
		cmp.Compare(l.Sum, other.Sum), cmp.Compare(l.Victims, other.Victims), oldest)
}

// Differs returns the first field by which l is the larger loss, empty if it is not larger.
func (l Loss) Differs(other Loss) Difference {
	switch {
	case l.Compare(other) <= 0:
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

// Difference is the field by which one loss is larger than another, in the order of comparison.
type Difference string

// The differences. If there are more victims too, a larger sum of priorities is reported as more victims.
const (
	MoreViolations Difference = "violations"
	HigherPriority Difference = "priority"
	HigherSum      Difference = "priorities"
	MoreVictims    Difference = "victims"
	RanLonger      Difference = "age"
)

// HasStarted returns the earliest start of the most important victims; ok is false if none has started.
func (l Loss) HasStarted() (at record.Time, ok bool) {
	return l.Oldest, l.Oldest != victim.NotStarted
}
