// SPDX-License-Identifier: Apache-2.0

// Package place owns the search over nodes: which nodes fit a pod, which of them is best, and why the others are not.
//
// Every node is looked at. Pods that node-local plugins cannot tell apart (cluster.PodSpec.Alike) form a class: the
// verdict and the raw scores of every row are kept per class, and a decision brings only the rows up to date that changed
// since the class was last used. Wide plugins, which look at more than one row, run anew for each decision on top of that
// (plugin.WideFilter, plugin.WideScorer); where none has anything to say, what remains per decision is one pass over a
// column of totals.
//
// What leaves this path: rows with nominated pods are judged singly in their plain form, twice; a pod that can go to a few
// named nodes only (daemon pods) is judged on those alone, without a class; and pods in which foreign code takes part are
// ranked from a list of the nodes that fit.
//
// Strategies that rank fewer nodes (Search) choose among verdicts that are there already: they change which nodes count,
// not what is known of them.
//
// Rejected: sampling as a silent default, and rescoring every row per decision, which costs ten times as much at 5,000
// nodes (docs/bench).
package place
