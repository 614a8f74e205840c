// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

// UnitsQuestion asks which units must go so that a whole gang gets its places, or one pod where gangs are among those of
// less importance. A unit is a gang that only goes whole, or a pod.
//
// It is asked after a search for places has found none (rule R3), by a gang that may preempt (answer A13) and would fit an
// empty cluster (rule R17).
type UnitsQuestion struct {
	// Members are the preemptor's pending pods that may be placed, in the order of their unit; one for a pod by itself.
	// Quorum is how many of them must get a place.
	Members []*cluster.Pod
	Quorum  int
	// Own is the preemptor's gang, none of which ever goes for it; zero for a pod by itself.
	Own cluster.GangKey
	// Power is the priority below which units may go: what the gang declares, or the least of its members' (answer A3).
	Power int32
	// Trial is open. The search takes units out of it, and puts all back before it answers.
	Trial *cluster.Trial
	// Fits tells whether there are places for the preemptor in the trial as it is now, with full filters, and leaves the
	// trial as it was. It is the one source of truth, and dear (rule R6).
	Fits func() bool
	// Where is Fits that tells the rows of the places by member, cluster.NoNode for one beyond the quorum; nil for no places.
	// It may be nil: then many units among which the room is no guide take many dry runs.
	Where func() []cluster.NodeIdx
	// Rule tells how the pods of a gang that hold room go. What it says of a gang changes with the gang's object alone.
	Rule func(key cluster.GangKey) UnitRule
	// Never is why a pod may not be evicted at all, as "a DaemonSet's pod"; empty if it may (rule R16). A gang that goes whole
	// is kept by one such member. Nil keeps nobody.
	Never func(p *cluster.Pod) string
	// Strict lets nobody go against a disruption budget.
	Strict bool
	// Stuck tells of a terminating pod that it is not to be counted on, because it should be gone for long; nil counts on all.
	Stuck func(p *cluster.Pod) bool
	// Ground is what bounds are made of, so that most sets of units are never tried. The zero value lends none.
	Ground UnitsGround
	// Limit is how many dry runs may be spent on finding a smaller loss than the first one found; 0 is for
	// DefaultUnitsLimit. What it takes to prove that each victim is needed is spent besides, up to Runs (rule R7).
	Limit int
	// Runs is about how many dry runs of one pod the question may take in all, that proof included; 0 is for DefaultRuns. With
	// more members it is fewer in proportion.
	Runs int
	// Plain answers by the plain form alone: what all else here is held against.
	Plain bool
}

// UnitsGround is what the search reads besides the trial.
type UnitsGround struct {
	// Placer is that of the preemptor's profile, nil for no bounds.
	Placer *place.Placer
	// Nominations tell where other pods are expected.
	Nominations place.Nominations
	// Keys are the labels of nodes by whose values all members must be together; none where they may be anywhere. Bound are
	// the rows of members that have a node already.
	Keys  []string
	Bound []cluster.NodeIdx
}

// UnitRule is how the pods of a gang go.
type UnitRule struct {
	// Whole tells that none goes without all others (rule R5).
	Whole bool
	// Priority protects the gang's pods if it is Declared. Otherwise each pod's own does, or for a gang that goes whole the
	// highest of its members' (answer A3).
	Declared bool
	Priority int32
	// OwnToo is for pods that have others evicted by their own priority: that protects them, too, where it is higher than what
	// is declared. Otherwise pods of one group could evict each other in turns (rule R14).
	OwnToo bool
}

// Protects is the priority that protects a pod with a priority of its own, or the highest of a gang that goes whole.
func (r UnitRule) Protects(own int32) int32 {
	switch {
	case !r.Declared:
		return own
	case r.OwnToo:
		return max(own, r.Priority)
	}
	return r.Priority
}

// UnitsAnswer is what came of a search for units.
type UnitsAnswer struct {
	// Verdict is Evict, NotEligible where nobody need go because enough is going already, or NotHelpful.
	Verdict Verdict
	// Victims are the units to evict, the most important first. With all of them gone, and the pods of Going, Fits holds;
	// with any one of them kept it does not (rules R6, R7).
	Victims []VictimUnit
	Loss    UnitsLoss
	// Places are the rows of the places by member that a dry run found with the victims gone; nil where that was not kept.
	Places []cluster.NodeIdx
	// Going are the pods that are terminating already (answer A9). They are never victims; the answer counts on their room.
	Going []*cluster.Pod
	// Minimum tells that no other set of units has a smaller loss: it is proved. Otherwise there may be one.
	Minimum bool
	// Unproved is how many of the victims (units) were not shown to be needed one by one, because it would have taken too many
	// dry runs (UnitsQuestion.Runs): for a preemptor of hundreds of members that differ, or that other filters than that of amounts reject. All of them
	// are in the way of the places that were found. Mostly 0.
	Unproved int
	// Stuck are those of the terminating pods whose room is not counted on.
	Stuck []*cluster.Pod
	// Considered are units that are not among the victims, and why; at most MostConsidered.
	Considered []ConsideredUnit
	// Units is how many units might have gone, Tried how many dry runs were made.
	Units, Tried int
	// Message says why nobody goes, for everything but Evict.
	Message string
}

// VictimUnit is a unit that is to go.
type VictimUnit struct {
	// Gang is zero for a pod by itself.
	Gang cluster.GangKey
	// Pods are all that live of it, wherever they are; by name.
	Pods     []*cluster.Pod
	Priority int32
	// Violations is how many of its pods a disruption budget protects, when all victims go.
	Violations int
}

// UnitsLoss is what evictions cost, compared field by field in this order (answer A11). More units never cost less.
type UnitsLoss struct {
	// Violations are the pods whose eviction goes beyond what a disruption budget allows (answer A12).
	Violations int
	// Highest is the highest priority among the units.
	Highest int32
	// Units is their number: one for a gang of any size, one for a pod.
	Units int
	// Pods is the number of their pods.
	Pods int
	// Oldest is when the pod that has run longest of all started; the later, the smaller is the loss.
	Oldest record.Time
}

// ConsideredUnit is a unit that stays, and why.
type ConsideredUnit struct {
	Gang cluster.GangKey
	// Pod is one of it.
	Pod      *cluster.Pod
	Pods     int
	Priority int32
	Why      string
}

// MostConsidered bounds what is told of units that stay.
const MostConsidered = 20
