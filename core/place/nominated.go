// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Nominations returns the nodes on which pods are expected that are not there yet.
type Nominations interface {
	// NominatedNodes are the nodes with nominated pods, sorted by name.
	NominatedNodes() []string
	// NominatedOn are the pods nominated to a node, in a fixed order.
	NominatedOn(node string) []*cluster.Pod
}

// noNominations are no nominations.
type noNominations struct{}

func (noNominations) NominatedNodes() []string          { return nil }
func (noNominations) NominatedOn(string) []*cluster.Pod { return nil }

// evaluateNominated judges the rows anew that have nominated pods of p's priority or more: with them, and, where p
// still fits, without (upstream: RunFilterPluginsWithNominatedPods). Nominated pods come before uncached filters: one
// that would fail on a node does not run if they leave too little capacity.
func (pl *Placer) evaluateNominated(s cluster.Snapshot, sr *search, noms Nominations) {
	if !sr.judged() {
		return
	}
	for _, name := range noms.NominatedNodes() {
		sr.readRows()
		n, ok := s.Find(name)
		if !ok || sr.rows != nil && !slices.Contains(sr.rows, n) || sr.verdicts[n] == plugin.Excluded {
			continue
		}
		added := sr.expect(n, noms.NominatedOn(name))
		if len(added) == 0 {
			continue
		}
		pl.meter.Did(record.RowsEvaluated, 1)
		// If the first pass rejects, its reasons are reported.
		v := pl.evaluateWith(s, sr, n, added)
		if v == plugin.Fits {
			continue
		}
		sr.ownRows()
		sr.verdicts[n] = v
	}
}

// expect notes and returns those of the pods nominated to a row that the search has to count.
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

// evaluateWith is the verdict on a row on which pods are supposed besides its own.
func (pl *Placer) evaluateWith(s cluster.Snapshot, sr *search, n cluster.NodeIdx, added []*cluster.Pod) plugin.Verdict {
	view := &pl.view
	s.ViewInto(n, view)
	for _, other := range added {
		view.AddPod(other)
		sr.addToFilters(s, other, view)
	}
	v := pl.evaluate(s, sr, view)
	for _, other := range slices.Backward(added) {
		view.RemovePod(other.UID)
		sr.removeFromFilters(s, other, view)
	}
	return v
}

// addToFilters adds a pod to the filters that count pods of other rows.
func (sr *search) addToFilters(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	for i := range sr.plans {
		if f, counts := sr.plans[i].Filter.(plugin.Supposing); counts {
			f.AddPod(s, other, v)
		}
	}
}

// removeFromFilters removes a pod from the filters that count pods of other rows.
func (sr *search) removeFromFilters(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView) {
	for i := range sr.plans {
		if f, counts := sr.plans[i].Filter.(plugin.Supposing); counts {
			f.RemovePod(s, other, v)
		}
	}
}

// tryNominatedFirst is tryNominated before any other node with nominated pods is evaluated, of which there may be
// as many as pods for which others were evicted. False says nothing, unless the search notes that it was tried.
func (pl *Placer) tryNominatedFirst(s cluster.Snapshot, sr *search, noms Nominations) (cluster.NodeIdx, bool) {
	n, ok := s.Find(sr.pod.Nominated)
	if sr.pod.Nominated == "" || !ok || sr.err != nil || sr.withoutNodes() {
		return cluster.NoNode, false
	}
	if len(pl.shared) > 0 {
		sr.own.tried, sr.own.verdict = true, pl.evaluateOwn(s, sr, noms, n)
		return n, sr.own.verdict == plugin.Fits && pl.foreignAccepts(sr)
	}
	switch f := pl.profile.Foreign; {
	case sr.rows != nil || pl.eachRow || pl.profile.Search.Strategy == FixedWindow || f != nil && f.Takes(sr.pod):
		return cluster.NoNode, false
	}
	if _, left := sr.only[sr.pod.Nominated]; sr.only != nil && !left {
		return cluster.NoNode, false
	}
	return n, pl.evaluateOwn(s, sr, noms, n) == plugin.Fits
}

