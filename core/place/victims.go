// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// WhatIf judges the pod of an outcome on nodes that rejected it, as they would be without some of their pods. One
// node is open at a time. It is valid until the Placer's next search, and does not change what that search has found.
type WhatIf struct {
	pl    *Placer
	state cluster.Snapshot
	sr    *search
	// expected: row -> 1 + index in the search's expected rows, 0 for none; nil where there are none.
	expected []int32
	// amounts are the needs of the one filter that looks at nothing but how much pods hold; byAmounts is its index, -1
	// where there is none, or where another filter may also decide on what it rejects.
	amounts   []plugin.Amount
	byAmounts int

	// selective is set if each filter but that of the amounts can say which pods matter to it. matters remembers what
	// they said: pods that share a spec -> bit i for filter i.
	selective bool
	matters   map[*cluster.PodSpec]relevance
	// behind: row -> verdict of the filters behind that of the amounts; nil until the first use.
	behind []plugin.Verdict

	view cluster.NodeView // of the open node, with what is supposed
}

// relevance is to which filters pods of a spec matter, in a namespace, and while they are deleted or not.
type relevance struct {
	namespace   string
	terminating bool
	to          uint64
}

// WhatIf prepares for questions about an outcome for which no node was found.
func (pl *Placer) WhatIf(s cluster.Snapshot, out Outcome) *WhatIf {
	r := &WhatIf{pl: pl, state: s, sr: out.search, byAmounts: -1}
	if out.search.withoutNodes() {
		return r
	}
	r.sr.readRows()
	if len(r.sr.expected) > 0 {
		r.expected = make([]int32, s.Rows())
		for i := range r.sr.expected {
			r.expected[r.sr.expected[i].row] = int32(i + 1)
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
	r.selective = r.byAmounts >= 0 && len(r.sr.plans) <= 64
	for i := range r.sr.plans {
		f := r.sr.plans[i].Filter
		_, can := f.(plugin.Selective)
		r.selective = r.selective && (f == nil || can || i == r.byAmounts || pl.ignoresPods[i])
	}
	r.matters = map[*cluster.PodSpec]relevance{}
	return r
}

// Selective reports whether on a row no pod makes a difference but by what it holds, or by mattering to a filter.
func (r *WhatIf) Selective(n cluster.NodeIdx) bool { return r.selective && !r.Expected(n) }

// Matters reports whether a pod matters to any filter besides by what it holds.
func (r *WhatIf) Matters(p *cluster.Pod) bool { return r.relevance(p) != 0 }

// RejectedFor returns which of a row's pods matter to a filter that rejects it: the one that gave the verdict, or if
// that is the one of the amounts, the first behind. ok is false where there is no such filter.
func (r *WhatIf) RejectedFor(n cluster.NodeIdx) (matters func(*cluster.Pod) bool, ok bool) {
	at, rejected := r.sr.verdicts[n].Filter()
	if rejected && at == r.byAmounts {
		at, rejected = r.rejectedBehind(n)
	}
	if !rejected {
		return nil, false
	}
	return func(p *cluster.Pod) bool { return r.relevance(p)&(1<<at) != 0 }, true
}

// RejectedWithout returns the reasons for which a row is rejected also without some of its pods: none of them matters
// to the filter that rejects it, nor to one before. ok is false if that is unknown.
func (r *WhatIf) RejectedWithout(n cluster.NodeIdx, without func(visit func(*cluster.Pod))) (
	reasons []string, ok bool) {
	v := r.sr.verdicts[n]
	at, rejected := v.Filter()
	if !rejected || at == r.byAmounts || !r.Selective(n) {
		return nil, false
	}
	var to uint64
	without(func(p *cluster.Pod) { to |= r.relevance(p) })
	if to&(1<<(at+1)-1) != 0 {
		return nil, false
	}
	return r.Reasons(v), true
}

// rejectedBehind is the first filter behind that of the amounts that rejects a row as it is. All rows are judged at the
// first question.
func (r *WhatIf) rejectedBehind(n cluster.NodeIdx) (filter int, ok bool) {
	if r.behind == nil {
		r.behind = make([]plugin.Verdict, r.state.Rows())
		for i := range r.behind {
			if r.state.Node(cluster.NodeIdx(i)) == nil {
				r.behind[i] = plugin.NoNode
			}
		}
		for i := r.byAmounts + 1; i < len(r.sr.plans); i++ {
			if f := r.sr.plans[i].Filter; f != nil {
				f.Column(r.state, 0, cluster.NodeIdx(len(r.behind)), plugin.TagOf(i), r.behind)
				r.pl.checkFailed(r.sr, i)
				r.sr.err = nil // a trial of the row meets it again
			}
		}
	}
	return r.behind[n].Filter()
}

func (r *WhatIf) relevance(p *cluster.Pod) uint64 {
	known, ok := r.matters[p.Spec]
	if ok && known.namespace == p.Namespace && known.terminating == p.Terminating {
		return known.to
	}
	m := relevance{namespace: p.Namespace, terminating: p.Terminating}
	for i := range r.sr.plans {
		if f, is := r.sr.plans[i].Filter.(plugin.Selective); is && f.Matters(p) {
			m.to |= 1 << i
		}
	}
	if !ok {
		r.matters[p.Spec] = m
	}
	return m.to
}

// Rows appends the rows on which evictions might help: those that a plugin rejects, and not for good.
func (r *WhatIf) Rows(into []cluster.NodeIdx) []cluster.NodeIdx {
	if r.sr.withoutNodes() {
		return into
	}
	for i := range r.sr.len() {
		if n := r.sr.at(i); r.resolvable(n) {
			into = append(into, n)
		}
	}
	return into
}

// Hopeless reports whether a node, by its row, was rejected for good: no eviction helps there.
func (r *WhatIf) Hopeless(n cluster.NodeIdx) bool {
	if r.sr.withoutNodes() {
		return true
	}
	if r.sr.rows != nil && !contains(r.sr.rows, n) {
		return true
	}
	return !r.resolvable(n)
}

func (r *WhatIf) resolvable(n cluster.NodeIdx) bool {
	v := r.sr.verdicts[n]
	if v == plugin.Foreign {
		why := r.sr.foreign[n]
		return !why.Unresolvable && why.Reason != ""
	}
	_, rejected := v.Filter()
	return rejected && v.Code()&plugin.Unresolvable == 0
}

// Needs are what the pod needs of any node besides what else filters ask; none if they are unknown.
func (r *WhatIf) Needs() []plugin.Amount { return r.amounts }

// ByAmounts reports whether a row was rejected for what its pods hold together, and no other pod is expected there.
// Where AmountsAlone says so, Needs alone decide then whether the pod fits once pods have gone.
func (r *WhatIf) ByAmounts(n cluster.NodeIdx) bool {
	return r.AmountsReject(n) && !r.Expected(n)
}

// AmountsReject is ByAmounts, whether or not other pods are expected on the row.
func (r *WhatIf) AmountsReject(n cluster.NodeIdx) bool {
	at, rejected := r.sr.verdicts[n].Filter()
	return rejected && at == r.byAmounts
}

// AmountsAlone reports whether Needs decide wherever ByAmounts holds: no later filter applies, and no earlier one can
// turn against a node because pods have gone.
func (r *WhatIf) AmountsAlone() bool {
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
func (r *WhatIf) Open(n cluster.NodeIdx) { r.state.ViewInto(n, &r.view) }

// Remove supposes that a pod of the open node has gone.
func (r *WhatIf) Remove(p *cluster.Pod) {
	r.view.RemovePod(p.UID)
	r.sr.removeFromFilters(r.state, p, &r.view)
}

// Add supposes that a removed pod is there again. The caller must add all removed pods before it opens the next node.
func (r *WhatIf) Add(p *cluster.Pod) {
	r.view.AddPod(p)
	r.sr.addToFilters(r.state, p, &r.view)
}

// Verdict judges the pod on the open node as it is supposed: with the pods that are expected there, and where it fits
// with them, without them too. The error is that of a filter.
func (r *WhatIf) Verdict() (plugin.Verdict, error) {
	expected := r.ExpectedOn(r.view.Row)
	for _, other := range expected {
		r.Add(other)
	}
	v := r.pl.evaluate(r.state, r.sr, &r.view)
	for i := len(expected) - 1; i >= 0; i-- {
		r.Remove(expected[i])
	}
	if v == plugin.Fits && len(expected) > 0 && r.sr.err == nil {
		v = r.pl.evaluate(r.state, r.sr, &r.view)
	}
	err := r.sr.err
	r.sr.err = nil
	return v, err
}

// FitsApartFromAmounts judges the pod on the open node, where no other pod is expected, by all filters but that of the
// amounts. An error is a rejection.
func (r *WhatIf) FitsApartFromAmounts() bool {
	for i := range r.sr.plans {
		if f := r.sr.plans[i].Filter; f != nil && i != r.byAmounts {
			code := f.Plain(r.state, &r.view)
			r.pl.checkFailed(r.sr, i)
			if code != plugin.Fit || r.sr.err != nil {
				r.sr.err = nil
				return false
			}
		}
	}
	return true
}

// Expected reports whether pods of the same priority or more are nominated to a row.
func (r *WhatIf) Expected(n cluster.NodeIdx) bool { return r.expected != nil && r.expected[n] != 0 }

// ExpectedOn are those pods. Where AmountsReject and AmountsAlone say so, the pod fits if there is what Needs say
// beside them.
func (r *WhatIf) ExpectedOn(n cluster.NodeIdx) []*cluster.Pod {
	if !r.Expected(n) {
		return nil
	}
	return r.sr.expected[r.expected[n]-1].pods
}

// Reasons are the texts of a verdict.
func (r *WhatIf) Reasons(v plugin.Verdict) []string {
	i, ok := v.Filter()
	if !ok {
		return nil
	}
	return r.sr.plans[i].Filter.Reasons(v.Code())
}

// Prepared reports whether the filter of this name was prepared for the pod: not when one before it rejected
// the pod for all nodes.
func (pl *Placer) Prepared(out Outcome, name string) bool {
	prepared := pl.profile.Filters[:len(out.search.plans)]
	return slices.ContainsFunc(prepared, func(f plugin.Filter) bool { return f.Name() == name })
}
