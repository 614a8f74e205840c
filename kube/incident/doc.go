// SPDX-License-Identifier: Apache-2.0

// Package incident owns the flight recorder of the scheduling loop: what is kept of the last events at all times, and
// which conditions make it a bundle.
//
// The recorder keeps two segments, each a State of the engine and the events since, as pointers to immutable records,
// and a digest of the effects of each event. The detector is a pure function of what the loop gives it. A bundle is
// written outside the loop, by package app/command/incidents.
//
// Rejected: keeping the effects. They are ten times the size of the events, and a replay makes them again. Rejected:
// encoding in the loop, which costs more than a decision.
package incident
