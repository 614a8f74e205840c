// SPDX-License-Identifier: Apache-2.0

package units

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// dryRuns evicts units in a trial and asks for placements. begin comes first; end restores the trial.
type dryRuns struct {
	q          *Question
	candidates *candidates
	base       cluster.Mark // of the trial before begin
	start      cluster.Mark // of the trial with the terminating pods gone
	tried      int
	limit      int // Question.Runs
	// unproved is how many victims of the best answer were not proved to be needed, because of the limit of dry runs;
	// open is the same for the list that was checked last.
	unproved, open int
}

func (d *dryRuns) begin() {
	for _, p := range d.candidates.terminating {
		d.q.Trial.Evict(p.UID)
	}
	d.start = d.q.Trial.Checkpoint()
}

func (d *dryRuns) end() {
	d.q.Trial.Rollback(d.base)
}

// fits makes a dry run with the trial as it is.
func (d *dryRuns) fits() bool {
	d.tried++
	return d.q.Fits()
}

// fitsWithout makes a dry run with the units of a list evicted.
func (d *dryRuns) fitsWithout(list []int) bool {
	d.q.Trial.Rollback(d.start)
	for _, i := range list {
		d.evict(i)
	}
	return d.fits()
}

// placesWithout makes a dry run with the units of a list and other pods evicted. places is nil if Question.Rows is.
func (d *dryRuns) placesWithout(list []int, others []*cluster.Pod) (places []cluster.NodeIdx, fits bool) {
	for _, p := range others {
		d.q.Trial.Evict(p.UID)
	}
	for _, i := range list {
		d.evict(i)
	}
	if d.q.Rows == nil {
		return nil, d.fits()
	}
	d.tried++
	places = d.q.Rows()
	return places, places != nil
}

func (d *dryRuns) evict(i int) {
	u := &d.candidates.all[i]
	for _, pl := range d.candidates.pods[u.lo:u.hi] {
		d.q.Trial.Evict(pl.pod.UID)
	}
}

// DefaultDryRuns is the default of Question.Runs (232 dry runs with 500 members).
const DefaultDryRuns = 1 << 11

// spent reports whether the limit of dry runs is reached: a proof of minimality must not block the scheduling loop.
// Units that were not shown to be in the way are then not evicted.
func (d *dryRuns) spent() bool { return d.tried*(64+len(d.q.Members)) > 64*d.limit }

// reference is the reference algorithm. All units are evicted; then each is spared, in order, if there is still a
// placement beside it. Because a placement depends on what else is evicted, units that could not be spared are tried
// again until no more can be. It returns the victims; ok is false if there is no placement with all units evicted.
func (d *dryRuns) reference() (list []int, ok bool) {
	list = d.candidates.every()
	if !d.fitsWithout(list) {
		return nil, false
	}
	for spared := true; spared; {
		spared = false
		for _, i := range slices.Clone(list) {
			if rest := without(list, i); d.fitsWithout(rest) {
				list, spared = rest, true
			}
		}
	}
	return list, true
}

// without returns a list without one unit.
func without(list []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(other int) bool { return other == i })
}

// removalStack evicts units in an order in which the units to decide about next can be put back without the others.
// Units that are not decided about yet are below, in reverse order; units that are decided to be victims are on top.
type removalStack struct {
	*dryRuns
	list    []int          // units in the order of decisions
	marks   []cluster.Mark // position in list -> mark of the trial before the unit was evicted
	victims []int          // units that are decided to be victims
}

// newRemovalStack evicts all units of a list, and no others.
func (d *dryRuns) newRemovalStack(list []int) *removalStack {
	st := &removalStack{dryRuns: d, list: list, marks: make([]cluster.Mark, len(list))}
	d.q.Trial.Rollback(d.start)
	st.from(len(list), 0)
	return st
}

// from evicts the units from position hi down to lo, on top of those after hi, and then the victims.
func (st *removalStack) from(hi, lo int) {
	for at := hi - 1; at >= lo; at-- {
		st.marks[at] = st.q.Trial.Checkpoint()
		st.evict(st.list[at])
	}
	for _, i := range st.victims {
		st.evict(i)
	}
}

// spares makes a dry run with the units from position lo to hi put back, and reports whether it fits. If it does not,
// they are evicted again.
func (st *removalStack) spares(lo, hi int) bool {
	st.q.Trial.Rollback(st.marks[hi-1])
	st.from(0, 0)
	if st.fits() {
		return true
	}
	st.q.Trial.Rollback(st.marks[hi-1])
	st.from(hi, lo)
	return false
}

// decide makes the unit at a position a victim.
func (st *removalStack) decide(at int) {
	st.q.Trial.Rollback(st.marks[at])
	st.victims = append(st.victims, st.list[at])
	st.from(0, 0)
}
