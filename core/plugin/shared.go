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
	// SkipsAmong reports whether the plugin does not score p. fit are the rows that fit, at least two, in index order;
	// nil stands for all nodes. It is called at most once in a decision, before PrepareUncached. fit belongs to the
	// caller.
	SkipsAmong(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) bool
}

// Pender is a PodFilter that can wait for something outside of the scheduler (upstream: status Pending).
type Pender interface {
	PodFilter
	// Pending reports whether a code of a rejection means that. Evictions do not help then, and an event that wakes the
	// pod ends its backoff.
	Pending(c Code) bool
}
