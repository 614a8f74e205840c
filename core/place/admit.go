// SPDX-License-Identifier: Apache-2.0

package place

import (
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Admit judges p on row n alone, as the state is now, by all native filters: with the pods of its priority or more
// that are nominated there, and then without (as Place does for each row). The outcome has the row, and no total; if p
// does not fit, or a filter fails, it has no row, and a NodeRejection says why. Foreign code is not called, and nothing
// is chosen or drawn.
//
// It is for a placement that was chosen elsewhere on an older state. Refuse is for one that was chosen on this state,
// and lets a placement stand that cannot be judged.
func (pl *Placer) Admit(s cluster.Snapshot, p *cluster.Pod, n cluster.NodeIdx,
	noms Nominations) (Outcome, *NodeRejection) {
	sr := &pl.search
	sr.begin(pl, s, p)
	pl.decide(s, p)
	sr.class = pl.cache.Plans(s, p)
	pl.preFilter(s, sr)
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, search: sr}
	if no := sr.admitted(s.NodeName(n)); no != nil {
		out.Err = sr.err
		return out, no
	}
	added := sr.expect(n, noms.NominatedOn(s.NodeName(n)))
	v := pl.evaluateWith(s, sr, n, added)
	if len(added) > 0 && v == plugin.Fits && sr.err == nil {
		v = pl.evaluateWith(s, sr, n, nil)
	}
	if out.Err = sr.err; out.Err != nil {
		return out, &NodeRejection{Reason: out.Err.Error()}
	}
	if v != plugin.Fits {
		name, texts := pl.ReasonsOf(out, v)
		return out, &NodeRejection{name, strings.Join(texts, ", ")}
	}
	out.Node, out.Feasible, out.Tied = n, 1, 1
	return out, nil
}

// admitted returns why the plans of a search leave out a node; nil if they do not.
func (sr *search) admitted(node string) *NodeRejection {
	_, named := sr.only[node]
	switch {
	case sr.err != nil:
		return &NodeRejection{Reason: sr.err.Error()}
	case sr.stage == rejected:
		return &NodeRejection{sr.placer.profile.Filters[sr.rejecter].Name(), sr.plans[sr.rejecter].Reject}
	case sr.stage == disjoint || sr.only != nil && !named:
		by := strings.Join(sorted(sr.narrowed), ", ")
		return &NodeRejection{by, "node(s) didn't satisfy plugin(s) " + by}
	}
	return nil
}
