// SPDX-License-Identifier: Apache-2.0

// Package view owns the HTTP API over records: what the running scheduler says of pods, gangs, nodes and its queue,
// and of what would be if something else were, under /kumiki/v1/. Serving, authentication and authorization are
// kube's; view gives it a handler.
//
// Questions about the present are put to the engine through Asker, between two of its steps. The past is two bounded
// rings, of queue moves and of decisions, which Moved and Decided fill from the engine's effects.
//
// Rejected: answers from a copy of the state that is kept up to date beside the engine. It would be a second writer of
// the same facts, and asking takes far less than a scheduling cycle. Rejected: WebSocket for the stream of moves; one
// JSON object per line over plain HTTP can be read with curl and resumed by number.
package view
