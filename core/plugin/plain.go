// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// NodeFilter is a filter prepared for one pod, with the plain form alone.
type NodeFilter interface {
	// Plain and Reasons are those of PodFilter.
	Plain(s cluster.Snapshot, v *cluster.NodeView) Code
	Reasons(c Code) []string
}

// NodeScore is a score prepared for one pod, with the plain form alone.
type NodeScore interface {
	// Plain is that of PodScore.
	Plain(s cluster.Snapshot, v *cluster.NodeView) int64
}

// FilterByNode returns a PodFilter whose column form calls the plain form for each row.
func FilterByNode(f NodeFilter) PodFilter { return filterByNode{f} }

// ScoreByNode returns a PodScore whose column form calls the plain form for each row.
func ScoreByNode(f NodeScore) PodScore { return scoreByNode{f} }

type filterByNode struct{ NodeFilter }

// Column writes the verdicts on rows lo to hi-1.
func (f filterByNode) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	for n := lo; n < hi; n++ {
		if out[n] != Fits {
			continue
		}
		if code := f.Plain(s, s.View(n)); code != Fit {
			out[n] = tag.With(code)
		}
	}
}

type scoreByNode struct{ NodeScore }

// Column writes the raw scores of rows lo to hi-1.
func (f scoreByNode) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	for n := lo; n < hi; n++ {
		if s.Node(n) != nil {
			out[n] = f.Plain(s, s.View(n))
		}
	}
}
