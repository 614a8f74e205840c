// SPDX-License-Identifier: Apache-2.0

// Package view owns the HTTP API over records under /kumiki/v1/: the running scheduler's reports on pods, gangs,
// nodes and its queue, and what-if questions. kube serves, authenticates and authorizes; view provides a handler.
//
// Questions about the present run in the engine through Asker, between two of its steps. The past is two bounded
// rings, of queue moves and of decisions, which Moved and Decided fill from the engine's effects.
//
// Identities that may not read the API get narrow answers: about pods that the API server lets them see, without names
// of other namespaces (narrow.go, redact.go).
//
// Rejected: answers from a copy of the state that is kept up to date beside the engine. It would be a second writer
// of the same facts, and a question takes far less time than a scheduling cycle. Rejected: WebSocket for the stream
// of moves; one JSON object per line over plain HTTP can be read with curl and resumed by number.
package view
