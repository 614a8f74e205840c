// SPDX-License-Identifier: Apache-2.0

// Package bound owns limits that no scheduler can pass, whatever it decides: a result is shown beside them. They relax
// the problem, so the distance from a bound is not the distance from the optimum. Optima of small problems (Solve,
// LeastLoss, LeastDifference) say so.
//
// Rejected for Solve: a solver for pseudo-boolean problems (gophersat). It decides whether a placement exists, not
// which is the best of several priorities, so it would be called for each priority and number of pods; the search
// here knows that pods and nodes are alike, and needs no dependency.
package bound
