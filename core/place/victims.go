// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Relief judges the pod of an outcome on nodes that rejected it, as they would be without some of their pods. One node is
// open at a time. It is good until the Placer's next search, and leaves what that search knows as it was.
type Relief struct {
	pl    *Placer
	state cluster.Snapshot
	sr    *search
	// expected: row -> the pods of the same priority or more that are nominated there; few rows have any.
	expected map[cluster.NodeIdx][]*cluster.Pod
	// amounts are the needs of the one filter that looks at nothing but how much pods hold; byAmounts is its index, -1
	// where there is none, or where another filter may have a say on what it rejects.
	amounts   []plugin.Amount
	byAmounts int

	view cluster.NodeView // of the open node, with what is supposed
}

// Relief prepares for questions about an outcome for which no node was found. noms are those of the search.
func (pl *Placer) Relief(s cluster.Snapshot, out Outcome, noms Nominations) *Relief {
	r := &Relief{pl: pl, state: s, sr: out.look, byAmounts: -1}
	if out.look.nowhere() {
		return r
	}
	pl.complete(s, r.sr)
	r.sr.unfold()
	for _, name := range noms.NominatedNodes() {
		n, ok := s.Find(name)
		if !ok {
			continue
		}
		for _, other := range noms.NominatedOn(name) {
			if other.UID != r.sr.pod.UID && other.Spec.Priority >= r.sr.pod.Spec.Priority {
				if r.expected == nil {
					r.expected = map[cluster.NodeIdx][]*cluster.Pod{}
				}
				r.expected[n] = append(r.expected[n], other)
			}
		}
	}
	for i := range r.sr.plans {
		if f, is := r.sr.plans[i].Filter.(plugin.AmountFilter); is {
			if needs, ok := f.Amounts(); ok {
				r.amounts, r.byAmounts = needs, i
			}
			break
		}
	}
	return r
}

// Rows appends the rows on which evictions might help: those that a plugin rejects, and not for good.
func (r *Relief) Rows(into []cluster.NodeIdx) []cluster.NodeIdx {
	if r.sr.nowhere() {
		return into
	}
	for i := range r.sr.len() {
		if n := r.sr.at(i); r.resolvable(n) {
			into = append(into, n)
		}
	}
	return into
}

// Hopeless tells whether a node, by its row, was rejected for good: no eviction helps there.
func (r *Relief) Hopeless(n cluster.NodeIdx) bool {
	if r.sr.nowhere() {
		return true
	}
	if r.sr.rows != nil && !contains(r.sr.rows, n) {
		return true
	}
	return !r.resolvable(n)
}

func (r *Relief) resolvable(n cluster.NodeIdx) bool {
	v := r.sr.verdicts[n]
	if v == plugin.Foreign {
		why := r.sr.foreign[n]
		return !why.Unresolvable && why.Reason != ""
	}
	_, rejected := v.Filter()
	return rejected && v.Code()&plugin.Unresolvable == 0
}

// Needs are what the pod needs of any node besides what else filters ask; none where that cannot be told.
func (r *Relief) Needs() []plugin.Amount { return r.amounts }

// ByAmounts tells whether a row was rejected for what its pods hold together, and no other pod is expected there. Where
// AmountsAlone says so, Needs alone decide then whether the pod fits once pods have gone.
func (r *Relief) ByAmounts(n cluster.NodeIdx) bool {
	at, rejected := r.sr.verdicts[n].Filter()
	return rejected && at == r.byAmounts && len(r.expected[n]) == 0
}

// AmountsAlone tells whether Needs decide wherever ByAmounts holds: no filter behind has a say, and none before can turn
// against a node because pods have gone.
func (r *Relief) AmountsAlone() bool {
	if r.byAmounts < 0 {
		return false
	}
	for i := range r.sr.plans {
		f := r.sr.plans[i].Filter
		if _, counts := f.(plugin.Supposing); f != nil && (counts || i > r.byAmounts) {
			return false
		}
	}
	return true
}

// Open takes a row with all its pods.
func (r *Relief) Open(n cluster.NodeIdx) { r.state.ViewInto(n, &r.view) }

// Remove supposes that a pod of the open node has gone.
func (r *Relief) Remove(p *cluster.Pod) {
	r.view.RemovePod(p.UID)
	r.sr.suppose(r.state, p, &r.view, false)
}

// Add supposes that a removed pod is there again. Whoever removes pods adds them all before the next node is opened.
func (r *Relief) Add(p *cluster.Pod) {
	r.view.AddPod(p)
	r.sr.suppose(r.state, p, &r.view, true)
}

// Verdict judges the pod on the open node as it is supposed: with the pods that are expected there, and where it fits
// with them, without them too. The error is that of a filter.
func (r *Relief) Verdict() (plugin.Verdict, error) {
	expected := r.expected[r.view.Row]
	for _, other := range expected {
		r.Add(other)
	}
	v := r.pl.plain(r.state, r.sr, &r.view)
	for i := len(expected) - 1; i >= 0; i-- {
		r.Remove(expected[i])
	}
	if v == plugin.Fits && len(expected) > 0 && r.sr.err == nil {
		v = r.pl.plain(r.state, r.sr, &r.view)
	}
	err := r.sr.err
	r.sr.err = nil
	return v, err
}

// Reasons are the texts of a verdict.
func (r *Relief) Reasons(v plugin.Verdict) []string {
	i, ok := v.Filter()
	if !ok {
		return nil
	}
	return r.sr.plans[i].Filter.Reasons(v.Code())
}
