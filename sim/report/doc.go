// SPDX-License-Identifier: Apache-2.0

// Package report owns the output of simulations: summaries over seeds, paired comparisons of profiles, and their forms
// as table, JSON, CSV and HTML.
package report
