// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Ground is what the engine lends for one search: an open trial, and the profile of the members. Its zero fields after
// Reservers are its own.
type Ground struct {
	Trial  *cluster.Trial
	Placer *place.Placer
	// Nominations tells where pods are expected. Promises to members of the gang in hand do not keep other members
	// away.
	Nominations place.Nominations
	// Draw chooses among tied nodes.
	Draw      func(n int) int
	Reservers []plugin.Reserver
	Meter     place.Meter

	taken []taken
	noms  others
}

// taken is one member on its row.
type taken struct {
	mark   cluster.Mark // of the trial before
	member int          // index in Need.Members
	holds  []Hold
}

// Hold is what one plugin holds for a member.
type Hold struct {
	By   string
	Hold plugin.Reservation
}

// others are the promises to pods outside of the gang.
type others struct {
	place.Nominations
	members map[cluster.UID]struct{} // nil while no promise is to be left out
}

// NominatedOn leaves the gang's members out.
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

// begin readies the ground for the members of one gang.
func (g *Ground) begin(members []*cluster.Pod) {
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

// place finds the best row for a member now; rows nil means all.
func (g *Ground) place(p *cluster.Pod, rows []cluster.NodeIdx) place.Outcome {
	return g.Placer.PlaceWithin(g.state(), p, g.noms, g.Draw, rows)
}

// refusal is why a member cannot have a row that its search chose.
type refusal struct {
	by, reject string
	err        error
}

// take puts a member on a row and lets plugins take what else it needs. When one refuses, nothing is left of it.
func (g *Ground) take(member int, p *cluster.Pod, n cluster.NodeIdx) *refusal {
	t := taken{mark: g.Trial.Checkpoint(), member: member}
	g.Trial.Assume(p, n)
	for _, r := range g.Reservers {
		if g.Meter != nil {
			g.Meter.Plugin(plugin.AtReserve, r.Name())
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

// giveBack takes a member off its row; the ones after it must be gone already.
func (g *Ground) giveBack(t *taken) {
	for _, h := range slices.Backward(t.holds) {
		h.Hold.Release(g.Trial, false)
	}
	g.Trial.Rollback(t.mark)
}

// rollback takes the newest members off their rows until count are left.
func (g *Ground) rollback(count int) {
	for i := len(g.taken) - 1; i >= count; i-- {
		g.giveBack(&g.taken[i])
		g.taken[i] = taken{}
	}
	g.taken = g.taken[:count]
}
