// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Held capacity may be used by pods that end before the gang can start (EASY backfill: Lifka, The ANL/IBM SP scheduling
// system, 1995). The earliest start of the gang is estimated by the known ends of the pods that run
// (gang.EarliestStart). If it is not known, no pod is let in, for each of them could delay the gang.
//
// A place that is used in this way stays held: the places of the gang are searched as if those pods were gone.
// Otherwise a pod of which no end is known could take the place beside it, and the gang would start later than
// estimated.
//
// The gang starts on the state as it is. So a wrong estimate delays it, and never breaks all or nothing. A pod that is
// there after its end is counted, and its owner's statements do not count any more until the end of the hold.
//
// A pod that may be evicted for gangs is let in whether its end and the start are known or not: core/evict evicts it
// when the gang fits without it.
//
// Rejected: to estimate at each attempt (a dozen searches for the gang), and to evict pods that are late (they did not
// agree to that).

// reestimate is the least time between two estimates of a gang's start.
const reestimate = 10 * record.Second

// backfill is what a hold knows of pods that use held capacity until the gang starts.
type backfill struct {
	// start is the earliest start of the gang by the estimate, 0 if it is not known; estimated is when that was made.
	// Invariant: estimated is not later than now, and 0 only if start is.
	start, estimated record.Time // kept
	// pods were placed on held capacity and are expected to end before the start that was estimated then, in the order
	// of their placement. Some of them may be gone.
	pods []backfilled // kept
	// late are the owners of pods that were there after the end that they had stated.
	late map[uint64]bool // kept; owner -> true
	// placed counts the pods that were placed on held capacity, and overran those that were there after their end.
	placed, overran int // kept
	// next is when the first of pods is expected to be gone. Invariant: between two steps it is later than now.
	next deadline.Entry // derived: of pods
}

// backfilled is a pod on held capacity.
type backfilled struct {
	uid cluster.UID // kept
	by  record.Time // kept; it is expected to be gone then, 0 for one that is evicted for the gang
}

// placesWithoutBackfilled returns the places that an attempt of the gang that holds capacity found, or would have found
// if the pods on held capacity were gone.
func (g *Gangs) placesWithoutBackfilled(a gang.Attempt) (most int, partial []cluster.NodeIdx) {
	ans := a.Answer
	if gone := g.stillBackfilled(); len(gone) > 0 {
		ans = g.cfg.Host.SearchWithout(a, gone)
	}
	return ans.Most, ans.Partial
}

// holdPlaces nominates the members of the gang that holds capacity for places, and estimates its start. partial are the
// rows by member.
func (g *Gangs) holdPlaces(a gang.Attempt, partial []cluster.NodeIdx) {
	g.hold.pods = g.hold.pods[:0]
	for i, p := range a.Need.Members {
		if i < len(partial) && partial[i] != cluster.NoNode {
			g.cfg.Queue.Nominate(p, g.cfg.Cluster.NodeName(partial[i]))
			g.hold.pods = append(g.hold.pods, p)
		}
	}
	g.estimate(a)
}

// estimate estimates the start of the gang that holds capacity, unless that was done not long ago.
func (g *Gangs) estimate(a gang.Attempt) {
	f, now := &g.hold.backfill, g.cfg.Host.Now()
	if !g.cfg.Hold.Backfill || f.estimated != 0 && now < f.estimated+reestimate {
		return
	}
	f.start, f.estimated = 0, now
	agreed := gang.Agreed(g.cfg.Cluster, a.Gang, a.Need.Members)
	ends := gang.EarliestStart(gang.KnownEnds(g.cfg.Cluster, now, agreed), func(gone []gang.PodEnd) bool {
		pods := make([]*cluster.Pod, len(gone))
		for i, e := range gone {
			pods[i] = e.Pod
		}
		return g.cfg.Host.SearchWithout(a, pods).Verdict == gang.Placed
	})
	if len(ends) > 0 {
		f.start = ends[len(ends)-1].At
	}
}

// stillBackfilled returns the pods on held capacity that are still there and not late, in their newest versions.
func (g *Gangs) stillBackfilled() (pods []*cluster.Pod) {
	for _, b := range g.hold.backfill.pods {
		if p, _, _, ok := g.cfg.Cluster.PodOn(b.uid); ok {
			pods = append(pods, p)
		}
	}
	return pods
}

// LetsIn reports whether pods may use capacity that is held: each of them is known to end before the gang that holds it
// can start, or may be evicted for it.
func (g *Gangs) LetsIn(pods []*cluster.Pod) bool {
	return g.hold != nil && !slices.ContainsFunc(pods, func(p *cluster.Pod) bool {
		return !g.endsBeforeStart(p) && !g.agrees(p)
	})
}

// endsBeforeStart reports whether a pod that is placed now is known to end before the gang that holds capacity can
// start.
func (g *Gangs) endsBeforeStart(p *cluster.Pod) bool {
	f := &g.hold.backfill
	long, basis := p.Lasts()
	return f.start != 0 && basis != cluster.EndUnknown && g.cfg.Host.Now()+long <= f.start &&
		!(basis == cluster.EndsAsStated && f.late[p.Owner])
}

