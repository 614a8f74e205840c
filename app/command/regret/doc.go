// SPDX-License-Identifier: Apache-2.0

// Package regret owns the measurement of placement regret: by how much the nodes that a scheduler chose score below the
// best ones, and why. It works on a replay of a recording, so that the running scheduler does nothing for it.
//
// A decision is compared on two states. The state of the decision has the score of each node as the decision could have
// known it. The newest state is that state with the events that came before the outcome of the bind, but for those that
// follow from later decisions of the same scheduler: these are not something that the decision did not know, they are
// what it left to others. The newest state is made by a second engine, which is resumed from the State of the first one
// and makes no decision.
//
// With n(x) for the score of node x on the newest state, c for the chosen node, T for the nodes that had the score of c
// at the decision, and B for the best ones then, the regret is max n - n(c). Its parts are
//
//	tie        max over T of n, less n(c)
//	window     max over T and B of n, less max over T of n
//	staleness  max of n, less max over T and B of n
//
// which are not negative and add up to it. The second one is called preferred if the search considered all nodes.
//
// Rejected: to compare in the running scheduler, which doubles the work of the decisions that are sampled; to compare
// with the state of the replay when the outcome comes, in which a burst of pods has filled the best nodes by design.
package regret
