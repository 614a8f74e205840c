// SPDX-License-Identifier: Apache-2.0

package timing

import "hash/maphash"

// table finds the journeys on their way by the UID of the pod. A step is about one pod in most cases, and asks for it
// up to five times; the last answer is kept for that.
type table struct {
	seed maphash.Seed
	// slots has a journey at the first free index from that of its hash on.
	//
	// Invariant: the length is a power of two and at least 2*used; no slot is empty between the index of a journey's
	// hash and the journey.
	slots []slot
	used  int
	last  *journey // found last; nil for none
}

// slot is empty without a journey.
type slot struct {
	hash uint64 // of the UID
	of   *journey
}

// leastSlots is the smallest size of a table.
const leastSlots = 1024

func newTable() table { return table{seed: maphash.MakeSeed(), slots: make([]slot, leastSlots)} }

// find returns the journey of a pod, nil if it has none.
func (t *table) find(uid string) *journey {
	if t.last != nil && t.last.pod.UID == uid {
		return t.last
	}
	if t.used == 0 {
		return nil
	}
	hash := maphash.String(t.seed, uid)
	for i := t.home(hash); ; i = t.after(i) {
		switch s := &t.slots[i]; {
		case s.of == nil:
			return nil
		case s.hash == hash && s.of.pod.UID == uid:
			t.last = s.of
			return s.of
		}
	}
}

// add adds the journey of a pod that has none.
func (t *table) add(j *journey) {
	if t.used++; 2*t.used > len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	t.put(slot{maphash.String(t.seed, j.pod.UID), j})
	t.last = j
}

func (t *table) put(s slot) {
	i := t.home(s.hash)
	for t.slots[i].of != nil {
		i = t.after(i)
	}
	t.slots[i] = s
}

// remove removes a journey that is in the table. Those behind it move up, so that the invariant of slots holds.
func (t *table) remove(j *journey) {
	if t.last == j {
		t.last = nil
	}
	free := t.home(maphash.String(t.seed, j.pod.UID))
	for t.slots[free].of != j {
		free = t.after(free)
	}
	end := len(t.slots) - 1
	for i := t.after(free); t.slots[i].of != nil; i = t.after(i) {
		// The one at i may move unless its home is behind the free slot, counted around the end.
		if (i-t.home(t.slots[i].hash))&end >= (i-free)&end {
			t.slots[free], free = t.slots[i], i
		}
	}
	t.slots[free] = slot{}
	if t.used--; 8*t.used < len(t.slots) && len(t.slots) > leastSlots {
		t.resize(len(t.slots) / 2)
	}
}

// resize gives the table another size.
func (t *table) resize(size int) {
	old := t.slots
	t.slots = make([]slot, size)
	for _, s := range old {
		if s.of != nil {
			t.put(s)
		}
	}
}

func (t *table) home(hash uint64) int { return int(hash) & (len(t.slots) - 1) }

func (t *table) after(i int) int { return (i + 1) & (len(t.slots) - 1) }
