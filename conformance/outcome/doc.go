// SPDX-License-Identifier: Apache-2.0

// Package outcome owns the answer to one conformance question in the terms both
// schedulers share: who rejects which node and why, every score, and the best
// nodes. It knows neither scheduler.
//
// Order that carries no meaning is taken out when an outcome is made: reasons
// are sorted (upstream iterates a map over extended resources), and nodes are
// sorted by name.
package outcome
