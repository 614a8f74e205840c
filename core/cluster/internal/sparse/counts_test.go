// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// CheckInvariants returns the first invariant of the fields that does not hold, nil if all hold.
func (c *Counts) CheckInvariants() error {
	sum := 0
	for i, p := range c.pairs {
		if p.n == 0 || i > 0 && c.pairs[i-1].id >= p.id {
			return fmt.Errorf("pair %d of %v", i, c.pairs)
		}
		sum += int(p.n)
	}
	for _, n := range c.dense {
		sum += int(n)
	}
	if c.dense != nil && c.pairs != nil {
		return fmt.Errorf("pairs %v beside a column", c.pairs)
	}
	if sum != c.sum {
		return fmt.Errorf("the sum is %d, %d was kept", sum, c.sum)
	}
	return nil
}

// TestCountsAgreeWithAMap adds at random, with few ids and with more than pairs suffice for.
func TestCountsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counts Counts
		want := map[int32]int32{} // id -> count
		ids := int32(rapid.SampledFrom([]int{3, 2 * maxPairs}).Draw(t, "ids"))
		for range rapid.IntRange(0, 4*maxPairs).Draw(t, "steps") {
			id, delta := rapid.Int32Range(0, ids).Draw(t, "id"), rapid.Int32Range(-1, 2).Draw(t, "delta")
			counts.Add(id, delta)
			if want[id] += delta; want[id] == 0 {
				delete(want, id)
			}
			if err := counts.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
			if counts.Get(id) != want[id] {
				t.Fatalf("count of %d: %d, want %d", id, counts.Get(id), want[id])
			}
		}
		got, order := map[int32]int32{}, []int32(nil)
		counts.Each(func(id, n int32) { got[id], order = n, append(order, id) })
		if !maps.Equal(got, want) || !slices.IsSorted(order) {
			t.Errorf("counts %v in the order %v, want %v", got, order, want)
		}
	})
}
