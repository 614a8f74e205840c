// SPDX-License-Identifier: Apache-2.0

// Package mutation owns mutation testing: it shows that the tests detect faults which are put into the code on purpose.
//
// A fault is a patch in testdata/faults of the package that it changes, one file for each fault:
//
//	Fault: refusersUnheard
//	Breaks: a gang does not wait for the plugin that refused one of its members during Reserve
//	Detected by: TestScenarios/refusers
//
//	--- gang_cycle.go
//	+++ gang_cycle.go
//	@@ -10,7 +10,6 @@
//	 ...
//
// "Breaks" completes the sentence "with this fault, …". "Detected by" names one or more tests, separated by commas;
// each of them must fail. A test of another package is written with its directory: "core/engine:TestScenarios/gang".
// An optional line "Checks: 3000" sets how many random cases its property tests draw. The rest is a unified diff
// against production files of the package. It may change bodies of functions and add imports.
//
// Overlay merges all patches of a package into one instrumented copy (mutant schemata: Untch, Offutt and Harrold,
// 1993). Each function that a patch changes gets a second version, and its first version calls the second one if the
// fault is active. `go test -overlay` compiles the copy once, and the environment variable KUMIKI_FAULT selects the
// fault of a test process, so all faults of all packages cost one build. Production files contain no fault and no
// switch for one.
//
// Rejected: comparisons with a global variable in production files, since they are compiled into releases, stand in hot
// loops and hide the code; a build tag, since the comparisons stay in the source; one build for each fault, since 700
// faults would take hours.
package mutation
