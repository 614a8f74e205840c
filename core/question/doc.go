// SPDX-License-Identifier: Apache-2.0

// Package question owns the answers to questions about an engine: why a pod or a gang waits, how it would stand if
// pods, gangs or nodes changed, which node would be chosen for a pod, what nodes and the queue hold, and how many
// gangs wait for what.
//
// It has no state. An Inspector reads an engine.View between two Steps, on the engine's goroutine. A question leaves no
// trace in later decisions: what it tries is done in a trial or in a supposition of the cluster, both of which end with
// the question. In a supposition it searches with caches of its own.
//
// It imports engine and the packages below it. The engine must not import it, and it must not write to pods, units,
// nodes or objects that the view shows.
package question
