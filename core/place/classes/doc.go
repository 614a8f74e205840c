// SPDX-License-Identifier: Apache-2.0

// Package classes owns what is known of nodes between decisions: the verdicts and scores of node-local plugins for
// equivalence classes of pods, the order of the nodes by total, and groups of nodes that uncached plugins cannot
// distinguish. core/place searches in it.
//
// A class is the pods that node-local plugins cannot distinguish (cluster.PodSpec.Alike). The verdict and the raw
// scores of every row are kept per class, and Cache.Find brings only the rows up to date that changed since the
// class was last used. Classes whose pods differ in requests alone share a larger equivalence class (sharedClass):
// what filters and scorers read of node objects is kept once for all of them, and each has two bytes for a row: a
// total, or the number of a verdict. They catch up on changes from columns in the order of the changes
// (cluster.Recent).
//
// The totals of a class are kept in a max tree (maxTree): the best row, the number of rows that tie with it and the
// k-th of them are found without reading any row. A Grouping divides the rows of a class by what uncached plugins read
// of them (plugin.Facet), and keeps such a tree for each group.
//
// Only Cache writes. A Class, its Totals, a Grouping and a Selection are views that are valid until the Cache is used
// again. After a panic in a plugin the caller must call Cache.Drop for the pod.
//
// Files, from the lowest: maxtree, ranking; profile, workspace; totals, results; shared, sharing; compact,
// normalise, compact_update; order, class; grouping, groupings, selection; cache.
//
// Rejected: bounds on totals that let a class pass over changed rows. Scores that prefer empty nodes keep a cluster
// level, so that all rows are within a few points of the best, and no bound excludes any. Rows of equal amounts as
// one, which helps as long as nodes have one pod or none. A map from total to rows, which costs more memory than
// the tree and loses the order of rows that ties need.
package classes
