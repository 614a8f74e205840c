// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// PostFilter is a plugin that may help a pod that fits no node by means of its own (upstream: PostFilter).
type PostFilter interface {
	Plugin
	// PreparePostFilter is called after a decision that found no node for p, while the plugin's state of the decision
	// is there. rejected returns why a row was rejected, and stays good. The result is called if no plugin before it
	// ends the round.
	PreparePostFilter(s cluster.Snapshot, p *cluster.Pod, rejected func(cluster.NodeIdx) NodeRejection) func() Help
}

// NodeRejection is why a decision rejected a node.
type NodeRejection struct {
	// Plugin is empty if no single plugin rejects the node.
	Plugin  string
	Reasons []string
	// Unresolvable reports that evictions do not help, Pending that the plugin waits for something outside of the
	// scheduler.
	Unresolvable, Pending bool
}

// Help is the answer of a PostFilter. The pod waits in any case.
type Help struct {
	// Message goes behind the reasons for which the pod fits nowhere.
	Message string
	// Last ends the round: no other plugin is asked, and the messages of those before are dropped.
	Last bool
	// Nominates replaces the nomination of the pod by Node, which may be empty. Of several plugins the last one counts.
	Nominates bool
	Node      string
	// Others are nominations of pods that the plugin changed, in order. They count at once, as that of the pod.
	// An empty node ends a nomination.
	Others []record.Nomination
}

// Nominator follows the nominated nodes of pods.
type Nominator interface {
	// Nominated is called when the pods that are nominated to a node are others, or have other versions, with all of
	// them in the order of nomination. They belong to the caller.
	Nominated(node string, pods []*cluster.Pod)
}
