// SPDX-License-Identifier: Apache-2.0

package preempt

// Compare is negative when a is the smaller loss.
func Compare(a, b Loss) int { return a.compare(b) }

// PlacesFirst makes a search for units look for places first, as it does where there are many, and tell members apart as
// little as it does where they are of many kinds.
func (f *Finder) PlacesFirst() { f.scale.many, f.scale.kinds = 1, 1 }

// Tire makes a search for units stop asking after so many dry runs of one pod.
func (f *Finder) Tire(runs int) { f.scale.many, f.scale.runs = 1, runs }

// AsForGangs makes a search for units go the way that gangs need for one pod, too.
func (f *Finder) AsForGangs() { f.scale.general = true }

// Lone tells whether the last search for units was by sums for one pod, and Refuted whether a dry run has ever said otherwise
// than such a search.
func (f *Finder) Lone() bool    { return f.byLone }
func (f *Finder) Refuted() bool { return f.refuted }