// ownNode is what came of the node that the pod is itself nominated to, if it was tried before all others. With plugins
// that share state it always is: such a plugin may count its calls or remember a node, so it is called as often as
// upstream calls it, and in that order.
type ownNode struct {
	tried   bool
	verdict plugin.Verdict // Excluded after an error, which has no effect here
}

// evaluateOwn judges the node that the pod is itself nominated to, and leaves no trace in the search.
func (pl *Placer) evaluateOwn(s cluster.Snapshot, sr *search, noms Nominations, n cluster.NodeIdx) plugin.Verdict {
	added := sr.expect(n, noms.NominatedOn(sr.pod.Nominated))
	v := pl.evaluateWith(s, sr, n, added)
	if len(added) > 0 && v == plugin.Fits && sr.err == nil {
		v = pl.evaluateWith(s, sr, n, nil)
	}
	if sr.err != nil {
		v = plugin.Excluded
	}
	sr.err, sr.expected, sr.expectedPods = nil, sr.expected[:0], sr.expectedPods[:0]
	return v
}

// foreignAccepts reports whether foreign code accepts the node that the pod is itself nominated to. An error has no
// effect: all nodes are evaluated next.
func (pl *Placer) foreignAccepts(sr *search) bool {
	f := pl.profile.Foreign
	if f == nil || !f.Takes(sr.pod) {
		return true
	}
	rejected, err := f.Filter(sr.pod, []string{sr.pod.Nominated})
	_, no := rejected[sr.pod.Nominated]
	return !no && err == nil
}

// tryNominated tries the node that p is itself nominated to, ahead of all others (upstream: evaluateNominatedNode).
func (pl *Placer) tryNominated(s cluster.Snapshot, sr *search) (cluster.NodeIdx, bool) {
	if sr.pod.Nominated == "" {
		return cluster.NoNode, false
	}
	n, ok := s.Find(sr.pod.Nominated)
	if !ok {
		return cluster.NoNode, false
	}
	sr.readRows()
	left := sr.rows != nil && !slices.Contains(sr.rows, n) || sr.verdicts[n] == plugin.Excluded
	switch {
	case sr.own.tried:
		if left && sr.own.verdict != plugin.Fits {
			sr.note(n, sr.own.verdict)
		}
		return cluster.NoNode, false
	case left:
		pl.evaluateExcluded(s, sr, n)
	}
	return n, sr.verdicts[n] == plugin.Fits && pl.foreignAccepts(sr)
}

// clearErrorIfNominatedFits forgets an error of a filter when the node that p is itself nominated to fits: no other
// node is evaluated then, so the error has no effect.
func (pl *Placer) clearErrorIfNominatedFits(s cluster.Snapshot, sr *search) {
	n, ok := s.Find(sr.pod.Nominated)
	if sr.pod.Nominated == "" || !ok || !sr.judged() || sr.own.tried {
		return
	}
	err := sr.err
	sr.err = nil
	if v := pl.evaluate(s, sr, s.View(n)); v != plugin.Fits || sr.err != nil {
		sr.err = err
		return
	}
	sr.ownRows()
	sr.verdicts[n] = plugin.Fits
}

// evaluateExcluded judges the node that p is itself nominated to though plans leave it out, as upstream does: the
// record then has the verdict of a filter. An error fails nothing here.
func (pl *Placer) evaluateExcluded(s cluster.Snapshot, sr *search, n cluster.NodeIdx) {
	err := sr.err
	v := pl.evaluate(s, sr, s.View(n))
	if sr.err != err {
		v = plugin.Excluded
	}
	sr.err = err
	sr.note(n, v)
}

// note notes the verdict on a node that plans leave out.
func (sr *search) note(n cluster.NodeIdx, v plugin.Verdict) {
	if v == plugin.Excluded {
		return
	}
	sr.ownRows()
	sr.verdicts[n] = v
	if sr.rows != nil {
		at, _ := slices.BinarySearch(sr.rows, n)
		sr.rows = slices.Insert(sr.rows, at, n)
		sr.rowSpace = sr.rows
	}
}
