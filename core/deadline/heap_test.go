// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// checkInvariants returns the first invariant of the heap's fields that does not hold, nil if all hold.
func (h *Heap) checkInvariants() error {
	for i, e := range h.entries {
		if e.index != i || e.at == 0 || i > 0 && h.entries[(i-1)/2].at > e.at {
			return fmt.Errorf("entry %d: index %d, at %d", i, e.index, e.at)
		}
	}
	return nil
}

// Deadlines are set, moved and stopped at random; a list that is searched from end to end says what must come out.
func TestHeapKnowsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap
		entries := make([]Entry, 8)
		for i := range entries {
			entries[i].Phase = Phase(i % 3)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			e := &entries[rapid.IntRange(0, len(entries)-1).Draw(t, "entry")]
			h.Set(e, record.Time(rapid.IntRange(0, 20).Draw(t, "at")))
			if err := h.checkInvariants(); err != nil {
				t.Fatal(err)
			}
			now := record.Time(rapid.IntRange(0, 20).Draw(t, "now"))
			var first record.Time
			var due uint64
			for i := range entries {
				if at := entries[i].At(); at != 0 {
					if first == 0 || at < first {
						first = at
					}
					if at <= now {
						due |= 1 << entries[i].Phase
					}
				}
			}
			if h.Next() != first || h.Due(now) != due {
				t.Fatalf("next %d, due %b at %d; want %d, %b", h.Next(), h.Due(now), now, first, due)
			}
		}
	})
}
