// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Rejection says why no node fits.
type Rejection struct {
	// PreFilter is why the pod was rejected before any node was looked at; empty otherwise.
	PreFilter string
	// Reasons counts nodes by plugin and reason, in the order of the profile's filters, then of first sight.
	Reasons []record.Reason
	// Plugins are the names of the rejecting plugins, sorted.
	Plugins []string
	// Message is upstream's text: "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s)."
	Message string
}

// examples is how many nodes a reason names.
const examples = 3

// Why explains an outcome without a feasible node, or the infeasible part of one with. It must be called before the
// Placer's next search.
func (pl *Placer) Why(s cluster.Snapshot, out Outcome) Rejection {
	l := out.look
	var r Rejection
	switch {
	case out.Nodes == 0: // nobody rejects: the pod is tried again after a backoff, as upstream does
	case l.reject >= 0:
		r.PreFilter = l.plans[l.reject].Reject
		r.Plugins = []string{pl.profile.Filters[l.reject].Name()}
	case l.only != nil && len(l.only) == 0:
		r.Plugins = sorted(l.narrowed)
		r.PreFilter = fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", r.Plugins)
		if len(r.Plugins) == 1 {
			r.PreFilter = "node(s) didn't satisfy plugin " + r.Plugins[0]
		}
	default:
		h := histogram{pl: pl, l: l, seen: map[plugin.Verdict]*bucket{}}
		h.count(s)
		r.Reasons, r.Plugins = h.reasons(s)
	}
	r.Message = message(out.Nodes, r)
	return r
}

// bucket is the nodes with one verdict.
type bucket struct {
	verdict plugin.Verdict
	nodes   int
	first   [examples]cluster.NodeIdx
}

type histogram struct {
	pl      *Placer
	l       *lookup
	seen    map[plugin.Verdict]*bucket // verdict -> its nodes
	buckets []*bucket                  // in order of first sight
}

func (h *histogram) count(s cluster.Snapshot) {
	var last *bucket // neighbours often share a verdict
	for i := range h.l.len() {
		n := h.l.at(i)
		v := h.l.verdicts[n]
		if v == plugin.Fits || v == plugin.NoNode {
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
	if h.l.rows != nil { // the nodes that were not looked at are excluded too
		if left := s.Nodes() - len(h.l.rows); left > 0 {
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
	plugins = append(plugins, h.l.narrowed...)
	slices.SortStableFunc(h.buckets, func(a, b *bucket) int { return int(a.verdict>>24) - int(b.verdict>>24) })
	for _, b := range h.buckets {
		name, texts := "", []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sorted(h.l.narrowed))}
		unresolvable := true
		if i, ok := b.verdict.Filter(); ok {
			name = h.pl.profile.Filters[i].Name()
			texts = h.l.plans[i].Filter.Reasons(b.verdict.Code())
			unresolvable = b.verdict.Code()&plugin.Unresolvable != 0
			plugins = append(plugins, name)
		} else if len(h.l.narrowed) > 0 {
			name = h.l.narrowed[0]
		}
		for _, text := range texts {
			reasons = add(reasons, s, name, text, b, unresolvable)
		}
	}
	return reasons, sorted(plugins)
}

// add counts a bucket under a plugin and a text.
func add(reasons []record.Reason, s cluster.Snapshot, name, text string, b *bucket, unresolvable bool) []record.Reason {
	i := slices.IndexFunc(reasons, func(r record.Reason) bool { return r.Plugin == name && r.Reason == text })
	if i < 0 {
		i = len(reasons)
		reasons = append(reasons, record.Reason{Plugin: name, Reason: text})
	}
	r := &reasons[i]
	r.Nodes += b.nodes
	if unresolvable {
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
		counts[reason.Reason] += reason.Nodes
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
	l := out.look
	scores := make([]record.PluginScore, 0, len(l.scorers))
	for i := range l.scorers {
		sc := &l.scorers[i]
		var largest int64
		if sc.Normal() != plugin.AsIs && sc.nonZero > 0 {
			largest = l.largest(sc.raw)
		}
		raw := sc.raw[n]
		scores = append(scores, record.PluginScore{Plugin: sc.Name(), Raw: raw, Weighted: sc.Weight * sc.Normal().Apply(raw, largest)})
	}
	return scores
}

// Verdict is the final verdict on a row, for callers that compare node by node.
func (out Outcome) Verdict(n cluster.NodeIdx) plugin.Verdict {
	l := out.look
	if l.rows != nil && !slices.Contains(l.rows, n) {
		return plugin.Excluded
	}
	return l.verdicts[n]
}

// ReasonsOf are the texts of a verdict of this outcome and the name of the plugin that gave it.
func (pl *Placer) ReasonsOf(out Outcome, v plugin.Verdict) (name string, texts []string) {
	i, ok := v.Filter()
	if !ok {
		return "", nil
	}
	return pl.profile.Filters[i].Name(), out.look.plans[i].Filter.Reasons(v.Code())
}

// Against lists the filters that reject a row, all of them and not only the first, in the order of the profile. It judges
// in the plain form, without nominations.
func (pl *Placer) Against(s cluster.Snapshot, out Outcome, n cluster.NodeIdx) []plugin.Filter {
	var against []plugin.Filter
	view := s.View(n)
	for i, plan := range out.look.plans {
		if plan.Filter != nil && plan.Filter.Plain(s, view) != plugin.Fit {
			against = append(against, pl.profile.Filters[i])
		}
	}
	return against
}
