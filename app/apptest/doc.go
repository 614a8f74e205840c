// SPDX-License-Identifier: Apache-2.0

// Package apptest owns tests for programs with custom plugins: scenarios, which are text with the decisions that a
// scheduler makes of it, and the comparison of the two forms of a plugin. It needs no cluster.
package apptest
