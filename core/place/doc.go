// SPDX-License-Identifier: Apache-2.0

// Package place owns the search over nodes: which nodes fit a pod, which of them is best, and why the others are not.
//
// Every node is looked at. Pods that share a cluster.PodSpec filter and score alike, so they form a class: the verdict
// and the raw scores of every row are kept per class, and a decision brings only the rows up to date that changed since
// the class was last used. What remains per decision is one pass over a column of totals.
//
// Two things leave this path: rows with nominated pods are judged singly in their plain form, twice; and a pod that can
// go to a few named nodes only (daemon pods) is judged on those alone, without a class.
//
// Rejected: sampling (a documented difference from upstream's default), and rescoring every row per decision, which
// costs ten times as much at 5,000 nodes (docs/bench).
package place
