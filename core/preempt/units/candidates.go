// SPDX-License-Identifier: Apache-2.0

package units

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// candidates are the units that may be evicted in the current search, in the order in which they are spared: the
// first one is spared first.
type candidates struct {
	all  []unit
	pods []podAt // of all units, unit by unit
	// terminating are the terminating pods whose capacity is counted on.
	terminating []*cluster.Pod
	// excluded are some of the units that may not be evicted, with the reason.
	excluded []Considered

	allowed, left []int32 // by budget: what it allows, and what is left of that in the current count
	guarded       []guarded
	turn          []int // reused memory
	// tooLarge reports that a pod holds an amount that sums are not safe with.
	tooLarge bool
}

// unit is a gang that is only evicted whole, or a pod.
type unit struct {
	gang     cluster.GangKey
	lo, hi   int32       // range in candidates.pods
	priority int32       // lowestPriority if agreed
	agreed   bool        // by Question.Agreed
	oldest   record.Time // earliest start of its pods
	shielded bool        // some of its pods violate a budget if all units are evicted
	idle     bool        // its eviction frees nothing on a node where that would help
	guarded  []int       // its pods that budgets select: index in candidates.guarded
}

// lowestPriority is the priority of pods that have agreed to be evicted.
const lowestPriority = math.MinInt32

// reset removes the units of the last search.
func (us *candidates) reset() {
	*us = candidates{all: us.all[:0], pods: us.pods[:0], guarded: us.guarded[:0], turn: us.turn,
		allowed: us.allowed, left: us.left}
}

// noGang is the id of no gang.
const noGang = -1

// every lists all units.
func (us *candidates) every() []int {
	list := make([]int, len(us.all))
	for i := range list {
		list[i] = i
	}
	return list
}

// guarded is a pod that disruption budgets select.
type guarded struct {
	victim.Entry
	unit int32
	by   []int // indexes of the budgets
}
