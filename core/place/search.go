// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// search is one decision in the making. It reads what its class keeps and never writes to it.
type search struct {
	placer  *Placer
	state   cluster.Snapshot // as it is when it is asked again
	class   *classes.Class   // of the pod
	grouped grouped          // when it is by groups
	by      classes.Totals   // how the class's part of the totals is computed, once chosen
	pod     *cluster.Pod
	plans   []plugin.FilterPlan // per filter of the profile, those of this decision
	// narrowed are the filters that left nodes out before looking at them, and only what they left; nil means all.
	narrowed []string
	only     map[string]struct{}
	reject   int   // index of the filter that rejects the pod as a whole, -1
	err      error // what fails the attempt

	// judged reports whether there are verdicts: not when the pod was rejected before any node was looked at.
	judged bool
	// folded is set while verdicts are still to be read from the class; see unfold. Place alone works with such a
	// search, as long as it needs no scan of all rows.
	folded bool
	// verdicts are those of the class, or a copy in copied once something differs for this decision.
	verdicts []plugin.Verdict
	copied   []plugin.Verdict
	rows     []cluster.NodeIdx // the rows to look at; nil means all
	rowSpace []cluster.NodeIdx

	fit     []cluster.NodeIdx // the rows to rank, in index order; valid when listed
	names   []string          // of the rows that foreign code is asked about
	parts   []part            // what each scorer gave, when ranked was by parts
	foreign map[cluster.NodeIdx]ForeignRejection

	// expected are the rows with pods that this one has to reckon with, in no order; their pods lie in expectedPods.
	expected     []expectation
	expectedPods []*cluster.Pod
}

// part is what one scorer that is no column of the class gave to each row of fit.
type part struct {
	name            string
	at              int // index in the profile's scorers; after all of them for foreign ones
	raw, normalised []int64
	weight          int64
}

func (sr *search) begin(pl *Placer, s cluster.Snapshot, p *cluster.Pod) {
	*sr = search{placer: pl, state: s, pod: p, reject: -1,
		plans: sr.plans[:0], narrowed: sr.narrowed[:0], copied: sr.copied[:0], rowSpace: sr.rowSpace[:0],
		fit: sr.fit[:0], parts: sr.parts[:0], names: sr.names[:0], grouped: sr.grouped,
		expected: sr.expected[:0], expectedPods: sr.expectedPods[:0]}
	sr.grouped.active = false
}

// nowhere reports whether the pod was rejected before any node was looked at.
func (sr *search) nowhere() bool { return sr.reject >= 0 || sr.only != nil && len(sr.only) == 0 }

// preFilter joins the plans of the class with those of wide filters, in the order of the profile, up to the first that
// ends the search (upstream: framework/runtime, RunPreFilterPlugins).
func (pl *Placer) preFilter(s cluster.Snapshot, sr *search) {
	for i, f := range pl.profile.Filters {
		plan := sr.class.Plan(i)
		if pl.cache.Wide(i) {
			pl.meter.Plugin(plugin.AtPreFilter, f.Name())
			plan = f.PrepareFilter(s, sr.pod)
		}
		sr.plans = append(sr.plans, plan)
		switch {
		case plan.Err != nil:
			sr.err = fmt.Errorf("running PreFilter plugin %q: %w", f.Name(), plan.Err)
			return
		case plan.Reject != "":
			sr.reject = i
			return
		case plan.Nodes != nil:
			sr.narrowed = append(sr.narrowed, f.Name())
			if sr.only = plugin.IntersectNodes(sr.only, plan.Nodes); len(sr.only) == 0 {
				return
			}
		}
	}
}

// unfold reads the verdicts of the class, for a search that has to look at rows.
func (sr *search) unfold() {
	if sr.folded {
		sr.folded = false
		sr.verdicts = sr.class.Verdicts(sr.rows)
	}
}

// ranked reports whether the class alone decides, by its ranking of all rows.
func (sr *search) ranked() bool { return sr.rows == nil && len(sr.copied) == 0 && !sr.placer.eachRow }

// ownVerdicts makes the verdicts this decision's.
func (sr *search) ownVerdicts() {
	if sr.unfold(); len(sr.copied) == 0 {
		sr.copied = append(sr.copied, sr.verdicts...)
		sr.verdicts = sr.copied
	}
}

