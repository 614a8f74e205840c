// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Sharing is a plugin that shares state with other plugins of its profile during one decision, as plugins written for
// upstream's framework share a CycleState.
type Sharing interface {
	Plugin
	// Shared returns the shared state, the same comparable value for all plugins that share it.
	Shared() Shared
}

// Shared is state that plugins share during one decision.
type Shared interface {
	// Begin starts a decision about p. It is called before any plugin is prepared for p, for questions too.
	Begin(s cluster.Snapshot, p *cluster.Pod)
}

// Skipper is an UncachedScorer that knows only with the rows that fit whether it scores a pod (upstream: Skip from
// PreScore).
type Skipper interface {
	UncachedScorer
	// SkipsAmong reports whether the plugin does not score p. fit has the rows that fit, at least two; nil stands for
	// all nodes. It is called at most once in a decision, before PrepareUncached.
	SkipsAmong(s cluster.Snapshot, p *cluster.Pod, fit *FitRows) bool
}

// FitRows is a list of the rows that fit a pod. Most decisions have the rows of the one before: a Skipper may compare
// pointers, because a pointer that it has received before stands for the same rows.
type FitRows struct {
	// Rows are in index order. They belong to the caller, and are valid in the decision in which they were received.
	Rows []cluster.NodeIdx
}

// Pender is a PodFilter that can wait for something outside of the scheduler (upstream: status Pending).
type Pender interface {
	PodFilter
	// Pending reports whether a code of a rejection means that. Evictions do not help then, and an event that wakes the
	// pod ends its backoff.
	Pending(c Code) bool
}
