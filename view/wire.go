// SPDX-License-Identifier: Apache-2.0

package view

import "github.com/kumiki-scheduler/kumiki/record"

// Prefix is the path of the API. A client with the verb get on the nonResourceURL /kumiki/* sees all namespaces, others
// those whose pods they may see.
const Prefix = "/kumiki/v1/"

// MoveLine is one line of the stream of moves. A line holds a move, or reports that moves are missing.
type MoveLine struct {
	// Epoch identifies the process that assigned the numbers; it is on the first line.
	Epoch string `json:"epoch,omitempty"`
	// Seq is the number of the move, or of the newest move so far on a line without one. Reading continues after it
	// with ?epoch=EPOCH&since=SEQ.
	Seq  uint64            `json:"seq"`
	Move *record.QueueMove `json:"move,omitempty"`
	// Lost: moves after the requested number are no longer kept.
	Lost bool `json:"lost,omitempty"`
}

// DecisionList is the answer to decisions.
type DecisionList struct {
	// Items are the newest first.
	Items []record.Decision `json:"items"`
}
