// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Bounds limits the nodes on which pods like a given pod can be placed, before any of them is placed.
type Bounds struct {
	// Rows are the rows that every node-local filter accepts, in index order. More pods on the nodes
	// can only make them fewer.
	Rows []cluster.NodeIdx
	// Alone is set if no other filter applies to this pod, and no foreign code.
	Alone bool
	// Demands are amounts that a pod like it takes wherever it is (see plugin.Demander).
	Demands []plugin.Demand
	// Apart are label keys: no two pods like it are on nodes with one value (see plugin.Repeller).
	Apart []string
	// Against are the names of the filters that reject some row, or may reject one later because of pods like it,
	// sorted.
	Against []string
}

// Bound returns the bounds on the placement of p; ok is false when a filter fails. A pod that is rejected before any
// node is considered has no rows: what others of its kind do changes nothing about that.
func (pl *Placer) Bound(s cluster.Snapshot, p *cluster.Pod) (b Bounds, ok bool) {
	sr := pl.localVerdicts(s, p, noNominations{})
	if sr.err != nil {
		return b, false
	}
	b.Rows = []cluster.NodeIdx{}
	if sr.withoutNodes() {
		b.Against = pl.Why(s, Outcome{Nodes: s.Nodes(), search: sr}).Plugins
		return b, true
	}
	rejects := make([]bool, len(pl.profile.Filters))
	for i := range sr.len() {
		n := sr.at(i)
		if by, rejected := sr.verdicts[n].Filter(); rejected {
			rejects[by] = true
		} else if sr.verdicts[n] == plugin.Fits {
			b.Rows = append(b.Rows, n)
		}
	}
	b.Against = pl.mayReject(sr, rejects)
	b.Alone = pl.alone(sr)
	b.Demands, b.Apart = pl.demands(s, p), nil
	for _, f := range pl.profile.Filters {
		if r, repels := f.(plugin.Repeller); repels {
			b.Apart = append(b.Apart, r.Apart(s, p)...)
		}
	}
	return b, true
}

// Alone reports whether only node-local filters applied in a search that rejected some rows.
func (pl *Placer) Alone(out Outcome) bool { return !out.search.withoutNodes() && pl.alone(out.search) }

func (pl *Placer) alone(sr *search) bool {
	if pl.profile.Foreign != nil && pl.profile.Foreign.Takes(sr.pod) {
		return false
	}
	for i := pl.cache.FirstUncached(); i < len(sr.plans); i++ {
		if sr.plans[i].Filter != nil {
			return false
		}
	}
	return true
}

// mayReject names the filters that reject some row so far, or may reject one later.
func (pl *Placer) mayReject(sr *search, rejects []bool) []string {
	names := slices.Clone(sr.narrowed)
	for i, f := range pl.profile.Filters {
		_, sums := f.(plugin.Demander)
		if rejects[i] || sums || i >= pl.cache.FirstUncached() && sr.plans[i].Filter != nil {
			names = append(names, f.Name())
		}
	}
	if pl.profile.Foreign != nil && pl.profile.Foreign.Takes(sr.pod) {
		names = append(names, ForeignName)
	}
	return sorted(names)
}

func (pl *Placer) demands(s cluster.Snapshot, p *cluster.Pod) (all []plugin.Demand) {
	for _, f := range pl.profile.Filters {
		if d, sums := f.(plugin.Demander); sums {
			all = append(all, d.Demands(s, p)...)
		}
	}
	return all
}

// EmptyNodes judges nodes for one pod as if no pod were on them, by the filters that look at one node alone.
type EmptyNodes struct {
	pod     *cluster.Pod
	filters []plugin.PodFilter
	only    map[string]struct{} // the nodes that plans leave; nil means all
	// Nowhere is why no node will do; empty otherwise.
	Nowhere string
	view    *cluster.NodeView
}

// EmptyNodes prepares to judge empty nodes for p.
func (pl *Placer) EmptyNodes(s cluster.Snapshot, p *cluster.Pod) *EmptyNodes {
	e := &EmptyNodes{pod: p}
	for i, f := range pl.profile.Filters {
		if pl.cache.Uncached(i) {
			continue
		}
		plan := f.PrepareFilter(s, classes.Representative(p))
		switch {
		case plan.Err != nil:
			continue // a failure proves nothing
		case plan.Reject != "" && !plan.Resolvable:
			e.Nowhere = plan.Reject
		case plan.Nodes != nil:
			e.only = plugin.IntersectNodes(e.only, plan.Nodes)
		}
		if plan.Filter != nil {
			e.filters = append(e.filters, plan.Filter)
		}
	}
	return e
}

// Copies is how many pods like this one fit the node of a row by themselves, at most most of them. It is never less
// than the truth.
func (e *EmptyNodes) Copies(s cluster.Snapshot, n cluster.NodeIdx, most int) int {
	if e.Nowhere != "" {
		return 0
	}
	if _, named := e.only[s.NodeName(n)]; e.only != nil && !named {
		return 0
	}
	e.view = s.EmptyView(n, e.view)
	for k := range most {
		for _, f := range e.filters {
			if code := f.Plain(s, e.view); code != plugin.Fit && !failed(f) {
				return k
			}
		}
		e.view.AddPod(e.pod)
	}
	return most
}

func failed(f plugin.PodFilter) bool {
	failing, can := f.(plugin.Failing)
	return can && failing.Failed() != nil
}
