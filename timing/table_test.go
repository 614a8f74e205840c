// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestTableIsAMap: a table has the journeys that a map would have, whatever is added and removed in which order.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		is, want := newTable(), map[string]*journey{}
		is.slots = is.slots[:8:8] // collisions, and growth
		uid := rapid.Map(rapid.IntRange(0, 60), func(i int) string { return fmt.Sprint("uid-", i) })
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := uid.Draw(t, "uid")
			switch j := want[id]; {
			case j == nil:
				want[id] = &journey{pod: record.PodRef{UID: id}}
				is.add(want[id])
			case rapid.Bool().Draw(t, "removed"):
				is.remove(j)
				delete(want, id)
			}
			if other := uid.Draw(t, "asked"); is.find(other) != want[other] {
				t.Fatalf("%s: found %v, want %v", other, is.find(other), want[other])
			}
			if is.used != len(want) || 2*is.used > len(is.slots) {
				t.Fatalf("%d journeys in %d slots, want %d journeys", is.used, len(is.slots), len(want))
			}
		}
		for i := range 61 {
			if id := fmt.Sprint("uid-", i); is.find(id) != want[id] {
				t.Fatalf("%s: found %v, want %v", id, is.find(id), want[id])
			}
		}
	})
}

// TestTableShrinks: a burst of pods leaves no large table behind.
func TestTableShrinks(t *testing.T) {
	is := newTable()
	var all []*journey
	for i := range 10 * leastSlots {
		all = append(all, &journey{pod: record.PodRef{UID: fmt.Sprint(i)}})
		is.add(all[i])
	}
	for _, j := range all {
		is.remove(j)
	}
	if is.used != 0 || len(is.slots) != leastSlots {
		t.Errorf("%d journeys in %d slots", is.used, len(is.slots))
	}
}
