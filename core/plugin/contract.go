// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// MaxScore is the highest normalised score of a plugin for a node.
const MaxScore int64 = 100

// Plugin has a name: the one in KubeSchedulerConfiguration, records and metrics. What else it does shows in which of
// the interfaces below it implements.
type Plugin interface {
	Name() string
}

// Gate keeps pods out of the active queue (upstream: PreEnqueue).
type Gate interface {
	Plugin
	// Gated returns why the pod must wait; ok is true when it need not.
	Gated(s cluster.Snapshot, p *cluster.Pod) (reason string, ok bool)
}

// SelfOpening is a Gate whose owner brings pods back by itself as it opens: no event makes the queue ask it again,
// but for gangs.
type SelfOpening interface {
	Gate
	OpensItself()
}

// Less orders the active queue (upstream: QueueSort). The engine breaks what remains equal by age.
type Less interface {
	Plugin
	// Before reports whether a pod with the first priority goes before one with the second.
	Before(a, b *cluster.Pod) bool
}

// Filter decides on which nodes a pod can run (upstream: PreFilter and Filter).
type Filter interface {
	Plugin
	// PrepareFilter looks at the pod once.
	PrepareFilter(s cluster.Snapshot, p *cluster.Pod) FilterPlan
}

// FilterPlan is what a Filter makes of a pod before it looks at nodes.
type FilterPlan struct {
	// Err, when not nil, fails the attempt: the pod is tried again after an error backoff.
	Err error
	// Reject, when not empty, is why the pod fits no node at all: no node is looked at. Such a rejection is
	// unresolvable (no eviction helps) unless Resolvable is set (upstream: Unschedulable from PreFilter): the filters
	// after it are then prepared all the same.
	Reject     string
	Resolvable bool
	// Nodes, when not nil, are the only nodes to look at, by name.
	Nodes map[string]struct{}
	// Filter is nil when the plugin has nothing to say about this pod (upstream: Skip).
	Filter PodFilter
}

// PodFilter is a Filter prepared for one pod.
type PodFilter interface {
	// Plain is the verdict on one node.
	Plain(s cluster.Snapshot, v *cluster.NodeView) Code
	// Column gives the verdict on rows lo to hi-1: where out holds Fits and the pod does not fit, it writes
	// tag.With(code). It leaves all other rows alone.
	Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict)
	// Reasons are the texts of a code, as upstream words them, in upstream's order.
	Reasons(c Code) []string
}

// Supposing is a PodFilter that is prepared for each decision and counts pods of other rows, and so must receive the
// pods that are supposed to be there or gone (upstream: PreFilterExtensions). RemovePod after AddPod restores what was,
// and the other way round.
type Supposing interface {
	PodFilter
	// AddPod supposes that other is on the node of v too; v holds it already.
	AddPod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView)
	// RemovePod supposes that other is gone from the node of v; v does not hold it any more.
	RemovePod(s cluster.Snapshot, other *cluster.Pod, v *cluster.NodeView)
}

// Failing is a PodFilter that can meet an error, which fails the attempt. It is asked after each use.
type Failing interface {
	PodFilter
	Failed() error
}

// Scorer ranks nodes (upstream: PreScore, Score, NormalizeScore).
type Scorer interface {
	Plugin
	// PrepareScore looks at the pod once. A nil PodScore means that the plugin does not score it (upstream: Skip), a
	// BrokenScore that it cannot.
	PrepareScore(s cluster.Snapshot, p *cluster.Pod) PodScore
	// Normal is how raw scores become 0..MaxScore.
	Normal() Normal
}

// PodScore is a Scorer prepared for one pod.
type PodScore interface {
	// Plain is the raw score of one node.
	Plain(s cluster.Snapshot, v *cluster.NodeView) int64
	// Column writes the raw scores of rows lo to hi-1. Rows without a node may hold anything.
	Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
}

// UncachedScorer is a Scorer whose scores depend on which rows fit, or on more than the row and the PodSpec. It is
// prepared anew for each decision in which two rows or more fit. Place does not call PrepareScore and Normal of an
// UncachedScorer.
type UncachedScorer interface {
	Scorer
	// PrepareUncached looks at the pod and the rows that fit, in index order. Nil means that the plugin does not score
	// the pod (upstream: Skip); the error fails the attempt.
	PrepareUncached(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) (UncachedScore, error)
	// Skips reports whether the plugin does not score a pod, as far as that is known without reading rows.
	Skips(s cluster.Snapshot, p *cluster.Pod) bool
}

// UncachedScore is an UncachedScorer prepared for one decision.
type UncachedScore interface {
	// Plain is the raw score of one node.
	Plain(s cluster.Snapshot, v *cluster.NodeView) int64
	// Rows writes the raw score of row fit[i] to out[i].
	Rows(s cluster.Snapshot, fit []cluster.NodeIdx, out []int64)
	// Normalize rewrites the raw scores of the rows that fit to 0..MaxScore, in place.
	Normalize(s cluster.Snapshot, fit []cluster.NodeIdx, scores []int64)
}

