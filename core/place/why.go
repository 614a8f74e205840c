// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Rejection says why no node fits.
type Rejection struct {
	// PreFilter is why the pod was rejected before any node was considered; empty otherwise. Resolvable reports whether
	// evicting pods could help then.
	PreFilter  string
	Resolvable bool
	// Reasons counts nodes by plugin and reason, in the order of the profile's filters, then of first sight.
	Reasons []record.Reason
	// Plugins are the names of the rejecting plugins, sorted; Pending those of them that wait for something outside of
	// the scheduler.
	Plugins, Pending []string
	// Message is upstream's text: "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s)."
	Message string
}

// examples is how many nodes a reason names.
const examples = 3

// Why explains an outcome without a feasible node, or the infeasible part of one with. It must be called before the
// Placer's next search.
func (pl *Placer) Why(s cluster.Snapshot, out Outcome) Rejection {
	sr := out.search
	var r Rejection
	switch {
	case out.Nodes == 0: // no plugin rejects: the pod is tried again after a backoff, as upstream does
	case sr.stage == rejected:
		r.PreFilter, r.Resolvable = sr.plans[sr.rejecter].Reject, sr.plans[sr.rejecter].Resolvable
		r.Plugins = []string{pl.profile.Filters[sr.rejecter].Name()}
		if r.Resolvable { // the plugins that left nodes out reject, too
			r.Plugins = sorted(append(r.Plugins, sr.narrowed...))
		}
	case sr.stage == disjoint:
		r.Plugins = sorted(sr.narrowed)
		r.PreFilter = disjointText(r.Plugins)
	default:
		h := histogram{pl: pl, sr: sr, seen: map[plugin.Verdict]*bucket{}}
		h.count(s)
		r.Reasons, r.Plugins = h.reasons(s)
		r.Pending = sorted(h.pending)
	}
	r.Message = message(out.Nodes, r)
	return r
}

// disjointText is the reason of plugins that name no node in common.
func disjointText(plugins []string) string {
	if len(plugins) == 1 {
		return "node(s) didn't satisfy plugin " + plugins[0]
	}
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", plugins)
}

// bucket is the nodes with one verdict.
type bucket struct {
	verdict plugin.Verdict
	nodes   int
	first   [examples]cluster.NodeIdx // NoNode where there are fewer
	// unresolvable is set if no eviction helps there.
	unresolvable bool
}

type histogram struct {
	pl      *Placer
	sr      *search
	seen    map[plugin.Verdict]*bucket // verdict -> its nodes
	buckets []*bucket                  // in order of first sight
	pending []string                   // plugins that wait for something outside of the scheduler
}

func (h *histogram) count(s cluster.Snapshot) {
	h.sr.readRows()
	var last *bucket // neighbours often share a verdict
	for i := range h.sr.len() {
		n := h.sr.at(i)
		v := h.sr.verdicts[n]
		if v == plugin.Fits || v == plugin.NoNode || v == plugin.Unseen {
			continue
		}
		if last == nil || last.verdict != v {
			last = h.bucket(v)
		}
		if last.nodes < examples {
			last.first[last.nodes] = n
		}
		last.nodes++
	}
	if h.sr.rows != nil { // the nodes that were not considered are excluded too
		if left := s.Nodes() - len(h.sr.rows); left > 0 {
			h.bucket(plugin.Excluded).nodes += left
		}
	}
}

func (h *histogram) bucket(v plugin.Verdict) *bucket {
	b := h.seen[v]
	if b == nil {
		b = &bucket{verdict: v, first: [examples]cluster.NodeIdx{cluster.NoNode, cluster.NoNode, cluster.NoNode}}
		h.seen[v] = b
		h.buckets = append(h.buckets, b)
	}
	return b
}

func (h *histogram) reasons(s cluster.Snapshot) (reasons []record.Reason, plugins []string) {
	plugins = append(plugins, h.sr.narrowed...)
	slices.SortStableFunc(h.buckets, func(a, b *bucket) int { return int(a.verdict>>24) - int(b.verdict>>24) })
	for _, b := range h.buckets {
		name, texts := "", []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sorted(h.sr.narrowed))}
		b.unresolvable = true
		if i, ok := b.verdict.Filter(); ok {
			name = h.pl.profile.Filters[i].Name()
			texts = h.sr.plans[i].Filter.Reasons(b.verdict.Code())
			b.unresolvable = b.verdict.Code()&plugin.Unresolvable != 0
			plugins = append(plugins, name)
			if h.sr.pending(b.verdict) {
				h.pending = append(h.pending, name)
			}
		} else if b.verdict == plugin.Foreign {
			reasons = h.foreign(reasons, s)
			plugins = append(plugins, ForeignName)
			continue
		} else if len(h.sr.narrowed) > 0 {
			name = h.sr.narrowed[0]
		} else {
			texts[0] = OutsideDomain
		}
		for _, text := range texts {
			reasons = add(reasons, s, name, text, b)
		}
	}
	return reasons, sorted(plugins)
}

// Pending reports whether the filter that gave a verdict of this outcome waits for something outside of the scheduler.
func (pl *Placer) Pending(out Outcome, v plugin.Verdict) bool { return out.search.pending(v) }

func (sr *search) pending(v plugin.Verdict) bool {
	i, rejected := v.Filter()
	if !rejected {
		return false
	}
	pender, is := sr.plans[i].Filter.(plugin.Pender)
	return is && pender.Pending(v.Code())
}

