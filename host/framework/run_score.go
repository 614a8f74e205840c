// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// RunScorers says which scorers the profile has, native and hosted, in its order. Handle runs them for plugins.
func (p *Profile) RunScorers(scorers []place.Scorer) { p.runs.scorers = scorers }

// preparedScores are the native scorers that RunPreScorePlugins prepared for a CycleState: plugin -> its score. They
// are shared by clones of the state, as upstream's plugins share what they wrote in PreScore.
type preparedScores map[string]plugin.UncachedScore

// preparedKey is the key of preparedScores.
const preparedKey fwk.StateKey = ownKeys + "scores"

// Clone returns the same scores, which nothing changes.
func (p preparedScores) Clone() fwk.StateData { return p }

// RunPreScorePlugins runs PreScore of the profile for a pod, up to the first error, and notes in the state which
// plugins skip the pod. Native plugins see the pods of the cluster's nodes.
func (h *handle) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) *fwk.Status {
	skipped := sets.New[string]()
	defer func() { state.SetSkipScorePlugins(skipped) }()
	fails := func(name string, err error) *fwk.Status {
		return fwk.AsStatus(fmt.Errorf("running PreScore plugin %q: %w", name, err))
	}
	prepared := preparedScores{}
	for _, sc := range h.p.runs.scorers {
		if _, hosted := sc.Scorer.(adapter); hosted {
			continue
		}
		score, err := h.p.prepareNative(sc, pod, nodes)
		switch {
		case err != nil:
			return fails(sc.Name(), err)
		case score == nil:
			skipped.Insert(sc.Name())
		default:
			prepared[sc.Name()] = score
		}
	}
	state.Write(preparedKey, prepared)
	for _, hd := range h.p.preScores {
		status := hd.callOutside(ctx, config.PreScore, pod, func(ctx context.Context) *fwk.Status {
			return hd.preScore.PreScore(ctx, hd.state(config.PreScore, state), pod, nodes)
		})
		switch {
		case status.IsSkip():
			skipped.Insert(hd.name)
		case !status.IsSuccess():
			return fails(hd.name, failure(status))
		}
	}
	return nil
}

// prepareNative prepares a native scorer for a pod and nodes; nil if it skips the pod.
func (p *Profile) prepareNative(sc place.Scorer, pod *v1.Pod, nodes []fwk.NodeInfo) (plugin.UncachedScore, error) {
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	record, err := p.recordOf(pod)
	if err != nil {
		return nil, err
	}
	rows, err := p.rowsOf(nodes)
	if err != nil {
		return nil, err
	}
	slices.Sort(rows)
	uncached := plugin.ScoreEachDecision(sc.Scorer)
	if uncached.Skips(p.host.infos.state, record) {
		return nil, nil
	}
	return uncached.PrepareUncached(p.host.infos.state, record, rows)
}

// rowsOf returns the rows of nodes.
func (p *Profile) rowsOf(nodes []fwk.NodeInfo) ([]cluster.NodeIdx, error) {
	rows := make([]cluster.NodeIdx, len(nodes))
	for i, info := range nodes {
		row, there := p.host.infos.state.Find(info.Node().Name)
		if !there {
			return nil, fmt.Errorf("node %q is not in the cluster", info.Node().Name)
		}
		rows[i] = row
	}
	return rows, nil
}

// column is the scores of one plugin, by position in the nodes.
type column struct {
	place.Scorer
	scores fwk.NodeScoreList
	native plugin.UncachedScore // nil for a hosted plugin
}

