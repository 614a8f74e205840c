// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Evaluate is Place without effects: every node is considered and ranked whatever the strategy, foreign code is not
// called, the node that p is itself nominated to has no preference, and nothing moves in the Window. WhyNot, Scores
// and Why answer afterwards.
func (pl *Placer) Evaluate(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	foreign := pl.profile.Foreign
	pl.profile.Foreign = nil
	defer func() { pl.profile.Foreign = foreign }()
	sr := pl.localVerdicts(s, p, noms)
	if sr.err == nil && !sr.withoutNodes() {
		pl.lateFilters(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, search: sr}
	if out.Err = sr.err; out.Err != nil || sr.withoutNodes() {
		return out
	}
	pl.choose(s, sr, &out, draw)
	return out
}

// WhyNot returns the plugin that rejects the row for the pod, and its reasons; none if the pod fits.
func (pl *Placer) WhyNot(s cluster.Snapshot, out Outcome, n cluster.NodeIdx) (name string, texts []string) {
	sr := out.search
	if sr.withoutNodes() {
		why := pl.Why(s, out)
		if name = why.Plugins[0]; sr.stage == rejected {
			name = pl.profile.Filters[sr.rejecter].Name()
		}
		return name, []string{why.PreFilter}
	}
	switch v := out.Verdict(n); v {
	case plugin.Fits:
		return "", nil
	case plugin.Excluded:
		return sorted(sr.narrowed)[0], []string{"the plugin names other nodes"}
	default:
		name, texts = pl.ReasonsOf(out, v)
		return name, slices.Clone(texts)
	}
}
