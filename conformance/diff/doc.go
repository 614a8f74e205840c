// SPDX-License-Identifier: Apache-2.0

// Package diff owns the comparison of two schedulers' outcomes: which fields must be equal, the
// reviewed list of exceptions, the coverage that shows which inputs occurred, the shrinking of
// a difference to a readable scenario, and the counted run over generated scenarios.
//
// A difference is never tolerated by loosening the comparison. It is either
// fixed or listed in exceptions.go with its reason, and the number of cases that
// each exception covered is part of every report.
package diff
