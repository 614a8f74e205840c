// SPDX-License-Identifier: Apache-2.0

// Package lint owns the rules of this repository that a machine can check: the import graph, what core must not use,
// the format of files and documents. Each rule is a test of this package, and each failure states the reason of the
// rule.
//
// A rule is a function from sources to findings, so that a test can check every rule with a sample that violates it.
//
// Rules read syntax if that is enough, because syntax covers the files behind every build tag and works while a
// package does not compile. Only the rule about map order needs types.
//
// Rejected: one linter program with a configuration file (its rules come without our reasons, and waivers collect);
// golangci-lint (a second version of every analyzer, and a binary that a fresh machine does not have).
package lint