// ForeignName is the plugin that the queue notes for a rejection by foreign code: any event wakes the pod (upstream:
// framework.ExtenderName).
const ForeignName = "Extender"

// OutsideDomain is the reason for nodes that a search within some rows leaves out.
const OutsideDomain = "node(s) outside of the topology domain"

// LeftOut is the reason for a node that foreign code left out without giving one. Upstream's message does not count
// such nodes.
const LeftOut = "left out without a reason"

// foreign counts the rows that foreign code rejects, each with its own reason.
func (h *histogram) foreign(reasons []record.Reason, s cluster.Snapshot) []record.Reason {
	for i := range h.sr.len() {
		n := h.sr.at(i)
		if why, no := h.sr.foreign[n]; no && h.sr.verdicts[n] == plugin.Foreign {
			if why.Reason == "" {
				why.Reason = LeftOut
			}
			one := &bucket{nodes: 1, first: [examples]cluster.NodeIdx{n, cluster.NoNode, cluster.NoNode},
				unresolvable: why.Unresolvable}
			reasons = add(reasons, s, why.By, why.Reason, one)
		}
	}
	return reasons
}

// add counts a bucket under a plugin and a text.
func add(reasons []record.Reason, s cluster.Snapshot, name, text string, b *bucket) []record.Reason {
	i := slices.IndexFunc(reasons, func(r record.Reason) bool { return r.Plugin == name && r.Reason == text })
	if i < 0 {
		i = len(reasons)
		reasons = append(reasons, record.Reason{Plugin: name, Reason: text})
	}
	r := &reasons[i]
	r.Nodes += b.nodes
	if b.unresolvable {
		r.Unresolvable += b.nodes
	}
	for _, n := range b.first {
		if n != cluster.NoNode && len(r.Examples) < examples {
			r.Examples = append(r.Examples, s.NodeName(n))
		}
	}
	return reasons
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// message words a rejection as upstream's FitError does (pkg/scheduler/framework/types.go).
func message(nodes int, r Rejection) string {
	if nodes == 0 {
		return "no nodes available to schedule pods"
	}
	head := fmt.Sprintf("0/%d nodes are available:", nodes)
	if r.PreFilter != "" {
		return head + " " + r.PreFilter + "."
	}
	counts := map[string]int{} // reason -> nodes, over all plugins
	for _, reason := range r.Reasons {
		if reason.Reason != LeftOut {
			counts[reason.Reason] += reason.Nodes
		}
	}
	var parts []string
	for text, n := range counts { // order: parts are sorted below
		parts = append(parts, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return head
	}
	return head + " " + strings.Join(parts, ", ") + "."
}

// Scores breaks the total of a row down by plugin. It is empty when only one node fits: then nothing is scored.
func (pl *Placer) Scores(out Outcome, n cluster.NodeIdx) []record.PluginScore {
	if n == cluster.NoNode || out.RunnerUp == cluster.NoNode {
		return nil
	}
	sr := out.search
	scores := make([]record.PluginScore, 0, len(pl.profile.Scorers))
	parts := sr.parts
	var at int
	var found bool
	if out.Path == Grouped {
		at, found = sr.selection.Position(n), true
	} else {
		at, found = slices.BinarySearch(sr.fit, n)
	}
	if !found {
		parts = nil
	}
	uncached := func(before int) { // both lists are in the order of the profile
		for ; len(parts) > 0 && parts[0].at < before; parts = parts[1:] {
			p := &parts[0]
			scores = append(scores, record.PluginScore{
				Plugin: p.name, Raw: p.raw[at], Weighted: p.weight * p.normalised[at],
			})
		}
	}
	sr.class.EachScore(sr.state, n, &sr.by, func(scorer int, sc Scorer, raw, weighted int64) {
		uncached(scorer)
		scores = append(scores, record.PluginScore{Plugin: sc.Name(), Raw: raw, Weighted: weighted})
	})
	uncached(math.MaxInt)
	return scores
}

// Verdict is the final verdict on a row, for callers that compare node by node.
func (out Outcome) Verdict(n cluster.NodeIdx) plugin.Verdict {
	sr := out.search
	if sr.rows != nil && !slices.Contains(sr.rows, n) {
		return plugin.Excluded
	}
	sr.readRows()
	return sr.verdicts[n]
}

// ReasonsOf are the texts of a verdict of this outcome and the name of the plugin that gave it.
func (pl *Placer) ReasonsOf(out Outcome, v plugin.Verdict) (name string, texts []string) {
	i, ok := v.Filter()
	if !ok || out.search.plans[i].Filter == nil {
		return "", nil
	}
	return pl.profile.Filters[i].Name(), out.search.plans[i].Filter.Reasons(v.Code())
}

// Against lists the filters that reject a row, all of them and not only the first, in the order of the profile. It
// judges in the plain form, without nominations.
func (pl *Placer) Against(s cluster.Snapshot, out Outcome, n cluster.NodeIdx) []plugin.Filter {
	var against []plugin.Filter
	view := s.View(n)
	for i, plan := range out.search.plans {
		if plan.Filter != nil && plan.Filter.Plain(s, view) != plugin.Fit {
			against = append(against, pl.profile.Filters[i])
		}
	}
	return against
}
