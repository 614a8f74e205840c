// SPDX-License-Identifier: Apache-2.0

// Package quality owns the protocols by which the quality of placements is measured on published traces, the reference
// implementations of published policies, and the tables of the results. It runs kumiki through sim.Stepper and knows no
// configuration.
//
// A reference policy is a simple implementation of a paper's rule, on nodes of its own. It shows that the protocol is
// the paper's: its results are compared with the published ones. It is no part of the scheduler.
package quality
