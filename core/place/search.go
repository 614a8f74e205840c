// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// stage is where the verdicts of a search are. It states which fields of the search are valid.
type stage uint8

const (
	// preparing: PreFilter is not complete, or has failed with err. There are no verdicts.
	preparing stage = iota
	// rejected: the filter rejecter rejects the pod for all nodes. There are no verdicts.
	rejected
	// disjoint: the filters in narrowed name sets of nodes without a node in common. There are no verdicts.
	disjoint
	// ofClass: the verdicts are those of the class, which has not written them out. verdicts is not valid.
	ofClass
	// ofGroups: groups of rows were evaluated, and the selection has those that fit. verdicts is not valid.
	ofGroups
	// ofRows: verdicts is a column of the class, and must not be written.
	ofRows
	// ownRows: verdicts is a column of this search, which differs from that of the class.
	ownRows
)

// search is one decision in the making. It reads its class and never writes to it.
type search struct {
	placer *Placer
	state  cluster.Snapshot // of the search
	pod    *cluster.Pod
	class  *classes.Class // of the pod
	stage  stage          // Invariant: it only increases
	err    error          // what fails the attempt, at any stage

	plans []plugin.FilterPlan // per filter of the profile, those of this decision
	// narrowed are the filters that left nodes out before any node was considered, and only what they left; nil means
	// all.
	narrowed []string
	only     map[string]struct{}
	rejecter int // index of the filter; valid if rejected

	verdicts  []plugin.Verdict  // row -> verdict; valid from ofRows on, for the rows to look at
	rows      []cluster.NodeIdx // the rows to look at, in index order; nil means all
	selection classes.Selection // the groups that fit; valid if ofGroups, and for an Outcome whose Path is Grouped
	by        classes.Totals    // how the class's part of the totals is computed, once chosen
	fit       []cluster.NodeIdx // the rows to rank, in index order; valid if uncached or foreign scorers took part
	parts     []part            // what each uncached or foreign scorer gave
	prepared  []preparedScore   // the uncached scores of this decision
	foreign   map[cluster.NodeIdx]ForeignRejection

	// expected are the rows with pods on which other pods count too, in no order; these pods are in expectedPods.
	expected     []expectation
	expectedPods []*cluster.Pod
	own          ownNode

	// Space that searches reuse.
	copied   []plugin.Verdict
	rowSpace []cluster.NodeIdx
	names    []string          // of the rows, for foreign code
	first    []cluster.NodeIdx // by position in the selection: a row of the group
	sizes    []int             // by position in the selection: rows in the group
}

// expectation is the pods of the priority of the pod or more that are nominated to a row.
type expectation struct {
	row  cluster.NodeIdx
	pods []*cluster.Pod
}

// preparedScore is an uncached scorer, its index in the profile, and its score.
type preparedScore struct {
	Scorer
	at    int
	score plugin.UncachedScore
}

// part is what one scorer that is no column of the class gave to each row of fit.
type part struct {
	name            string
	at              int // index in the profile's scorers; after all of them for foreign ones
	raw, normalised []int64
	weight          int64
}

func (sr *search) begin(pl *Placer, s cluster.Snapshot, p *cluster.Pod) {
	*sr = search{placer: pl, state: s, pod: p, stage: preparing,
		plans: sr.plans[:0], narrowed: sr.narrowed[:0], selection: sr.selection,
		fit: sr.fit[:0], parts: sr.parts[:0], prepared: sr.prepared[:0],
		expected: sr.expected[:0], expectedPods: sr.expectedPods[:0],
		copied: sr.copied[:0], rowSpace: sr.rowSpace[:0], names: sr.names[:0], first: sr.first[:0], sizes: sr.sizes[:0]}
}

// withoutNodes reports whether the pod was rejected before any node was considered.
func (sr *search) withoutNodes() bool { return sr.stage == rejected || sr.stage == disjoint }

// judged reports whether there are verdicts.
func (sr *search) judged() bool { return sr.stage >= ofClass }

// readRows makes verdicts valid, for a search that has to look at rows, if there are verdicts.
func (sr *search) readRows() {
	was := sr.stage
	if was == ofClass || was == ofGroups {
		sr.stage, sr.verdicts = ofRows, sr.class.Verdicts(sr.rows)
	}
	if was == ofGroups {
		sr.placer.lateFilters(sr.state, sr)
	}
}

// ownRows makes verdicts a column of this search, which can be written.
func (sr *search) ownRows() {
	if sr.readRows(); sr.stage == ofRows {
		sr.copied = append(sr.copied[:0], sr.verdicts...)
		sr.stage, sr.verdicts = ownRows, sr.copied
	}
}

