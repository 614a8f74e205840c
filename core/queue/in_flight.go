// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/kumiki-scheduler/kumiki/core/plugin"

// entry is a node of the in-flight list: an event, or the marker of a unit.
type entry struct {
	prev, next *entry
	unit       *Unit          // of a marker
	change     *plugin.Change // of an event
}

// flight is the list of events that happened while units were in flight: markers of units and events in order of
// time. A unit that returns is checked against the events after its marker, so none is lost between Pop and Requeue.
//
// Invariant: the list is empty or starts with a marker, so every event in it is needed by a unit in flight.
type flight struct {
	first, last *entry
	units       int // Invariant: the number of markers.
	entries     int // Invariant: the number of markers and events.
}

func (f *flight) append(e *entry) {
	e.prev, e.next = f.last, nil
	if f.last != nil {
		f.last.next = e
	} else {
		f.first = e
	}
	f.last = e
	f.entries++
}

func (f *flight) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		f.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		f.last = e.prev
	}
	e.prev, e.next = nil, nil
	f.entries--
}

// add adds the marker of a unit that was popped.
func (f *flight) add(u *Unit) {
	u.marker.unit = u
	f.append(&u.marker)
	f.units++
}

// remove removes a unit's marker, and the events that no other unit needs.
func (f *flight) remove(u *Unit) {
	f.unlink(&u.marker)
	f.units--
	for f.first != nil && f.first.change != nil {
		f.unlink(f.first)
	}
}

// happened records an event if a unit is in flight.
func (f *flight) happened(ch plugin.Change) {
	if f.units > 0 {
		kept := ch // only a recorded change is allocated
		f.append(&entry{change: &kept})
	}
}

// inOrder returns the units in flight in the order in which they were popped.
func (f *flight) inOrder() []*Unit {
	var units []*Unit
	for e := f.first; e != nil; e = e.next {
		if e.change == nil {
			units = append(units, e.unit)
		}
	}
	return units
}
