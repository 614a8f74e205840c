// SPDX-License-Identifier: Apache-2.0

package units

// PlacesFirst makes a search look for a placement first, as it does if there are many units, and distinguish members
// as little as it does if they are of many kinds.
func (f *Finder) PlacesFirst() { f.limits.many, f.limits.kinds = 1, 1 }

// Tire limits a search to so many dry runs of one pod.
func (f *Finder) Tire(runs int) { f.limits.many, f.limits.runs = 1, runs }

// AsForGangs makes a search for one pod that for a gang.
func (f *Finder) AsForGangs() { f.limits.general = true }

// Lone reports whether the last search was the single-pod search, and Refuted whether a dry run has ever contradicted
// one.
func (f *Finder) Lone() bool    { return f.wasSinglePod }
func (f *Finder) Refuted() bool { return f.refuted }
