// SPDX-License-Identifier: Apache-2.0

package record

import "fmt"

// The phases of a gang, each with the milestone that ends it.
const (
	GangGathering  = "gathering"  // from the first member to the quorum: pods are created
	GangWaiting    = "waiting"    // to the decision that places the quorum
	GangBinding    = "binding"    // to the first pod that the watch shows bound
	GangCompleting = "completing" // to the quorum that the watch shows bound
)

// The phases of an eviction and of each of its victims.
const (
	EvictionDecided     = "decided"     // from the decision to the first delete that the client's rate limiter released
	EvictionSent        = "sent"        // until the watch shows all victims terminating
	EvictionTerminating = "terminating" // until the watch shows that all victims are gone: their grace periods
)

// MilestoneSpan is the stay of a gang, an eviction or a victim in one of its phases.
type MilestoneSpan struct {
	Phase string `json:"phase"`
	Start Time   `json:"start"`
	// Took is in nanoseconds; 0 in a phase that has not ended.
	Took Time `json:"took"`
	Open bool `json:"open,omitempty"`
}

// End is when the phase ended.
func (s MilestoneSpan) End() Time { return s.Start + s.Took }

// GangTiming has the milestones of a gang; 0 for one that was not reached.
//
// Invariant: those that were reached do not decrease in this order (Check).
type GangTiming struct {
	Gang string `json:"gang"` // namespace/name
	// FirstMember is when the first pod was received, Quorum when the gang first had enough pods to be tried.
	FirstMember Time `json:"firstMember"`
	Quorum      Time `json:"quorum,omitempty"`
	// Placed is when nodes were first decided for the minimum number, FirstBound when the watch showed the first pod
	// bound, and Whole when it showed the minimum number.
	Placed     Time `json:"placed,omitempty"`
	FirstBound Time `json:"firstBound,omitempty"`
	Whole      Time `json:"whole,omitempty"`
}

// Phases returns the phases of the gang. They have no gaps: once it is whole, their sum is Whole-FirstMember.
func (g *GangTiming) Phases() []MilestoneSpan {
	return between([]Time{g.FirstMember, g.Quorum, g.Placed, g.FirstBound, g.Whole},
		[]string{GangGathering, GangWaiting, GangBinding, GangCompleting})
}

// Check returns an error unless the invariant holds.
func (g *GangTiming) Check() error {
	return ascend("gang "+g.Gang, g.FirstMember, g.Quorum, g.Placed, g.FirstBound, g.Whole)
}

// EvictionTiming has the milestones of one eviction; 0 for one that was not reached.
//
// Invariant: of Requested, Sent, Terminating and Ended, those that were reached do not decrease (Check). Deleted is
// apart: the watch may be faster than the answers.
type EvictionTiming struct {
	For      PodRef `json:"for"`
	Gang     string `json:"gang,omitempty"` // namespace/name of the gang of For
	Node     string `json:"node,omitempty"`
	Decision uint64 `json:"decision"`
	Victims  int    `json:"victims"`
	// Requested is when the engine asked for it, Sent when the first delete was released by the client's rate limiter,
	// Terminating when the watch had shown all victims terminating, and Gone when it had shown that all are gone.
	Requested   Time `json:"requested"`
	Sent        Time `json:"sent,omitempty"`
	Terminating Time `json:"terminating,omitempty"`
	Gone        Time `json:"gone,omitempty"`
	// Deleted is when the loop took the outcome that all deletions were answered.
	Deleted Time `json:"deleted,omitempty"`
	// Failed is the error of an eviction that was not carried out, FailedAt when the loop took it.
	Failed   string `json:"failed,omitempty"`
	FailedAt Time   `json:"failedAt,omitempty"`
	// Pods are the first of the victims; Victims counts all.
	Pods []VictimTiming `json:"pods,omitempty"`
}

// VictimTiming has the milestones of one victim, as EvictionTiming has those of all.
type VictimTiming struct {
	Pod         PodRef `json:"pod"`
	Sent        Time   `json:"sent,omitempty"`
	Terminating Time   `json:"terminating,omitempty"`
	Gone        Time   `json:"gone,omitempty"`
}

// Ended is when the last victim was gone, or when the eviction failed; 0 while it is under way.
func (e *EvictionTiming) Ended() Time {
	if e.Gone == 0 {
		return e.FailedAt
	}
	return e.Gone
}

// evictionPhases are the phases between the milestones of an eviction.
var evictionPhases = []string{EvictionDecided, EvictionSent, EvictionTerminating}

// Phases returns the phases of the eviction. They have no gaps: once it has ended, their sum is Ended()-Requested.
func (e *EvictionTiming) Phases() []MilestoneSpan {
	return between([]Time{e.Requested, e.Sent, e.Terminating, e.Ended()}, evictionPhases)
}

// PhasesOf returns the phases of one of its victims, which begin with the eviction.
func (e *EvictionTiming) PhasesOf(v *VictimTiming) []MilestoneSpan {
	return between([]Time{e.Requested, v.Sent, v.Terminating, e.endOf(v)}, evictionPhases)
}

func (e *EvictionTiming) endOf(v *VictimTiming) Time {
	if v.Gone == 0 {
		return e.FailedAt
	}
	return v.Gone
}

// Check returns an error unless the invariant holds, for the victims too.
func (e *EvictionTiming) Check() error {
	what := fmt.Sprintf("eviction %d for pod %s", e.Decision, e.For.Key())
	if err := ascend(what, e.Requested, e.Sent, e.Terminating, e.Ended()); err != nil {
		return err
	}
	if len(e.Pods) > e.Victims {
		return fmt.Errorf("%s: it has %d victims and lists %d", what, e.Victims, len(e.Pods))
	}
	for i := range e.Pods {
		v := &e.Pods[i]
		if err := ascend(what+", victim "+v.Pod.Key(), e.Requested, v.Sent, v.Terminating, e.endOf(v)); err != nil {
			return err
		}
	}
	return nil
}

// between returns the phases between milestones, of which 0 was not reached. A milestone that was passed over is that
// of what follows it. A phase that took no time is left out; the one after the last milestone is open.
func between(milestones []Time, phases []string) (list []MilestoneSpan) {
	at := milestones[0]
	for i, phase := range phases {
		end := Time(0)
		for _, later := range milestones[i+1:] {
			if later != 0 {
				end = later
				break
			}
		}
		if end == 0 {
			return append(list, MilestoneSpan{Phase: phase, Start: at, Open: true})
		}
		if end > at {
			list = append(list, MilestoneSpan{Phase: phase, Start: at, Took: end - at})
		}
		at = end
	}
	return list
}

// ascend returns an error unless the milestones that were reached do not decrease.
func ascend(what string, milestones ...Time) error {
	at := milestones[0]
	for i, next := range milestones[1:] {
		switch {
		case next == 0:
		case next < at:
			return fmt.Errorf("%s: milestone %d is %d ns before the one that it follows", what, i+1, at-next)
		case next-at < 0:
			return fmt.Errorf("%s: milestone %d is out of range", what, i+1)
		default:
			at = next
		}
	}
	return nil
}
