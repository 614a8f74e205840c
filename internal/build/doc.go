// SPDX-License-Identifier: Apache-2.0

// Package build owns how the programs of a local cluster are built from source: it runs the go command, and shows how
// far the work is and how long it may take. Package first is the program behind make up.
//
// The percentage is that of the CPU time of all packages, which is computed from their sizes. Rejected: a table of
// measured times, since it is wrong after each change of a version; a count of packages, since they differ by a factor
// of 100; asking the go command which packages are stale, since that takes as long as a build in which nothing changed.
package build
