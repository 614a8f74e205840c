// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Rejections returns why each row was rejected in a decision that found no node (upstream: NodeToStatus of a
// Diagnosis). It must be called before the Placer's next search; the result stays good after it.
func (pl *Placer) Rejections(out Outcome) func(cluster.NodeIdx) plugin.NodeRejection {
	sr := out.search
	switch sr.stage {
	case rejected:
		plan := sr.plans[sr.rejecter]
		all := plugin.NodeRejection{Plugin: pl.profile.Filters[sr.rejecter].Name(), Reasons: []string{plan.Reject},
			Unresolvable: !plan.Resolvable}
		return func(cluster.NodeIdx) plugin.NodeRejection { return all }
	case disjoint:
		all := plugin.NodeRejection{Reasons: []string{disjointText(sorted(sr.narrowed))}, Unresolvable: true}
		return func(cluster.NodeIdx) plugin.NodeRejection { return all }
	}
	sr.readRows()
	r := rejections{verdicts: slices.Clone(sr.verdicts), of: map[plugin.Verdict]plugin.NodeRejection{},
		foreign: sr.foreign, excluded: plugin.NodeRejection{Unresolvable: true}}
	if len(sr.narrowed) > 0 {
		r.excluded.Reasons = []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sorted(sr.narrowed))}
	}
	if sr.rows != nil {
		r.looked = map[cluster.NodeIdx]bool{}
	}
	for i := range sr.len() {
		n := sr.at(i)
		if r.looked != nil {
			r.looked[n] = true
		}
		r.add(pl, sr, r.verdicts[n])
	}
	return r.on
}

// rejections are the rejections of a search that judged rows.
type rejections struct {
	verdicts []plugin.Verdict
	looked   map[cluster.NodeIdx]bool                // row -> it was judged; nil if all were
	of       map[plugin.Verdict]plugin.NodeRejection // verdict of a filter -> its rejection
	foreign  map[cluster.NodeIdx]ForeignRejection    // row -> the rejection
	excluded plugin.NodeRejection                    // of rows that were not judged
}

// add notes the rejection of a verdict.
func (r *rejections) add(pl *Placer, sr *search, v plugin.Verdict) {
	i, is := v.Filter()
	if _, known := r.of[v]; known || !is {
		return
	}
	r.of[v] = plugin.NodeRejection{
		Plugin: pl.profile.Filters[i].Name(), Reasons: sr.plans[i].Filter.Reasons(v.Code()),
		Unresolvable: v.Code()&plugin.Unresolvable != 0, Pending: sr.pending(v),
	}
}

// on returns the rejection of a row.
func (r *rejections) on(n cluster.NodeIdx) plugin.NodeRejection {
	if n == cluster.NoNode || int(n) >= len(r.verdicts) || r.looked != nil && !r.looked[n] {
		return r.excluded
	}
	if why, foreign := r.foreign[n]; foreign && r.verdicts[n] == plugin.Foreign {
		return plugin.NodeRejection{Plugin: why.By, Reasons: []string{why.Reason}, Unresolvable: why.Unresolvable}
	}
	if of, known := r.of[r.verdicts[n]]; known {
		return of
	}
	return r.excluded
}