// exclude leaves the nodes out that wide plans do not name.
func (sr *search) exclude(s cluster.Snapshot) {
	sr.ownVerdicts()
	for n := range sr.verdicts {
		if node := s.Node(cluster.NodeIdx(n)); node != nil {
			if _, ok := sr.only[node.Name]; !ok {
				sr.verdicts[n] = plugin.Excluded
			}
		}
	}
}

// lateFilters runs the filters from the first wide one on.
func (pl *Placer) lateFilters(s cluster.Snapshot, sr *search) {
	for i := pl.cache.FirstWide(); i < len(sr.plans); i++ {
		f := sr.plans[i].Filter
		if f == nil || pl.quiet(s, f) {
			continue
		}
		sr.ownVerdicts()
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

// quiet reports whether a filter has no word on any row. The class's ranking holds where all late filters are.
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

// nominated judges the rows anew that have nominated pods of p's priority or more: with them, and, where p still
// fits, without (upstream: RunFilterPluginsWithNominatedPods). Nominated pods come before wide filters: one that
// would fail on a node is not asked if they leave too little capacity.
func (pl *Placer) nominated(s cluster.Snapshot, sr *search, noms Nominations) {
	if !sr.judged {
		return
	}
	for _, name := range noms.NominatedNodes() {
		sr.unfold()
		n, ok := s.Find(name)
		if !ok || sr.rows != nil && !slices.Contains(sr.rows, n) || sr.verdicts[n] == plugin.Excluded {
			continue
		}
		added := sr.expect(n, noms.NominatedOn(name))
		if len(added) == 0 {
			continue
		}
		// If the first pass rejects, its reasons are reported.
		v := pl.plainWith(s, sr, n, added)
		if v == plugin.Fits {
			continue
		}
		sr.ownVerdicts()
		sr.verdicts[n] = v
	}
}

// expectation is the pods of the priority of the pod in hand or more that are nominated to a row.
type expectation struct {
	row  cluster.NodeIdx
	pods []*cluster.Pod
}

// expect notes and returns those of the pods nominated to a row that the pod in hand has to reckon with.
func (sr *search) expect(n cluster.NodeIdx, nominated []*cluster.Pod) []*cluster.Pod {
	first := len(sr.expectedPods)
	for _, other := range nominated {
		if other.UID != sr.pod.UID && other.Spec.Priority >= sr.pod.Spec.Priority {
			sr.expectedPods = append(sr.expectedPods, other)
		}
	}
	pods := sr.expectedPods[first:len(sr.expectedPods):len(sr.expectedPods)]
	if len(pods) > 0 {
		sr.expected = append(sr.expected, expectation{n, pods})
	}
	return pods
}

// plainWith is the verdict on a row on which pods are supposed besides its own.
func (pl *Placer) plainWith(s cluster.Snapshot, sr *search, n cluster.NodeIdx, added []*cluster.Pod) plugin.Verdict {
	view := &pl.view
	s.ViewInto(n, view)
	for _, other := range added {
		view.AddPod(other)
		sr.suppose(s, other, view, true)
	}
	v := pl.plain(s, sr, view)
	for _, other := range slices.Backward(added) {
		view.RemovePod(other.UID)
		sr.suppose(s, other, view, false)
	}
	return v
}

// suppose adds a pod to the filters that count pods of other rows, or removes it again.
func (sr *search) suppose(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView, there bool) {
	for i := range sr.plans {
		f, counts := sr.plans[i].Filter.(plugin.Supposing)
		switch {
		case !counts:
		case there:
			f.AddPod(s, other, v)
		default:
			f.RemovePod(s, other, v)
		}
	}
}

// plain is the verdict on a supposed node.
func (pl *Placer) plain(s cluster.Snapshot, sr *search, v *cluster.NodeView) plugin.Verdict {
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

// ownFirst is own before any other node with nominated pods is looked at, of which there may be as many as pods for
// which others were evicted. False says nothing.
func (pl *Placer) ownFirst(s cluster.Snapshot, sr *search, noms Nominations) (cluster.NodeIdx, bool) {
	n, ok := s.Find(sr.pod.Nominated)
	switch f := pl.profile.Foreign; {
	case sr.pod.Nominated == "" || !ok || sr.err != nil || sr.nowhere() || sr.rows != nil || pl.eachRow:
		return cluster.NoNode, false
	case pl.profile.Search.Strategy == FixedWindow || f != nil && f.Takes(sr.pod):
		return cluster.NoNode, false
	}
	if _, left := sr.only[sr.pod.Nominated]; sr.only != nil && !left {
		return cluster.NoNode, false
	}
	added := sr.expect(n, noms.NominatedOn(sr.pod.Nominated))
	fits := sr.fits(pl.plainWith(s, sr, n, added)) && (len(added) == 0 || sr.fits(pl.plainWith(s, sr, n, nil)))
	sr.err, sr.expected, sr.expectedPods = nil, sr.expected[:0], sr.expectedPods[:0]
	return n, fits
}

func (sr *search) fits(v plugin.Verdict) bool { return v == plugin.Fits && sr.err == nil }

// own tries the node that p is itself nominated to, ahead of all others (upstream: evaluateNominatedNode).
func (pl *Placer) own(s cluster.Snapshot, sr *search) (cluster.NodeIdx, bool) {
	if sr.pod.Nominated == "" {
		return cluster.NoNode, false
	}
	n, ok := s.Find(sr.pod.Nominated)
	if !ok {
		return cluster.NoNode, false
	}
	sr.unfold()
	if sr.rows != nil && !slices.Contains(sr.rows, n) || sr.verdicts[n] == plugin.Excluded {
		pl.excludedOwn(s, sr, n)
	}
	if sr.verdicts[n] != plugin.Fits {
		return cluster.NoNode, false
	}
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		rejected, err := f.Filter(sr.pod, []string{sr.pod.Nominated})
		if _, no := rejected[sr.pod.Nominated]; no || err != nil {
			return cluster.NoNode, false // an error here fails nothing: all nodes are asked about next
		}
	}
	return n, true
}

// forgiveOwn forgets an error of a filter when the node that p is itself nominated to fits: no other node is looked at
// then, so the error has no effect.
func (pl *Placer) forgiveOwn(s cluster.Snapshot, sr *search) {
	n, ok := s.Find(sr.pod.Nominated)
	if sr.pod.Nominated == "" || !ok || !sr.judged {
		return
	}
	err := sr.err
	sr.err = nil
	if v := pl.plain(s, sr, s.View(n)); v != plugin.Fits || sr.err != nil {
		sr.err = err
		return
	}
	sr.ownVerdicts()
	sr.verdicts[n] = plugin.Fits
}

// excludedOwn judges the node that p is itself nominated to though plans leave it out, as upstream does: the record
// then has the verdict of a filter. An error fails nothing here.
func (pl *Placer) excludedOwn(s cluster.Snapshot, sr *search, n cluster.NodeIdx) {
	err := sr.err
	v := pl.plain(s, sr, s.View(n))
	failed := sr.err != err
	if sr.err = err; failed {
		return
	}
	sr.ownVerdicts()
	sr.verdicts[n] = v
	if sr.rows != nil {
		at, _ := slices.BinarySearch(sr.rows, n)
		sr.rows = slices.Insert(sr.rows, at, n)
		sr.rowSpace = sr.rows
	}
}

// askForeign lets foreign code reject rows that fit.
func (pl *Placer) askForeign(s cluster.Snapshot, sr *search) {
	f := pl.profile.Foreign
	if f == nil || !f.Takes(sr.pod) {
		return
	}
	sr.unfold()
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			sr.names = append(sr.names, s.NodeName(n))
		}
	}
	if len(sr.names) == 0 {
		return
	}
	rejected, err := f.Filter(sr.pod, sr.names)
	if err != nil {
		sr.err = err
		return
	}
	for _, name := range sr.names {
		if why, no := rejected[name]; no {
			n, _ := s.Find(name)
			sr.ownVerdicts()
			sr.verdicts[n] = plugin.Foreign
			if sr.foreign == nil {
				sr.foreign = map[cluster.NodeIdx]ForeignRejection{}
			}
			sr.foreign[n] = why
		}
	}
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
