// SPDX-License-Identifier: Apache-2.0

package shard

import "github.com/kumiki-scheduler/kumiki/record"

// Proposal is a placement of a whole unit that a planner has decided.
type Proposal struct {
	From     Ordinal
	Epoch    Epoch
	Session  Session
	Sequence Sequence
	At       Position // the newest entry of the log that the planner had
	Unit     string
	Priority int32 // of the unit, as the arbiter knows it
	// On are the nodes of its pods, each of which fits with those before it in place.
	On []Placement
}

// Placement is the node of a pod.
type Placement struct {
	Pod  record.PodRef
	Node string
}

// Answer is the arbiter's answer to a proposal.
type Answer struct {
	Session  Session
	Sequence Sequence
	Verdict  Verdict
	// Of a refusal: the first placement that was refused, the plugin, empty if none refuses it, and why. Entry is the
	// newest entry about the node that the planner did not have; 0 for none.
	Node, Plugin, Reason string   `json:",omitempty"`
	Entry                Position `json:",omitempty"`
	// Stays is set if the unit stays the planner's, to be decided anew. Otherwise its loan has ended.
	Stays bool `json:",omitempty"`
	// Promised are the nodes that the arbiter keeps for the unit for PromiseFor.
	Promised []Placement `json:",omitempty"`
}
