// SPDX-License-Identifier: Apache-2.0

// Package place owns the search over nodes: which nodes fit a pod, which of them is best, and why the others are not.
//
// Every node is considered. core/place/classes keeps verdicts and scores of node-local plugins for classes of pods; a
// decision starts from the class of its pod, which is up to date. From there a search takes one of three paths, with
// the same result (see Path):
//
//   - Ranked. If the decision depends on the class alone, the class has its rows in the order of their totals, and no
//     row is read. An uncached filter that would reject no row (plugin.Quiet) does not count: volume filters are quiet
//     as long as every driver has capacity left.
//   - Grouped. Uncached plugins evaluate more than one row (filters whose plugin.Reads are not Cached, and
//     plugin.UncachedScorer). Those that spread, attract and repel pods distinguish rows by few values (plugin.Facet):
//     the zone, the number of counted pods on the node. Rows of equal facets form a group, each group is ranked, and a
//     decision evaluates one row of each.
//   - Scanned. Uncached plugins run on every row: for pods with devices, or with volumes that not every node takes,
//     where there are too many groups, and where something holds for single rows in this decision.
//
// What leaves the first two: verdicts that nominated pods change, for rows with nominated pods are judged singly in
// their plain form, twice; a pod that is nominated itself; a pod that can go to a few named nodes only (daemon pods),
// which is judged on those alone, without a class; a strategy that ranks fewer nodes; foreign code, which ranks a
// list of the nodes that fit; and preferences normalised by nodes of which an uncached filter leaves some out.
//
// A Placer has one search at a time. Its stage states where its verdicts are: with the class, with groups, in the
// column of the class, or in a column of its own. An Outcome reads its search, until the Placer's next one.
//
// Strategies that rank fewer nodes (Search) choose among verdicts that are there already: they change which nodes
// count, not what is known of them.
//
// Rejected: sampling as a silent default, and rescoring every row per decision, which costs ten times as much at 5,000
// nodes (docs/bench).
package place
