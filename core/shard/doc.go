// SPDX-License-Identifier: Apache-2.0

// Package shard owns what an arbiter knows of the other instances of the scheduler: which of them are members, which
// planner has which units, how far each of them follows the log, and what the next arbiter takes over.
//
// The arbiter is the instance that holds the leader lease. It alone has the ledger of the cluster's capacity, and it
// alone writes to the API server. The other members are planners: they follow the arbiter's log and propose placements
// for the units that are lent to them. docs/design/0015-instances.md has the design with the rejected ones.
//
// Members assigns ordinals. Policy and Dispatcher choose the member for a unit. Loans records what is lent, Sessions
// which proposals are accepted, Log up to which position decisions may be sent to the API server, and Inherit what a
// successor finds in a log. None of them reads a clock: times come in with the calls, and equal calls in equal order
// give equal results on every machine, so there is no floating-point arithmetic in a decision.
//
// The package knows neither the engine nor a network. Nothing in it is written to pods: a unit's dispatch is a fact of
// the arbiter, not an annotation, which would be one more write per pod.
package shard