// RunScorePlugins scores a pod on nodes, with the plugins that do not skip it. The scores are normalised and weighted.
func (h *handle) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	columns, err := h.p.columns(state, pod, nodes)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("running Score plugins: %w", err))
	}
	out := make([]fwk.NodePluginScores, len(nodes))
	for i, info := range nodes {
		none := []fwk.PluginScore{}
		out[i] = fwk.NodePluginScores{Name: info.Node().Name, RawScores: none, Scores: none}
		for _, c := range columns {
			raw, err := h.p.rateOutside(ctx, c, state, pod, info)
			if err != nil {
				return nil, fwk.AsStatus(fmt.Errorf("running Score plugins: plugin %q failed with: %w", c.Name(), err))
			}
			c.scores[i] = fwk.NodeScore{Name: out[i].Name, Score: raw}
			out[i].RawScores = append(out[i].RawScores, fwk.PluginScore{Name: c.Name(), Score: raw})
		}
	}
	for _, c := range columns {
		if err := h.p.normalizeOutside(ctx, c, state, pod, nodes); err != nil {
			return nil, fwk.AsStatus(fmt.Errorf("running Normalize on Score plugins: plugin %q failed with: %w",
				c.Name(), err))
		}
	}
	for i := range out {
		for _, c := range columns {
			score := c.scores[i].Score
			if err := h.p.inRange(c.Name(), score); err != nil {
				return nil, fwk.AsStatus(err)
			}
			out[i].Scores = append(out[i].Scores, fwk.PluginScore{Name: c.Name(), Score: score * c.Weight})
			out[i].TotalScore += score * c.Weight
		}
	}
	return out, nil
}

// columns returns empty columns for the plugins that do not skip the pod. A native plugin that RunPreScorePlugins has
// not prepared for the state is prepared for the nodes.
func (p *Profile) columns(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]*column, error) {
	data, err := state.Read(preparedKey)
	if err != nil {
		data = preparedScores{}
	}
	prepared, skipped := data.(preparedScores), state.GetSkipScorePlugins()
	var out []*column
	for _, sc := range p.runs.scorers {
		c := &column{Scorer: sc, scores: make(fwk.NodeScoreList, len(nodes))}
		switch a, hosted := sc.Scorer.(adapter); {
		case skipped.Has(sc.Name()) || hosted && a.h.score == nil:
			continue
		case !hosted:
			if c.native = prepared[sc.Name()]; c.native == nil {
				if c.native, err = p.prepareNative(sc, pod, nodes); err != nil {
					return nil, fmt.Errorf("plugin %q failed with: %w", sc.Name(), err)
				}
			}
			if c.native == nil {
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// rateOutside returns the raw score of one node.
func (p *Profile) rateOutside(ctx context.Context, c *column, state fwk.CycleState, pod *v1.Pod,
	info fwk.NodeInfo) (raw int64, err error) {
	if a, hosted := c.Scorer.Scorer.(adapter); hosted {
		status := a.h.callOutside(ctx, config.Score, pod, func(ctx context.Context) (status *fwk.Status) {
			raw, status = a.h.score.Score(ctx, a.h.state(config.Score, state), pod, info)
			return status
		})
		if !status.IsSuccess() {
			return 0, failure(status)
		}
		return raw, nil
	}
	view, err := p.view(info)
	if err != nil {
		return 0, err
	}
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	return c.native.Plain(p.host.infos.state, view), nil
}

// normalizeOutside brings the scores of a column to the range of scores.
func (p *Profile) normalizeOutside(ctx context.Context, c *column, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) error {
	if a, hosted := c.Scorer.Scorer.(adapter); hosted {
		status := a.h.callOutside(ctx, config.Score, pod, func(ctx context.Context) *fwk.Status {
			extensions := a.h.score.ScoreExtensions()
			if extensions == nil {
				return nil
			}
			return extensions.NormalizeScore(ctx, a.h.state(config.Score, state), pod, c.scores)
		})
		if !status.IsSuccess() {
			return failure(status)
		}
		return nil
	}
	rows, err := p.rowsOf(nodes)
	if err != nil {
		return err
	}
	// Native scorers expect rows in index order.
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(rows[a]) - int(rows[b]) })
	sorted, scores := make([]cluster.NodeIdx, len(rows)), make([]int64, len(rows))
	for k, i := range order {
		sorted[k], scores[k] = rows[i], c.scores[i].Score
	}
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	c.native.Normalize(p.host.infos.state, sorted, scores)
	if failing, can := c.native.(plugin.FailingScore); can && failing.Failed() != nil {
		return failing.Failed()
	}
	for k, i := range order {
		c.scores[i].Score = scores[k]
	}
	return nil
}