// ranked reports whether the class alone decides, by its ranking of all rows.
func (sr *search) ranked() bool {
	return (sr.stage == ofClass || sr.stage == ofRows) && sr.rows == nil && !sr.placer.eachRow
}

// preFilter joins the plans of the class with those of uncached filters, in the order of the profile, up to the first
// that ends the search: after a rejection that evictions may resolve, the other filters are prepared, because preemption
// uses them, and the last such rejection counts (upstream: framework/runtime, RunPreFilterPlugins).
func (pl *Placer) preFilter(s cluster.Snapshot, sr *search) {
	for i, f := range pl.profile.Filters {
		plan := sr.class.Plan(i)
		if pl.cache.Uncached(i) {
			pl.meter.Plugin(plugin.AtPreFilter, f.Name())
			plan = f.PrepareFilter(s, sr.pod)
		}
		sr.plans = append(sr.plans, plan)
		switch {
		case plan.Err != nil:
			sr.err = fmt.Errorf("running PreFilter plugin %q: %w", f.Name(), plan.Err)
			return
		case plan.Reject != "":
			sr.stage, sr.rejecter = rejected, i
			if !plan.Resolvable {
				return
			}
		case plan.Nodes != nil:
			sr.narrowed = append(sr.narrowed, f.Name())
			if sr.only = plugin.IntersectNodes(sr.only, plan.Nodes); len(sr.only) == 0 {
				sr.stage = disjoint
				return
			}
		}
	}
}

// exclude leaves the nodes out that uncached plans do not name.
func (sr *search) exclude(s cluster.Snapshot) {
	sr.ownRows()
	for n := range sr.verdicts {
		if node := s.Node(cluster.NodeIdx(n)); node != nil {
			if _, ok := sr.only[node.Name]; !ok {
				sr.verdicts[n] = plugin.Excluded
			}
		}
	}
}

// lateFilters runs the filters from the first uncached one on.
func (pl *Placer) lateFilters(s cluster.Snapshot, sr *search) {
	ran := false
	for i := pl.cache.FirstUncached(); i < len(sr.plans); i++ {
		f := sr.plans[i].Filter
		if f == nil || pl.quiet(s, f) {
			continue
		}
		sr.ownRows()
		if !ran {
			pl.meter.Did(record.RowsEvaluated, sr.len())
			ran = true
		}
		pl.meter.Plugin(plugin.AtFilter, pl.profile.Filters[i].Name())
		tag := plugin.TagOf(i)
		if sr.rows == nil {
			f.Column(s, 0, cluster.NodeIdx(len(sr.verdicts)), tag, sr.verdicts)
			pl.checkFailed(sr, i)
		}
		for _, n := range sr.rows {
			f.Column(s, n, n+1, tag, sr.verdicts)
			pl.checkFailed(sr, i)
		}
		if sr.err != nil {
			return
		}
	}
}

// quiet reports whether a filter is known to reject no row. The ranking of the class is valid if all late filters are.
func (pl *Placer) quiet(s cluster.Snapshot, f plugin.PodFilter) bool {
	q, can := f.(plugin.Quiet)
	return can && !pl.eachRow && q.Quiet(s)
}

// checkFailed is due after each use of a filter: the next one forgets what failed.
func (pl *Placer) checkFailed(sr *search, i int) {
	if failing, can := sr.plans[i].Filter.(plugin.Failing); can && failing.Failed() != nil && sr.err == nil {
		sr.err = filterError(pl.profile.Filters[i], failing.Failed())
	}
}

func filterError(f plugin.Filter, err error) error {
	return fmt.Errorf("running %q filter plugin: %w", f.Name(), err)
}

// evaluate is the verdict on a supposed node.
func (pl *Placer) evaluate(s cluster.Snapshot, sr *search, v *cluster.NodeView) plugin.Verdict {
	for i := range sr.plans {
		if f := sr.plans[i].Filter; f != nil {
			code := f.Plain(s, v)
			pl.checkFailed(sr, i)
			if code != plugin.Fit {
				return plugin.TagOf(i).With(code)
			}
		}
	}
	return plugin.Fits
}

// len and at run over the rows to look at, in index order.
func (sr *search) len() int {
	if sr.rows != nil {
		return len(sr.rows)
	}
	return len(sr.verdicts)
}

func (sr *search) at(i int) cluster.NodeIdx {
	if sr.rows != nil {
		return sr.rows[i]
	}
	return cluster.NodeIdx(i)
}
