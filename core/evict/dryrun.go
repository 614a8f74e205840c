// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// DryRun places the preemptor in a trial as it is, and takes it off again.
type DryRun struct {
	Need   gang.Need
	Ground func() *gang.Ground // a new one for each search
	Trial  *cluster.Trial
}

// dryRun makes one. Each search has the same draws, by the number of a decision: what it finds depends on the trial
// alone.
func (m *Manager) dryRun(prof *Profile, trial *cluster.Trial, need gang.Need, decision uint64,
	noms place.Nominations) DryRun {
	return DryRun{need, func() *gang.Ground {
		draw := place.Draw(m.seed, decision)
		return &gang.Ground{Trial: trial, Placer: prof.Placer, Nominations: noms, Draw: draw,
			Reservers: prof.Reservers, Placements: prof.Placements, Meter: m.meter,
			DryRun: true}
	}, trial}
}

// Where returns the rows by member, nil if there is no placement.
func (r DryRun) Where() []cluster.NodeIdx {
	mark := r.Trial.Checkpoint()
	ans := gang.Place(r.Need, r.Ground())
	for _, i := range slices.Backward(ans.Order) {
		for _, h := range slices.Backward(ans.Holds[i]) {
			h.Hold.Release(r.Trial, false)
		}
	}
	r.Trial.Rollback(mark)
	if ans.Verdict != gang.Placed {
		return nil
	}
	return ans.Nodes
}

// Fits reports whether there is a placement.
func (r DryRun) Fits() bool { return r.Where() != nil }

// Without is Where with some pods gone.
func (r DryRun) Without(pods []*cluster.Pod) []cluster.NodeIdx {
	mark := r.Trial.Checkpoint()
	defer r.Trial.Rollback(mark)
	for _, p := range pods {
		r.Trial.Evict(p.UID)
	}
	return r.Where()
}

// RequiredKeys returns the topology keys by whose values all members must be together.
func RequiredKeys(need gang.Need) (keys []string) {
	for _, level := range need.Topology {
		if level.Required {
			keys = append(keys, level.Key)
		}
	}
	return keys
}

// VictimPods returns the pods of the victims of a search.
func VictimPods(a *units.Answer) (pods []*cluster.Pod) {
	for i := range a.Victims {
		pods = append(pods, a.Victims[i].Pods...)
	}
	return pods
}
