// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign is the port through which code that is not native takes part in a decision: HTTP extenders, and plugins
// written for k8s.io/kube-scheduler/framework. host implements it.
//
// It is called synchronously at the numbered steps of the cycle and names nodes only; the implementation holds the
// objects it needs. Its answers are recorded with the cycle, and a replay answers from the recording, so that foreign
// code does not make decisions unrepeatable.
//
// The device allocator does not come through this port: it is a function of the objects in the store, and works as a
// plugin (host/devices).
type Foreign interface {
	// Takes reports whether foreign code takes part in deciding about p.
	Takes(p *cluster.Pod) bool
	// Filter is called with the nodes that the native filters leave, at least one. Nodes without an entry in the
	// answer fit. An error fails the attempt.
	Filter(p *cluster.Pod, nodes []string) (map[string]ForeignRejection, error) // node name -> why it does not fit
	// Score is called when two nodes or more fit. The answer has one entry per foreign scorer.
	Score(p *cluster.Pod, nodes []string) []ForeignScore
	// Preempts reports whether foreign code takes part in choosing victims for p.
	Preempts(p *cluster.Pod) bool
	// Preempt is called with the nodes on which evictions would free enough capacity for p, at least one, in the
	// order of their names, each with its victims, at least one. The answer replaces them and has the same form: some
	// of the nodes, or others, with these victims or other pods that are on them. on lists the pods of a node; ok is
	// false for a node that does not exist. An error ends the search for victims (upstream: preemption.go,
	// callExtenders).
	Preempt(p *cluster.Pod, candidates []ForeignVictims,
		on func(node string) (pods []record.PodRef, ok bool)) ([]ForeignVictims, error)
	// Binder names the foreign code that binds p in place of the API call; empty for none.
	Binder(p *cluster.Pod) string
}

// ForeignRejection is why foreign code rejects a node.
type ForeignRejection struct {
	// By names the plugin, or the extender.
	By           string
	Reason       string
	Unresolvable bool
}

// ForeignScore is what one foreign scorer adds to the totals, its weight applied.
type ForeignScore struct {
	By    string
	Added []int64 // by position in the nodes of the call
}

// ForeignVictims are the pods of a node that would have to go for another pod.
type ForeignVictims struct {
	Node string
	Pods []record.PodRef
	// PDBViolations counts those of them whose disruption budgets do not allow it.
	PDBViolations int64
}

// ForeignWaker wakes pods that foreign code rejected at every event.
type ForeignWaker struct{}

// Name is ForeignName.
func (ForeignWaker) Name() string { return ForeignName }

// Wakes registers for everything.
func (ForeignWaker) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.Wildcard, Action: plugin.All}}}
}
