// SPDX-License-Identifier: Apache-2.0

// Package answers owns the recorded answers of plugins that are written for kube-scheduler's framework. Such answers
// are no function of the events of an engine, so a recording has to hold them.
//
// A Log stands between the engine and the plugins: it returns what they answer, and notes it. The answers of one Step
// are a string of bytes, which the engine emits with its effects (message.Heard). A Recorded stands in for the plugins
// in a replay: it returns the noted answers, and needs neither the plugins nor the objects that they read.
//
// Both work at the contracts of core/plugin. So what is noted is what the engine sees: the outcome of a PreFilter, one
// code for each node that a Filter was called for, and so on. The answers of a plugin at one extension point are a
// sequence of its own, a section, which is read in the order in which it was written: the engine is a function of its
// events and these answers, so it asks in the same order. A section that ends early, or has answers left when the Step
// is over, is an error that names plugin and extension point.
//
// Comparisons of the queue, hints of events, and Skip from PreScore are one bit each. Verdicts on nodes are a list of
// the different outcomes and runs of equal ones; scores are runs or single values, whichever is shorter. Texts are
// written once for each Step.
//
// Rejected: noting the calls of the framework. A replay would need CycleState, NodeInfos and whole objects, and the
// answers of calls that plugins make among themselves. Rejected: texts that are written once for a recording; a segment
// and a bundle begin in the middle of it.
package answers
