// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// ScoreEachDecision returns sc as a scorer that is prepared for each decision with the whole pod, and whose scores are
// never cached. It is for scorers whose Reads are not Cached.
func ScoreEachDecision(sc Scorer) UncachedScorer {
	if uncached, is := sc.(UncachedScorer); is {
		return uncached
	}
	return scoreEachDecision{sc}
}

type scoreEachDecision struct{ Scorer }

// PrepareUncached prepares the score of a pod, whichever rows fit.
func (sc scoreEachDecision) PrepareUncached(s cluster.Snapshot, p *cluster.Pod,
	_ []cluster.NodeIdx) (UncachedScore, error) {
	score := sc.PrepareScore(s, p)
	if score == nil {
		return nil, nil
	}
	if broken, is := score.(BrokenScore); is {
		return nil, broken.Err
	}
	return plainScore{score, sc.Normal()}, nil
}

// Skips is false: only the preparation knows.
func (scoreEachDecision) Skips(cluster.Snapshot, *cluster.Pod) bool { return false }

// plainScore scores rows by the plain form.
type plainScore struct {
	PodScore
	normal Normal
}

// Rows writes the raw scores of the rows that fit.
func (p plainScore) Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64) {
	for i, n := range fit {
		out[i] = p.Plain(s, s.View(n))
	}
}

// Normalize applies the scorer's normaliser.
func (p plainScore) Normalize(_ cluster.Snapshot, _ []cluster.NodeIdx, scores []int64) {
	largest := int64(0)
	for _, raw := range scores {
		largest = max(largest, raw)
	}
	for i, raw := range scores {
		scores[i] = p.normal.Apply(raw, largest)
	}
}
