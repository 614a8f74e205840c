// SPDX-License-Identifier: Apache-2.0

// Package deadline owns the times at which something is to happen if nothing else does first: one heap for all of
// them, so that the next one is known at once.
//
// It holds times and phases only. What happens at a deadline, and in which order of the phases, is decided by the
// caller; it must not import anything of the scheduler but record.
package deadline

import "github.com/kumiki-scheduler/kumiki/record"

// Phase names the step of a tick that handles a deadline. Phases are small numbers, from 0 on.
type Phase uint8

// Entry is one deadline. Its owner keeps it in the value that it is about, and must not copy it while it is set. The
// zero Entry with a Phase is ready to be set.
type Entry struct {
	Phase Phase       // derived: set by its owner
	at    record.Time // kept; 0 while it is not set. Invariant: it is not 0 in Heap.entries.
	index int         // derived: its position in the heap. In Heap.entries while it is set
}

// At returns when the deadline is; 0 if it is not set.
func (e *Entry) At() record.Time { return e.at }

// Heap holds the deadlines that are set. The zero Heap is empty and ready. It belongs to one goroutine.
type Heap struct {
	// Invariant: entries[i] is not later than entries[2i+1] and entries[2i+2], and entries[i].index == i.
	entries []*Entry
}

// Set sets a deadline, or moves it. A time of 0 stops it.
func (h *Heap) Set(e *Entry, at record.Time) {
	switch {
	case at == 0:
		h.Stop(e)
		return
	case e.at == 0:
		e.index = len(h.entries)
		h.entries = append(h.entries, e)
	}
	e.at = at
	h.fix(e.index)
}

// Stop takes a deadline out. It may be called for one that is not set.
func (h *Heap) Stop(e *Entry) {
	if e.at == 0 {
		return
	}
	last := len(h.entries) - 1
	hole := e.index
	h.swap(hole, last)
	h.entries[last] = nil
	h.entries = h.entries[:last]
	if hole < last {
		h.fix(hole)
	}
	e.at, e.index = 0, 0
}

// Next returns the first deadline; 0 if none is set.
func (h *Heap) Next() record.Time {
	if len(h.entries) == 0 {
		return 0
	}
	return h.entries[0].at
}

// First returns the earlier of two times, of which 0 stands for none.
func First(a, b record.Time) record.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Due returns the phases that have a deadline at now or before, as bits. The deadlines stay set: who handles one stops
// it, or sets it to a later time.
func (h *Heap) Due(now record.Time) (phases uint64) { return h.due(0, now) }

func (h *Heap) due(i int, now record.Time) (phases uint64) {
	if i >= len(h.entries) || h.entries[i].at > now {
		return 0
	}
	return 1<<h.entries[i].Phase | h.due(2*i+1, now) | h.due(2*i+2, now)
}

// fix brings entry i to where it belongs.
func (h *Heap) fix(i int) {
	for i > 0 && h.entries[i].at < h.entries[(i-1)/2].at {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.entries); child++ {
			if h.entries[child].at < h.entries[least].at {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *Heap) swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].index, h.entries[j].index = i, j
}
