// SPDX-License-Identifier: Apache-2.0

// Package lint owns the rules of this repository that a machine can check: which package may import which, what core
// must not touch, how files look. Each rule is a test of this package, and each failure says why the rule is there.
//
// A rule is a function from sources to findings, so that every rule is itself tested with a sample that breaks it: a
// rule that cannot fail protects nothing.
//
// Rules read syntax where syntax is enough, because syntax covers the files behind every build tag and works while a
// package does not compile. Only the rule about map order needs types.
//
// Rejected: one linter program with a configuration file (its rules come without our reasons, and waivers collect);
// golangci-lint (a second version of every analyzer, and a binary that a fresh machine does not have).
package lint
