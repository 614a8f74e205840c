// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Foreign is the port through which code that is not native takes part in a decision: plugins written for
// k8s.io/kube-scheduler/framework, HTTP extenders, the device allocator. host implements it.
//
// It is called synchronously at the numbered steps of the cycle and sees immutable records. Its answers enter the record
// of the decision, and a replay answers from the record, so that foreign code does not make decisions unrepeatable.
type Foreign interface {
	// Filter is asked at step 2 for the nodes that native filters have left. It returns, for each node it rejects, the
	// plugin and its reasons; nodes without an entry fit.
	Filter(pod *cluster.Pod, nodes []*cluster.Node) (rejected map[string]ForeignRejection, err error) // node name -> why
	// Score is asked at step 2 after Filter. It returns, for each node, what foreign scorers add to its total, weights
	// applied.
	Score(pod *cluster.Pod, nodes []*cluster.Node) (added map[string][]record.PluginScore, err error) // node name -> parts
	// Reserve is told at step 4 that the pod takes the node; an error undoes the decision.
	Reserve(pod *cluster.Pod, node string) error
	// Unreserve is told that a reserved pod lost its node. It may be told twice.
	Unreserve(pod *cluster.Pod, node string)
}

// ForeignRejection is why foreign code rejects a node.
type ForeignRejection struct {
	Plugin       string
	Reasons      []string
	Unresolvable bool
}
