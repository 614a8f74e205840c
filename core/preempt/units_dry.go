// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// dryRuns suppose units gone in a trial.
type dryRuns struct {
	q     *UnitsQuestion
	us    *units
	base  cluster.Mark // of the trial as it was asked about
	start cluster.Mark // with the terminating pods gone
	tried int
	most  int // UnitsQuestion.Runs
	// unproved is of how many victims of the best answer it was not asked whether they are needed, because that would have
	// been one dry run too many; open is the same of the list that was looked through last.
	unproved, open int
}

func (d *dryRuns) begin() {
	for _, p := range d.us.going {
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

// fitsWithout makes a dry run with the units of a list gone.
func (d *dryRuns) fitsWithout(list []int) bool {
	d.q.Trial.Rollback(d.start)
	for _, i := range list {
		d.evict(i)
	}
	return d.fits()
}

// placesWithout makes a dry run with the units of a list and other pods gone. places is nil where it is not told of them.
func (d *dryRuns) placesWithout(list []int, others []*cluster.Pod) (places []cluster.NodeIdx, fits bool) {
	for _, p := range others {
		d.q.Trial.Evict(p.UID)
	}
	for _, i := range list {
		d.evict(i)
	}
	if d.q.Where == nil {
		return nil, d.fits()
	}
	d.tried++
	places = d.q.Where()
	return places, places != nil
}

func (d *dryRuns) evict(i int) {
	u := &d.us.all[i]
	for _, pl := range d.us.pods[u.lo:u.hi] {
		d.q.Trial.Evict(pl.pod.UID)
	}
}

// DefaultRuns is about how many dry runs of one pod a question may take (232 with 500 members).
const DefaultRuns = 1 << 11

// spent tells whether so many dry runs were made that the scheduler would stand still too long. Nobody is evicted then who was
// not shown to be in the way.
func (d *dryRuns) spent() bool { return d.tried*(64+len(d.q.Members)) > 64*d.most }

// plain is the plain form. All units are supposed gone; then one after the other is spared, in their order, if there are
// still places beside it. Where one that was kept from being spared might be so later, because places depend on who else is
// gone, it is asked again until nobody more is spared. It returns who goes; false where there are no places with all units
// gone.
func (d *dryRuns) plain() (list []int, ok bool) {
	list = d.us.every()
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

// without is a list but for one unit.
func without(list []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(other int) bool { return other == i })
}

// stack supposes units gone in such an order that those which are decided upon next can be put back without the others: who
// is not decided upon yet lies below, in reverse order, and who is decided to go on top.
type stack struct {
	*dryRuns
	list  []int          // the units, in the order of decisions
	marks []cluster.Mark // of the trial before the unit at a position of list went
	sure  []int          // who is decided to go
}

// pile supposes all units of a list gone, and no others.
func (d *dryRuns) pile(list []int) *stack {
	st := &stack{dryRuns: d, list: list, marks: make([]cluster.Mark, len(list))}
	d.q.Trial.Rollback(d.start)
	st.from(len(list), 0)
	return st
}

// from supposes the units from one position down to another gone, on top of those after it, and then those that are decided
// to go.
func (st *stack) from(hi, lo int) {
	for at := hi - 1; at >= lo; at-- {
		st.marks[at] = st.q.Trial.Checkpoint()
		st.evict(st.list[at])
	}
	for _, i := range st.sure {
		st.evict(i)
	}
}

// spares makes a dry run with the units from a position to another there again. If it fails they are gone as before.
func (st *stack) spares(lo, hi int) bool {
	st.q.Trial.Rollback(st.marks[hi-1])
	st.from(0, 0)
	if st.fits() {
		return true
	}
	st.q.Trial.Rollback(st.marks[hi-1])
	st.from(hi, lo)
	return false
}

// decide lets the unit at a position go for good.
func (st *stack) decide(at int) {
	st.q.Trial.Rollback(st.marks[at])
	st.sure = append(st.sure, st.list[at])
	st.from(0, 0)
}
