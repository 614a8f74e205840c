// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
)

// WindowState is the facts of a Window.
type WindowState struct {
	Zones []ZoneState
	Order []string // as the last search saw it
	Start int
}

// ZoneState is the nodes of one zone, in the order in which they came.
type ZoneState struct {
	Key   string
	Names []string
}

// State returns the facts of the window.
func (w *Window) State() WindowState {
	st := WindowState{Order: slices.Clone(w.order), Start: w.start}
	for _, z := range w.zones {
		st.Zones = append(st.Zones, ZoneState{z.key, slices.Clone(z.names)})
	}
	return st
}

// Restore gives a new window the facts of another one.
func (w *Window) Restore(st WindowState) {
	w.order, w.start = slices.Clone(st.Order), st.Start
	for _, z := range st.Zones {
		w.zones = append(w.zones, zone{z.Key, slices.Clone(z.Names)})
		w.nodes += len(z.Names)
	}
	for _, name := range w.order {
		w.known[name] = struct{}{}
	}
}