// FailingScore is an UncachedScore that can meet an error, which fails the attempt. Failed is called after Normalize.
type FailingScore interface {
	UncachedScore
	Failed() error
}

// BrokenScore stands for a pod that the API server accepts and a plugin cannot score: a preferred node affinity term
// that compares with something that is no number, say. Upstream's PreScore fails with Err then, and with it the
// attempt, but only where two nodes or more fit: with fewer, nothing is scored.
type BrokenScore struct{ Err error }

// Plain is 0.
func (BrokenScore) Plain(cluster.Snapshot, *cluster.NodeView) int64 { return 0 }

// Column writes zeros.
func (BrokenScore) Column(_ cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) { clear(out[lo:hi]) }

// Reads declares the node, because it needs a value; it reads nothing.
func (BrokenScore) Reads() Reads { return ReadsNode }

// Normal is a way to bring raw scores of the feasible nodes to 0..MaxScore.
type Normal uint8

// The normalisers (upstream: plugins/helper/normalize_score.go).
const (
	AsIs        Normal = iota // raw scores are in range already
	ByMax                     // raw*100/max over the feasible nodes; all 0 when max is 0
	ReversedMax               // 100 - raw*100/max; all 100 when max is 0
)

// Apply normalises one raw score, given the largest raw score among the feasible nodes.
func (n Normal) Apply(raw, largest int64) int64 {
	switch {
	case n == AsIs:
		return raw
	case largest == 0 && n == ReversedMax:
		return MaxScore
	case largest == 0:
		return raw
	case n == ReversedMax:
		return MaxScore - MaxScore*raw/largest
	}
	return MaxScore * raw / largest
}

// Reserver takes what a pod needs besides capacity on its node (upstream: Reserve, Unreserve, PreBind).
type Reserver interface {
	Plugin
	// Reserve is called once p is assumed on row n. What it supposes about objects it does through t.
	Reserve(t *cluster.Trial, p *cluster.Pod, n cluster.NodeIdx) Reserved
}

// Deferrer is a Reserver with effects outside of the cluster's state. A search that may drop a placement calls
// ReserveLater instead of Reserve.
type Deferrer interface {
	Reserver
	// ReserveLater returns a reservation that has no effect before Keep. It rejects nothing.
	ReserveLater(p *cluster.Pod, n cluster.NodeIdx) Deferred
}

// Deferred is a Reservation of a Deferrer.
type Deferred interface {
	Reservation
	// Keep reserves. It is called once, before Ready, when the placement that it belongs to is kept; s has all pods of
	// that placement. If it rejects or fails, Release is called.
	Keep(s cluster.Snapshot) Reserved
}

// Reserved is a Reserver's answer.
type Reserved struct {
	// By is the plugin that rejects or fails, if it is not the Reserver itself.
	By string
	// Hold is what is held for the pod; nil when nothing is.
	Hold Reservation
	// Reject, when not empty, is why the pod cannot have the node after all; events that wake the plugin wake it.
	Reject string
	// Err, when not nil, fails the attempt. Worded is set if it names the extension point and the plugin, as upstream
	// words it.
	Err    error
	Worded bool
}

// ErrorText returns the message of an error of a plugin at an extension point. worded is set if the error names both
// already, as upstream words it.
func ErrorText(point, name string, err error, worded bool) string {
	if worded {
		return err.Error()
	}
	return fmt.Sprintf("running %s plugin %q: %v", point, name, err)
}

// Reservation is what a Reserver holds for a pod from its decision to its bind.
type Reservation interface {
	// Writes are to be carried out, in order, before the pod is bound.
	Writes() []cluster.Write
	// Ready reports whether the pod can be bound now. It is asked once the writes are done, and from then on
	// whenever an object has changed and when the time of Again has come.
	Ready(s cluster.Snapshot, now record.Time) Readiness
	// Release takes back what Reserve supposed, after the attempt has failed. The writes it returns take back what
	// Writes did, as far as that must be; they may find that nothing was written. written reports whether Writes were
	// carried out.
	Release(t *cluster.Trial, written bool) []cluster.Write
}

// WaitingReservation is a Reservation of a pod that plugins may reject while it waits. Events that may help them are
// kept, for the case that they do.
type WaitingReservation interface {
	Reservation
	// Rejecters are the names by which Ready may reject. It is called once, before Ready; nil means that it never
	// rejects.
	Rejecters() []string
}

// Readiness is the answer of Reservation.Ready: ready, rejected, failed, or, when it is none of these, not yet.
type Readiness struct {
	Ready bool
	// Again is when to ask again at the latest; 0 means that only changes of objects matter.
	Again record.Time
	// By, Reject, Err and Worded are as in Reserved.
	By     string
	Reject string
	Err    error
	Worded bool
}
