// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// DefaultUnitsLimit is how many dry runs a search for a smaller loss may take.
const DefaultUnitsLimit = 256

// FindUnits answers a question about units. The trial is as it was afterwards.
func (f *Finder) FindUnits(q UnitsQuestion) UnitsAnswer {
	s := q.Trial.Snapshot()
	f.budgets.follow(s)
	us := &f.units
	us.gather(s, &q, &f.budgets)
	d := &dryRuns{q: &q, us: us, base: q.Trial.Checkpoint(), in: make([]bool, len(us.all))}
	defer d.end()
	a := UnitsAnswer{Verdict: NotHelpful, Going: us.going, Units: len(us.all), Considered: us.kept}
	d.begin()
	switch {
	case len(us.going) > 0 && d.fits():
		a.Verdict, a.Message = NotEligible, heading+fmt.Sprintf("there is room once %d pods that are terminating have gone.", len(us.going))
	case len(us.all) == 0:
		a.Message = heading + "nobody of lower priority may be evicted."
	case !d.plain():
		a.Message = heading + fmt.Sprintf("there is no room with all %d units of lower priority gone either.", len(us.all))
	case !slices.Contains(d.in, true):
		a.Verdict, a.Message = NotEligible, heading+"there is room already."
	default:
		a.Verdict, a.Loss, a.Victims = Evict, us.loss(d.in), us.victims(d.in)
	}
	a.Tried = d.tried
	return a
}

// dryRuns suppose units gone in a trial.
type dryRuns struct {
	q     *UnitsQuestion
	us    *units
	base  cluster.Mark // of the trial as it was asked about
	start cluster.Mark // with the terminating pods gone
	in    []bool       // by unit: it is to go
	tried int
}

func (d *dryRuns) begin() {
	for _, p := range d.us.going {
		d.q.Trial.Evict(p.UID)
	}
	d.start = d.q.Trial.Checkpoint()
}

func (d *dryRuns) end() { d.q.Trial.Rollback(d.base) }

// fits makes a dry run with the trial as it is.
func (d *dryRuns) fits() bool {
	d.tried++
	return d.q.Fits()
}

// fitsWithout makes a dry run with those units gone that in says.
func (d *dryRuns) fitsWithout(in []bool) bool {
	d.q.Trial.Rollback(d.start)
	for i := range in {
		if in[i] {
			d.evict(i)
		}
	}
	return d.fits()
}

func (d *dryRuns) evict(i int) {
	u := &d.us.all[i]
	for _, pl := range d.us.pods[u.lo:u.hi] {
		d.q.Trial.Evict(pl.pod.UID)
	}
}

// plain is the plain form. All units are supposed gone; then one after the other is spared, in their order, if there are
// still places beside it. Where one that was kept from being spared might be so later, because places depend on who else is
// gone, it is asked again until nobody more is spared. It leaves who goes in d.in; false where there are no places with all
// units gone.
func (d *dryRuns) plain() bool {
	for i := range d.in {
		d.in[i] = true
	}
	if !d.fitsWithout(d.in) {
		return false
	}
	for spared := true; spared; {
		spared = false
		for i := range d.in {
			if !d.in[i] {
				continue
			}
			if d.in[i] = false; d.fitsWithout(d.in) {
				spared = true
			} else {
				d.in[i] = true
			}
		}
	}
	return true
}