// agrees reports whether a pod may be evicted for gangs. A pod of a gang is not, whatever it declares.
func (g *Gangs) agrees(p *cluster.Pod) bool {
	return g.cfg.Hold.Backfill && p.EvictableForGangs && p.Gang == nil
}

// NominationsFor returns the nominations that a search for placements of some pods respects.
func (g *Gangs) NominationsFor(pods []*cluster.Pod) place.Nominations {
	if !g.LetsIn(pods) {
		return g.cfg.Queue
	}
	return notHeld{g.cfg.Queue, g.hold.gang}
}

// notHeld are the nominations without those of the gang that holds capacity.
type notHeld struct {
	place.Nominations
	gang cluster.GangKey
}

// NominatedOn returns the pods that count.
func (n notHeld) NominatedOn(node string) []*cluster.Pod {
	pods := n.Nominations.NominatedOn(node)
	holds := func(p *cluster.Pod) bool { return p.Gang != nil && p.Gang.Key == n.gang }
	if !slices.ContainsFunc(pods, holds) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), holds)
}

// PodPlaced follows the placement of a pod, which may use held capacity. It must be called while the pod's nomination
// stands: gangs of its priority respected that, and may have the pod evicted now if it agrees.
func (g *Gangs) PodPlaced(p *cluster.Pod, node string) {
	if g.agrees(p) && g.cfg.Queue.NominationOf(p.UID) != "" {
		placed := *p
		placed.NodeName = node
		g.cfg.Queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete},
			OldPod: &placed})
	}
	if !g.LetsIn([]*cluster.Pod{p}) || !slices.ContainsFunc(g.hold.pods, func(m *cluster.Pod) bool {
		return m.UID != p.UID && m.Spec.Priority >= p.Spec.Priority && g.cfg.Queue.NominationOf(m.UID) == node
	}) {
		return
	}
	f, by := &g.hold.backfill, record.Time(0)
	if g.endsBeforeStart(p) {
		long, _ := p.Lasts()
		by = g.cfg.Host.Now() + long
	}
	f.pods = append(f.pods, backfilled{p.UID, by})
	f.placed++
	g.setNextEnd()
}

// setNextEnd sets the deadline of the first pod on held capacity that is to be gone.
func (g *Gangs) setNextEnd() {
	f := &g.hold.backfill
	first := record.Time(0)
	for _, b := range f.pods {
		if b.by != 0 && (first == 0 || b.by < first) {
			first = b.by
		}
	}
	g.cfg.Deadlines.Set(&f.next, first)
}

// endBackfilled follows the time of pods on held capacity: those that are gone are forgotten, those that started late
// have until later, and the others are late.
func (g *Gangs) endBackfilled() {
	if g.hold == nil {
		return
	}
	f, now := &g.hold.backfill, g.cfg.Host.Now()
	f.pods = slices.DeleteFunc(f.pods, func(b backfilled) bool {
		p, _, _, there := g.cfg.Cluster.PodOn(b.uid)
		if b.by == 0 || b.by > now || !there {
			return !there
		}
		if at, _ := p.End(); at > now {
			return false // below
		}
		f.overran++
		if _, basis := p.Lasts(); basis == cluster.EndsAsStated && p.Owner != 0 {
			if f.late == nil {
				f.late = map[uint64]bool{}
			}
			f.late[p.Owner] = true
		}
		return true
	})
	for i := range f.pods {
		if b := &f.pods[i]; b.by != 0 && b.by <= now {
			p, _, _, _ := g.cfg.Cluster.PodOn(b.uid)
			b.by, _ = p.End()
		}
	}
	g.setNextEnd()
}

// BackfillState is what is known of the pods on held capacity, as data.
type BackfillState struct {
	Start, Estimated record.Time
	Pods             []BackfilledPod
	Late             []uint64 // owners, ascending
	Placed, Overran  int
}

// BackfilledPod is a pod on held capacity.
type BackfilledPod struct {
	UID cluster.UID
	By  record.Time
}

// facts returns the facts of f.
func (f *backfill) facts() BackfillState {
	st := BackfillState{Start: f.start, Estimated: f.estimated, Placed: f.placed, Overran: f.overran}
	for _, b := range f.pods {
		st.Pods = append(st.Pods, BackfilledPod{b.uid, b.by})
	}
	for owner := range f.late { // order: sorted below
		st.Late = append(st.Late, owner)
	}
	slices.SortFunc(st.Late, cmp.Compare[uint64])
	return st
}

// restoreBackfill makes the hold go on from facts.
func (g *Gangs) restoreBackfill(st BackfillState) {
	f := &g.hold.backfill
	f.start, f.estimated, f.placed, f.overran = st.Start, st.Estimated, st.Placed, st.Overran
	for _, p := range st.Pods {
		f.pods = append(f.pods, backfilled{p.UID, p.By})
	}
	for _, owner := range st.Late {
		if f.late == nil {
			f.late = map[uint64]bool{}
		}
		f.late[owner] = true
	}
	g.setNextEnd()
}
