// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestBudgetOfHolds follows the budget of 300 s through holds of several gangs.
func TestBudgetOfHolds(t *testing.T) {
	const limit = 300
	b := budget{}
	for _, step := range []struct {
		what               string
		since, until, left record.Time // a hold that ends, and what is left at its end
	}{
		{"a hold of 100 s", 1000, 1100, 200},
		{"one of another gang at once", 1100, 1200, 100},
		{"after 50 s without a hold, one of 20 s", 1250, 1270, 130},
		{"one until less is left than a hold needs", 1270, 1371, 0},
	} {
		b.use(step.since, step.until, limit)
		if got := b.left(step.until, step.until, limit); got != step.left {
			t.Errorf("%s: %d s are left, want %d", step.what, got, step.left)
		}
	}
	for at, want := range map[record.Time]record.Time{1641: 0, 1642: 300} { // order: each time by itself
		if got := b.left(at, at, limit); got != want {
			t.Errorf("at %d s, %d s are left, want %d: 271 s were used at 1371 s", at, got, want)
		}
	}
	if got := b.left(1642, 1742, limit); got != 200 {
		t.Errorf("100 s after the beginning of a hold, %d s are left", got)
	}
}

// TestHoldsPause draws holds and gaps: in any time from the beginning of a hold to the end of one, capacity is held for
// at most the limit longer than it is not; a hold that may begin has a tenth of the limit at least; and a pause ends
// with the whole limit.
func TestHoldsPause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 300
		type span struct{ from, to record.Time }
		var held []span
		b, now := budget{}, record.Time(1000)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += record.Time(rapid.IntRange(0, 400).Draw(t, "gap") * rapid.IntRange(0, 1).Draw(t, "any"))
			left := b.left(now, now, limit)
			switch {
			case left == 0:
				if now >= b.pausedUntil {
					t.Fatalf("at %d nothing may be held, and no pause is on: %+v", now, b)
				}
				now = b.pausedUntil
				if left = b.left(now, now, limit); left != limit {
					t.Fatalf("%d are left after a pause", left)
				}
			case left < limit/minShare:
				t.Fatalf("a hold of %d may begin", left)
			}
			long := min(left, record.Time(rapid.IntRange(1, 400).Draw(t, "hold")))
			b.use(now, now+long, limit)
			held = append(held, span{now, now + long})
			now += long
		}
		for i := range held {
			var used record.Time
			for _, h := range held[i:] {
				used += h.to - h.from
				if free := h.to - held[i].from - used; used > limit+free {
					t.Fatalf("from %d to %d, capacity is held for %d and not for %d: %v", held[i].from, h.to, used,
						free, held)
				}
			}
		}
	})
}
