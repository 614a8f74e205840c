// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// unitsScale is what counts as many; 0 for what stands beside the constants' names. Only tests set it.
type unitsScale struct {
	many  int // manyUnits
	kinds int // fewKinds
	runs  int // DefaultRuns
	// general searches for one pod as for a gang.
	general bool
}

// FindUnits answers a question about units. The trial is as it was afterwards.
func (f *Finder) FindUnits(q UnitsQuestion) UnitsAnswer {
	s := q.Trial.Snapshot()
	f.budgets.follow(s)
	f.unitRows.follow(s, q.Rule)
	a, done := f.one(s, &q)
	if f.byLone = done; done {
		return a
	}
	us := &f.units
	us.gather(s, &q, &f.unitRows, &f.budgets)
	stuck := us.notGoing(&q)
	d := &dryRuns{q: &q, us: us, base: q.Trial.Checkpoint(), most: cmp.Or(q.Runs, f.scale.runs, DefaultRuns)}
	defer d.end()
	a = UnitsAnswer{Verdict: NotHelpful, Going: us.going, Stuck: stuck, Units: len(us.all)}
	d.begin()
	var list []int // who goes
	found, comes := false, false
	switch {
	case len(us.going) > 0 && d.fits():
		comes = true
		a.Verdict, a.Message = NotEligible, heading+fmt.Sprintf("there is room once %d pods that are terminating have gone.", len(us.going))
	case len(us.all) == 0:
		a.Message = heading + "nobody of lower priority may be evicted."
	case q.Plain:
		list, found = d.plain()
	default:
		list, found, a.Minimum = f.seek(s, d)
	}
	a.Tried, a.Unproved = d.tried, d.unproved
	if q.Strict && found && us.violations(list, nil) > 0 {
		list, found, a.Message, a.Minimum, a.Unproved = nil, false, AllProtected, false, 0
	}
	switch {
	case found && len(list) == 0:
		a.Verdict, a.Message, a.Minimum = NotEligible, heading+"there is room already.", false
	case found:
		a.Verdict, a.Loss, a.Victims = Evict, us.loss(list), us.victims(list)
	case a.Message == "" && !q.Plain && d.spent():
		a.Message = heading + fmt.Sprintf("gave up after %d dry runs.", d.tried)
	case a.Message == "":
		a.Message = heading + fmt.Sprintf("there is no room with all %d units of lower priority gone either.", len(us.all))
	}
	a.Considered = us.considered(list, found || comes)
	if a.Message == AllProtected {
		protected(a.Considered)
	}
	return a
}

// seek finds who goes, as far as it can without dry runs. least tells that it is proved to be the smallest loss.
func (f *Finder) seek(s cluster.Snapshot, d *dryRuns) (list []int, found, least bool) {
	sk := &seeker{dryRuns: d, r: &f.room, many: cmp.Or(f.scale.many, manyUnits)}
	sk.r.survey(s, d.q, d.us, cmp.Or(f.scale.kinds, fewKinds))
	sk.pool()
	if sk.first() || !sk.r.local {
		least = sk.improve()
	}
	return sk.best, sk.found, least
}
