// SPDX-License-Identifier: Apache-2.0

package question

import (
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GangWait is what the waiting pods of a gang wait for.
type GangWait uint8

// The reasons to wait.
const (
	// GangWaitsForPods: its gate is closed, mostly because pods are missing.
	GangWaitsForPods GangWait = iota
	// GangWaitsForTurn: it was not tried since it arrived or changed.
	GangWaitsForTurn
	// GangWaitsForCapacity: it did not fit. GangNeverFits: it is proved that it cannot. GangGaveUp: the search
	// budget was spent.
	GangWaitsForCapacity
	GangNeverFits
	GangGaveUp
	// GangFailed: its last attempt ended with an error, or with a panic.
	GangFailed
	// GangWaitsForSurplus: it has its quorum, and further pods of it wait.
	GangWaitsForSurplus
	GangWaits
)

// String returns the label of metrics.
func (w GangWait) String() string {
	return [...]string{"pods", "turn", "room", "never", "gave_up", "error", "extras"}[w]
}

// waitAfter: how a search ended -> what the gang waits for.
var waitAfter = [...]GangWait{
	gang.Placed: GangWaitsForTurn, gang.Unschedulable: GangWaitsForCapacity, gang.NeverFits: GangNeverFits,
	gang.GaveUp: GangGaveUp, gang.Failed: GangFailed,
}

// GangCensus holds numbers of gangs, for metrics.
type GangCensus struct {
	// Part is how many gangs have some pods bound, fewer than the quorum, and never had their quorum. Since is when
	// that began for the first of them, 0 for none.
	Part  int
	Since record.Time
	// Waiting is how many gangs have waiting pods, by what they wait for.
	Waiting [GangWaits]int
	// Held is for how many pods of a blocked gang capacity is held.
	Held int
}

// GangCensus counts the gangs.
func (i Inspector) GangCensus() (c GangCensus) {
	i.view.Gangs().EachPartial(func(since record.Time) {
		if c.Part++; c.Since == 0 || since < c.Since {
			c.Since = since
		}
	})
	i.view.Queue().EachGang(func(u *queue.Unit) { c.Waiting[i.waitOf(u)]++ })
	if held, ok := i.view.Gangs().Held(); ok {
		c.Held = len(held.Pods)
	}
	return c
}

func (i Inspector) waitOf(u *queue.Unit) GangWait {
	switch {
	case u.Aside != "":
		return GangFailed
	case u.Gate != "":
		return GangWaitsForPods
	case i.view.Gangs().HasQuorum(u):
		return GangWaitsForSurplus
	case u.Attempts > 0:
		return waitAfter[i.view.Gangs().History(u.Gang).Verdict]
	}
	return GangWaitsForTurn
}
