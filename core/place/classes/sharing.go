// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// amountPlugins are the filters and scorers that a class needs besides those of its sharedClass: they read amounts.
type amountPlugins struct {
	filters  []taggedFilter
	scorers  []Scorer
	scores   []plugin.PodScore
	partials []partialScore // of scores, in their order
	rawAt    []int          // sharedClass.raws -> index in the scorers of the class
}

// partialScore is the part of a score that is the same for all classes; score is nil for a score without one.
type partialScore struct {
	score plugin.PartialScorer
	id    any // identifies the part; comparable
	fill  func(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
}

func partialOf(score plugin.PodScore) partialScore {
	if h, can := score.(plugin.PartialScorer); can {
		if id := h.Part(); id != nil {
			return partialScore{h, id, h.PartColumn}
		}
	}
	return partialScore{}
}

// split sorts the prepared plugins of a class into those of its sharedClass and those of its own; ok is false when
// there are others, or when totals may not fit a code.
func split(pr *profile, r *results) (shared *sharedClass, own amountPlugins, ok bool) {
	shared = newSharedClass()
	if !pr.compactable || r.only != nil {
		return nil, own, false
	}
	for i := range r.covers {
		f := r.plans[i].Filter
		if f == nil {
			continue
		}
		switch plugin.PreparedReads(f, pr.reads[i]) {
		case plugin.ReadsNode:
			shared.filters = append(shared.filters, taggedFilter{f, plugin.TagOf(i)})
		case plugin.ReadsAmounts:
			own.filters = append(own.filters, taggedFilter{f, plugin.TagOf(i)})
		default:
			return nil, own, false
		}
	}
	for i := range r.scorers {
		sc := &r.scorers[i]
		asIs, reads := sc.Normal() == plugin.AsIs, plugin.PreparedReads(sc.score, sc.Reads())
		switch {
		case reads.ByNode() && asIs:
			shared.scorers, shared.scores = append(shared.scorers, sc.Scorer), append(shared.scores, sc.score)
		case reads.ByNode():
			shared.raws = append(shared.raws, rawScore{sc.score, sc.Normal(), sc.Weight})
			own.rawAt = append(own.rawAt, i)
		case reads == plugin.ReadsAmounts && asIs:
			own.scorers, own.scores = append(own.scorers, sc.Scorer), append(own.scores, sc.score)
			own.partials = append(own.partials, partialOf(sc.score))
		default:
			return nil, own, false
		}
	}
	return shared, own, len(shared.raws) <= maxRaws
}

// sharedClasses are the sharedClasses that classes of a Cache use.
type sharedClasses struct {
	bySpec map[*cluster.PodSpec]*sharedClass // `cluster.PodSpec.WithoutRequests` -> sharedClass
	bytes  int                               // Invariant: the sum of size over bySpec
}

// attach returns the sharedClass, up to date, of a class that was just prepared, and the other plugins of the class. It
// returns nil if codes cannot represent the class.
func (all *sharedClasses) attach(pr *profile, w *workspace, s cluster.Snapshot, spec *cluster.PodSpec,
	r *results) (*sharedClass, amountPlugins) {
	if spec.WithoutRequests == nil {
		return nil, amountPlugins{}
	}
	fresh, own, ok := split(pr, r)
	if !ok {
		return nil, own
	}
	known := all.bySpec[spec.WithoutRequests]
	if known == nil {
		known, fresh.spec = fresh, spec.WithoutRequests
		all.bySpec[spec.WithoutRequests] = known
	}
	known.users++
	all.update(known, w, s)
	return known, own
}

// update brings a sharedClass up to date.
func (all *sharedClasses) update(k *sharedClass, w *workspace, s cluster.Snapshot) {
	k.update(w, s)
	all.bytes += k.bytes() - k.size
	k.size = k.bytes()
}

// detach ends the use of k by a class; k may be nil.
func (all *sharedClasses) detach(k *sharedClass) {
	if k == nil {
		return
	}
	if k.users--; k.users == 0 {
		delete(all.bySpec, k.spec)
		all.bytes -= k.size
	}
}

// invalidate makes the sharedClass of a spec evaluate all rows anew when it is used next.
func (all *sharedClasses) invalidate(spec *cluster.PodSpec) {
	if k := all.bySpec[spec.WithoutRequests]; k != nil {
		k.invalid = true
	}
}
