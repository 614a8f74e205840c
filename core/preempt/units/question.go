// SPDX-License-Identifier: Apache-2.0

package units

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Question asks which preemption units to evict so that a whole gang fits, or one pod if gangs may be among its
// victims. A unit is a gang that is only evicted whole, or a pod.
//
// A search for nodes must have found none (rule R3), and the preemptor must be allowed to preempt (answer A13) and
// fit an empty cluster (rule R17).
type Question struct {
	// Members are the preemptor's pending pods in the order of the gang; one for a single pod. Quorum is how many of
	// them must be placed.
	Members []*cluster.Pod
	Quorum  int
	// Own is the preemptor's gang, whose pods are never victims; zero for a single pod.
	Own cluster.GangKey
	// Priority is the preemptor priority. Units below it may be evicted. For a gang it is the declared priority, or
	// the lowest of its members' (answer A3).
	Priority int32
	// Trial must be open. The search evicts units in it, and rolls all of that back before it answers.
	Trial *cluster.Trial
	// Fits reports whether the preemptor can be placed in the trial as it is now, by all filters, and leaves the
	// trial as it was. It is the one source of truth, and it is expensive (rule R6).
	Fits func() bool
	// Rows is Fits with a result: the rows of the nodes by member, cluster.NoNode for a member beyond the quorum; nil
	// if there is no placement. It may be nil. Then a search with many units, for which the capacity is no guide,
	// takes many dry runs.
	Rows func() []cluster.NodeIdx
	// Rule returns how the pods of a gang on nodes are evicted. The result may change only when the gang's object
	// changes.
	Rule func(key cluster.GangKey) Rule
	// Never returns why a pod must not be evicted, for example "a DaemonSet's pod"; empty if it may (rule R16). One
	// such member protects a gang that is only evicted whole. Nil protects no pod.
	Never func(p *cluster.Pod) string
	// Agreed reports whether a pod in no gang has declared that it may be evicted for the preemptor, whatever its
	// priority: its eviction costs as if its priority were the lowest. Nil means none has.
	Agreed func(p *cluster.Pod) bool
	// Strict forbids evictions against a disruption budget.
	Strict bool
	// Stuck reports that the capacity of a terminating pod must not be counted on, because the pod is overdue; nil
	// counts on all.
	Stuck func(p *cluster.Pod) bool
	// Placement is what bounds on the capacity are computed from. Without it every set of units takes a dry run.
	Placement Placement
	// Limit bounds the dry runs that look for a smaller loss than the first one found; 0 stands for DefaultLimit. The
	// proof that each victim is needed takes more, up to Runs (rule R7).
	Limit int
	// Runs bounds the dry runs of one pod, that proof included, approximately; 0 stands for DefaultDryRuns. More
	// members make it less in proportion.
	Runs int
	// Reference answers by the reference algorithm alone. Tests compare the search with it.
	Reference bool
}

// Placement is what the search reads besides the trial.
type Placement struct {
	// Placer is that of the preemptor's profile; nil gives no bounds.
	Placer *place.Placer
	// Nominations are where other pods are expected.
	Nominations place.Nominations
	// TopologyKeys are the node labels in whose values all members must agree; none if they may be anywhere. Bound
	// are the rows of the members that have a node already.
	TopologyKeys []string
	Bound        []cluster.NodeIdx
}

// Rule is how the pods of a gang are evicted.
type Rule struct {
	// Whole forbids the eviction of one pod without all others (rule R5).
	Whole bool
	// Priority protects the gang's pods if it is Declared. Otherwise each pod's own priority does, or for a gang that
	// is evicted whole, the highest of its members' (answer A3).
	Declared bool
	Priority int32
	// OwnToo is for pods that evict others by their own priority. That priority then protects them too, if it is
	// higher than the declared one. Otherwise the pods of a group could evict each other in turn (rule R14).
	OwnToo bool
}

// Protects returns the priority that protects a pod, given its own priority. For a gang that is evicted whole, own is
// the highest of its members'.
func (r Rule) Protects(own int32) int32 {
	switch {
	case !r.Declared:
		return own
	case r.OwnToo:
		return max(own, r.Priority)
	}
	return r.Priority
}

// Answer is the output of a search for units.
type Answer struct {
	// Verdict is Evict, NotHelpful, or NotEligible if no eviction is needed because enough pods are terminating
	// already.
	Verdict preempt.Verdict
	// Victims are the units to evict, the most important first. With all of them and the pods of Terminating gone,
	// Fits holds; with any one of them kept, it does not (rules R6, R7).
	Victims []Victim
	Loss    Loss
	// Rows are the rows by member that a dry run found with the victims gone; nil if they are not known.
	Rows []cluster.NodeIdx
	// Terminating are the pods that are terminating already (answer A9). They are never victims, and the answer
	// counts on their capacity.
	Terminating []*cluster.Pod
	// Minimum reports that it is proved that no other set of units has a smaller loss.
	Minimum bool
	// Unproved is the number of victims (units) that were not shown to be needed one by one, because that would have
	// taken too many dry runs (Question.Runs). It happens for a preemptor with hundreds of members that differ, or
	// that other filters reject than the one for amounts. All of these victims are in the way of the placement that
	// was found. Mostly 0.
	Unproved int
	// Stuck are the terminating pods whose capacity is not counted on.
	Stuck []*cluster.Pod
	// Considered are units that are not victims, with the reason; at most MaxConsidered.
	Considered []Considered
	// Units is the number of units that may be evicted, Tried the number of dry runs.
	Units, Tried int
	// Message is the reason for every verdict but Evict.
	Message string
}

// Victim is a unit to evict.
type Victim struct {
	// Gang is zero for a single pod.
	Gang cluster.GangKey
	// Pods are all its pods that are not terminating, on all nodes, by name.
	Pods     []*cluster.Pod
	Priority int32
	// Agreed: it is a pod for which Question.Agreed holds.
	Agreed bool
	// Violations is how many of its pods a disruption budget protects if all victims are evicted.
	Violations int
}

// Loss is what evictions cost. Losses are compared field by field in this order (answer A11). A larger set of units
// never costs less.
type Loss struct {
	// Violations is the number of pods whose eviction exceeds what a disruption budget allows (answer A12).
	Violations int
	// Highest is the highest priority among the units.
	Highest int32
	// Units is the number of units: one for a gang of any size, one for a pod.
	Units int
	// Pods is the number of their pods.
	Pods int
	// Oldest is the earliest start among all pods; the later, the smaller the loss.
	Oldest record.Time
}

// Considered is a unit that is not evicted, with the reason.
type Considered struct {
	Gang cluster.GangKey
	// Pod is one of its pods.
	Pod      *cluster.Pod
	Pods     int
	Priority int32
	Why      string
}

// MaxConsidered bounds the units in Answer.Considered.
const MaxConsidered = 20
