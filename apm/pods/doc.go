// SPDX-License-Identifier: Apache-2.0

// Package pods owns the times of pods in a bundle. There are two kinds of parts. Times has when each pod was created
// and when a watch showed it bound, seen by a recorder outside of the scheduler, so any scheduler has it. Journeys has
// the phases between them, which only kumiki reports (record.Timing); this package reads the fields that analyses need.
//
// A reader treats a part as input from another machine: numbers of pods, lengths of names and the order of times are
// checked, and a part that breaks a rule is an error, so that no value is computed from it.
package pods
