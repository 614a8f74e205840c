// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// scores are the scores of all plugins of a profile in one decision, by plugin and by position in the rows that fit.
type scores struct {
	raw, normalised map[*hosted][]int64 // plugin -> scores
	err             error
}

// PrepareScore is not called, because an adapter is an UncachedScorer.
func (adapter) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Normal is not called, because an adapter is an UncachedScorer.
func (adapter) Normal() plugin.Normal { return plugin.AsIs }

// Skips reports whether the plugin scores nothing: then PreScore alone would run, if no other plugin needs it.
func (adapter) Skips(cluster.Snapshot, *cluster.Pod) bool { return false }

// SkipsAmong calls PreScore of all plugins of the profile, once in a decision, and reports whether the plugin scores
// nothing.
func (a adapter) SkipsAmong(s cluster.Snapshot, p *cluster.Pod, fit *plugin.FitRows) bool {
	d := a.h.profile.at(s, p)
	a.h.profile.prepareScores(s, d, fit)
	return d.preErr == nil && (a.h.score == nil || d.state.scores.has(a.h.name))
}

// prepareScores calls PreScore of the plugins, up to the first error; fit is nil if all nodes fit.
func (p *Profile) prepareScores(s cluster.Snapshot, d *decision, fit *plugin.FitRows) {
	if d.preScored {
		return
	}
	d.preScored, d.state.scores = true, d.state.scores[:0]
	infos := &p.host.infos
	infos.follow(s)
	pod, err := d.pod()
	if err != nil {
		d.preErr = err
		return
	}
	nodes := infos.all
	if fit != nil && len(p.preScores) > 0 {
		nodes = infos.list(fit)
	}
	for _, h := range p.preScores {
		status := h.call(config.PreScore, inCycle(pod), func(ctx context.Context) *fwk.Status {
			return h.preScore.PreScore(ctx, h.state(config.PreScore, d.state), pod, nodes)
		})
		switch {
		case status.IsSkip():
			d.state.scores = append(d.state.scores, h.name)
		case !status.IsSuccess():
			d.preErr, d.preBy = failure(status), h.name
			return
		}
	}
}

// with returns a set with one more name. The set before may be nil.
func with(set sets.Set[string], name string) sets.Set[string] {
	if set == nil {
		set = sets.New[string]()
	}
	return set.Insert(name)
}

// PrepareUncached returns the scores of the plugin, nil if it skips the pod.
func (a adapter) PrepareUncached(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) (plugin.UncachedScore,
	error) {
	d := a.h.profile.at(s, p)
	a.h.profile.prepareScores(s, d, &plugin.FitRows{Rows: fit})
	switch {
	case d.preErr != nil && d.preBy == a.h.name:
		return nil, d.preErr
	case d.preErr != nil: // of a plugin that comes later, or of none
		return podScore{a.h, d}, nil
	case a.h.score == nil || d.state.scores.has(a.h.name):
		return nil, nil
	}
	return podScore{a.h, d}, nil
}

// podScore is a plugin's scores in one decision.
type podScore struct {
	h *hosted
	d *decision
}

var _ plugin.FailingScore = podScore{}

// Plain scores one node. It is for comparisons; a failed call scores 0.
func (sc podScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {
	infos := &sc.h.profile.host.infos
	infos.follow(s)
	pod, err := sc.d.pod()
	if err != nil {
		return 0
	}
	raw, _ := sc.h.rate(sc.d, pod, infos.of(s, v))
	return raw
}

// rate calls Score for one node.
func (h *hosted) rate(d *decision, pod *v1.Pod, info *NodeInfo) (int64, *fwk.Status) {
	var raw int64
	status := h.call(config.Score, on(pod, info), func(ctx context.Context) *fwk.Status {
		var status *fwk.Status
		raw, status = h.score.Score(ctx, h.state(config.Score, d.state), pod, info)
		return status
	})
	return raw, status
}

// Rows computes the scores of all plugins at the first call in a decision, and copies those of one.
func (sc podScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	if sc.d.scored == nil {
		sc.d.scored = sc.h.profile.scoreAll(s, sc.d, fit)
	}
	copy(out, sc.d.scored.raw[sc.h])
}

// Normalize copies the normalised scores.
func (sc podScore) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, out []int64) {
	clear(out)
	copy(out, sc.d.scored.normalised[sc.h])
}

// Failed returns the first error of any plugin.
func (sc podScore) Failed() error { return sc.d.scored.err }

// scoreAll calls Score of all plugins node by node, then NormalizeScore of each, and checks the range, in upstream's
// order and with upstream's errors (pkg/scheduler/framework/runtime, RunScorePlugins).
func (p *Profile) scoreAll(s cluster.Snapshot, d *decision, fit []cluster.NodeIdx) *scores {
	out := &scores{raw: map[*hosted][]int64{}, normalised: map[*hosted][]int64{}}
	pod, err := d.pod()
	if d.preErr != nil {
		err = d.preErr
		if d.preBy != "" {
			err = fmt.Errorf("running PreScore plugin %q: %w", d.preBy, err)
		}
	}
	if out.err = err; err != nil {
		return out
	}
	infos := &p.host.infos
	infos.follow(s)
	var acting []*hosted
	lists := map[*hosted]fwk.NodeScoreList{} // plugin -> what it normalises
	for _, h := range p.scores {
		if !d.state.scores.has(h.name) {
			acting = append(acting, h)
			lists[h], out.raw[h] = make(fwk.NodeScoreList, len(fit)), make([]int64, len(fit))
			out.normalised[h] = make([]int64, len(fit))
		}
	}
	for i, n := range fit {
		info := infos.rows[n]
		for _, h := range acting {
			raw, status := h.rate(d, pod, info)
			if !status.IsSuccess() {
				out.err = fmt.Errorf("running Score plugins: plugin %q failed with: %w", h.name, failure(status))
				return out
			}
			out.raw[h][i], lists[h][i] = raw, fwk.NodeScore{Name: info.node.Name, Score: raw}
		}
	}
	out.err = p.normalize(d, pod, acting, lists, out)
	return out
}

// normalize calls NormalizeScore and checks the range.
func (p *Profile) normalize(d *decision, pod *v1.Pod, acting []*hosted, lists map[*hosted]fwk.NodeScoreList,
	out *scores) error {
	nodes := 0
	for _, h := range acting {
		nodes = len(lists[h])
		status := h.call(config.Score, inCycle(pod), func(ctx context.Context) *fwk.Status {
			extensions := h.score.ScoreExtensions()
			if extensions == nil {
				return nil
			}
			return extensions.NormalizeScore(ctx, h.state(config.Score, d.state), pod, lists[h])
		})
		if !status.IsSuccess() {
			return fmt.Errorf("running Normalize on Score plugins: plugin %q failed with: %w", h.name, failure(status))
		}
	}
	for i := range nodes {
		for _, h := range acting {
			score := lists[h][i].Score
			if err := p.inRange(h.name, score); err != nil {
				return err
			}
			out.normalised[h][i] = score
		}
	}
	return nil
}

// inRange checks a normalised score of a plugin.
func (p *Profile) inRange(name string, score int64) error {
	if score >= fwk.MinScore && score <= fwk.MaxScore {
		return nil
	}
	err := fmt.Errorf("plugin %q returns an invalid score %v, it should in the range of [%v, %v] after normalizing",
		name, score, fwk.MinScore, fwk.MaxScore)
	p.host.report(Problem{name, config.Score, err, BadAnswer})
	return fmt.Errorf("applying score defaultWeights on Score plugins: %w", err)
}
