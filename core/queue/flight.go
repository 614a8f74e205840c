// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/kumiki-scheduler/kumiki/core/plugin"

// entry is a node of the in-flight list: an event, or the marker of a unit.
type entry struct {
	prev, next *entry
	unit       *Unit          // of a marker
	change     *plugin.Change // of an event
}

// flight is what happened while units were in flight: a list of markers and events in order of time. A unit that comes
// back is asked about the events after its marker; none is lost between Pop and Requeue.
//
// Invariant: the list is empty or starts with a marker, so it holds no event that nobody in flight can ask for.
type flight struct {
	first, last *entry
	units       int // markers
	entries     int // markers and events
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

// enter marks the moment at which a unit was popped.
func (f *flight) enter(u *Unit) {
	u.marker.unit = u
	f.append(&u.marker)
	f.units++
}

// leave takes a unit's marker away and the events that only it could ask for.
func (f *flight) leave(u *Unit) {
	f.unlink(&u.marker)
	f.units--
	for f.first != nil && f.first.change != nil {
		f.unlink(f.first)
	}
}

// happened keeps an event if anyone is in flight.
func (f *flight) happened(ch plugin.Change) {
	if f.units > 0 {
		kept := ch // so that only a change that is kept is allocated
		f.append(&entry{change: &kept})
	}
}

// inOrder lists the units in flight in the order in which they were popped.
func (f *flight) inOrder() []*Unit {
	var units []*Unit
	for e := f.first; e != nil; e = e.next {
		if e.change == nil {
			units = append(units, e.unit)
		}
	}
	return units
}
