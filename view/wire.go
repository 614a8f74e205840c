// SPDX-License-Identifier: Apache-2.0

package view

import "github.com/kumiki-scheduler/kumiki/record"

// Prefix is where the API stands. A client needs the verb get on the nonResourceURL /kumiki/*.
const Prefix = "/kumiki/v1/"

// MoveLine is one line of the stream of moves. A line holds a move, or tells that moves are missing.
type MoveLine struct {
	// Epoch names the process that gave the numbers; it stands on the first line.
	Epoch string `json:"epoch,omitempty"`
	// Seq is the number of the move, or of the newest move so far on a line without one. Reading goes on behind it with
	// ?epoch=EPOCH&since=SEQ.
	Seq  uint64            `json:"seq"`
	Move *record.QueueMove `json:"move,omitempty"`
	// Lost is set when moves after the asked number are no longer kept.
	Lost bool `json:"lost,omitempty"`
}

// DecisionList is the answer to decisions.
type DecisionList struct {
	// Items are the newest first.
	Items []record.Decision `json:"items"`
}
