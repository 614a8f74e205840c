// SPDX-License-Identifier: Apache-2.0

// Package place owns the search over nodes: which nodes fit a pod, which of them is best, and why the others are not.
//
// Every node is looked at. Pods that node-local plugins cannot distinguish (cluster.PodSpec.Alike) form a class: the
// verdict and the raw scores of every row are kept per class, and a decision brings only the rows up to date that
// changed since the class was last used. Classes whose pods differ in requests alone share a larger equivalence
// class: what filters and scorers read of node objects is kept once for all of them (the type `kin`), and each has
// two bytes for a row (coded): a total, or the number of a verdict. They catch up on changes from columns that stand
// in the order of the changes (cluster.Recent).
//
// From there a search takes one of three paths, with the same result (see Path):
//
//   - Ranked. If the decision depends on the class alone, its totals are kept in order (ranking): the best row, how
//     many tie with it and the k-th of them are found without reading any row. A wide filter that would reject no row
//     (plugin.Quiet) does not count: volume filters are quiet as long as every driver has capacity left.
//   - Grouped. Wide plugins look at more than one row (plugin.WideFilter, plugin.WideScorer). Those that spread,
//     attract and repel pods distinguish rows by few things (plugin.Facet): the zone, how many of the pods counted are
//     on the node. Rows of equal facets form a group, each group is ranked, and a decision asks the plugins about a
//     row of each.
//   - Scanned. Wide plugins run on every row: for pods with devices, or with volumes that not every node takes, where
//     there are too many groups, and where something holds for single rows in this decision.
//
// What leaves the first two: verdicts that nominated pods change, for rows with nominated pods are judged singly in
// their plain form, twice; a pod that is nominated itself; a pod that can go to a few named nodes only (daemon pods),
// which is judged on those alone, without a class; a strategy that ranks fewer nodes; foreign code, which ranks a
// list of the nodes that fit; and preferences measured by nodes of which a wide filter leaves some out.
//
// Strategies that rank fewer nodes (Search) choose among verdicts that are there already: they change which nodes
// count, not what is known of them.
//
// Rejected: bounds on totals that let a class pass over changed rows. Scores that prefer empty nodes keep a cluster
// level, so that all rows are within a few points of the best, and no bound says anything. Rows of equal amounts as
// one, which helps as long as nodes have one pod or none.
//
// Rejected: sampling as a silent default, and rescoring every row per decision, which costs ten times as much at 5,000
// nodes (docs/bench).
package place
