// SPDX-License-Identifier: Apache-2.0

// Package packing owns scorers that fill nodes: best fit by a norm of what is left, the dot product of what a pod
// requests and what is free, and the expected fragmentation for the mix of shapes that was seen. They are in no default
// profile, and upstream has none of them.
//
// All three compare amounts of different resources. NodeResourcesBestFit and NodeResourcesDotProduct measure each in
// units of the largest node (cluster.Snapshot.Largest), so that a small node that is full to the same share has less
// left; NodeResourcesFragmentation in units of what a pod requests on average (cluster.Snapshot.Mix).
//
// Scores are computed by +, -, *, / and square roots, each product rounded before it is added, so that every machine
// gives the same. Rejected: the logistic function of the paper on fragmentation, whose exponential differs in the last
// digit between architectures.
package packing
