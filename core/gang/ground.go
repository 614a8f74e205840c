// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Ground is the context of one search: an open trial, and the profile of the members. Unexported fields belong to
// the search.
type Ground struct {
	Trial  *cluster.Trial
	Placer *place.Placer
	// Nominations are the nominated nodes of pods. Nominations of members of this gang do not reserve capacity
	// against other members.
	Nominations place.Nominations
	// Draw chooses among nodes with equal scores.
	Draw      func(n int) int
	Reservers []plugin.Reserver
	// Placements proposes sets of nodes; nil for the search's own.
	Placements plugin.Placements
	Meter      place.Meter
	// DryRun marks a search whose placements are undone: it counts as a dry run of preemption.
	DryRun bool

	// taken are the placed members. Invariant: their marks ascend, and after a search they are the members that it
	// placed.
	taken []taken
	noms  others
}

// taken is one member on its row.
type taken struct {
	mark   cluster.Mark // of the trial before
	member int          // index in Need.Members
	holds  []Hold
}

// Hold is what one plugin reserved for a member.
type Hold struct {
	By   string
	Hold plugin.Reservation
}

// others are the nominations of pods outside of the gang.
type others struct {
	place.Nominations
	members map[cluster.UID]struct{} // nil while no nomination is to be left out
}

// NominatedOn returns the pods nominated on a node, without the gang's members.
func (o others) NominatedOn(node string) []*cluster.Pod {
	pods := o.Nominations.NominatedOn(node)
	if o.members == nil || !slices.ContainsFunc(pods, o.isMember) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), o.isMember)
}

func (o others) isMember(p *cluster.Pod) bool {
	_, is := o.members[p.UID]
	return is
}

// begin prepares the context for the members of one gang.
func (g *Ground) begin(members []*cluster.Pod) {
	if work := record.GangSearches; g.Meter != nil {
		if g.DryRun {
			work = record.DryRuns
		}
		g.Meter.Did(work, 1)
	}
	g.noms = others{Nominations: g.Nominations}
	if len(g.Nominations.NominatedNodes()) == 0 {
		return
	}
	g.noms.members = make(map[cluster.UID]struct{}, len(members))
	for _, p := range members {
		g.noms.members[p.UID] = struct{}{}
	}
}

func (g *Ground) state() cluster.Snapshot { return g.Trial.Snapshot() }

// place returns the best row for a member now; nil rows means all.
func (g *Ground) place(p *cluster.Pod, rows []cluster.NodeIdx) place.Outcome {
	return g.Placer.PlaceWithin(g.state(), p, g.noms, g.Draw, rows)
}

// refusal is the reason for which a member cannot have the row that its search chose.
type refusal struct {
	by, reject string
	err        error
}

// take places a member on a row and lets plugins reserve what else it needs. If one refuses, everything is undone.
func (g *Ground) take(member int, p *cluster.Pod, n cluster.NodeIdx) *refusal {
	t := taken{mark: g.Trial.Checkpoint(), member: member}
	g.Trial.Assume(p, n)
	for _, r := range g.Reservers {
		if g.Meter != nil {
			g.Meter.Plugin(plugin.AtReserve, r.Name())
		}
		if kept, is := r.(plugin.Deferrer); is {
			t.holds = append(t.holds, Hold{r.Name(), kept.ReserveLater(p, n)})
			continue
		}
		got := r.Reserve(g.Trial, p, n)
		if got.Hold != nil {
			t.holds = append(t.holds, Hold{r.Name(), got.Hold})
		}
		if got.Reject != "" || got.Err != nil {
			g.giveBack(&t)
			return &refusal{r.Name(), got.Reject, got.Err}
		}
	}
	g.taken = append(g.taken, t)
	return nil
}

// giveBack removes a member from its row; the ones after it must have been removed before.
func (g *Ground) giveBack(t *taken) {
	for _, h := range slices.Backward(t.holds) {
		h.Hold.Release(g.Trial, false)
	}
	g.Trial.Rollback(t.mark)
}

// rollback removes the newest members from their rows until count are left.
func (g *Ground) rollback(count int) {
	for i := len(g.taken) - 1; i >= count; i-- {
		g.giveBack(&g.taken[i])
		g.taken[i] = taken{}
	}
	g.taken = g.taken[:count]
}
