// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"
	"time"
)

// TestOneCauseIsInjected: the cause in the environment acts, and no other one.
func TestOneCauseIsInjected(t *testing.T) {
	i := start("decided-ahead-limit=2")
	if n := i.number("decided-ahead-limit", 2048); n != 2 {
		t.Errorf("the limit is %d", n)
	}
	if n := i.number("other", 2048); n != 2048 {
		t.Errorf("another limit is %d", n)
	}
	if n := start("").number("", 7); n != 7 {
		t.Errorf("without an injection the limit is %d", n)
	}
	spins := start("plugin=5ms")
	began := time.Now()
	spins.spin("other")
	spins.spin("plugin")
	if d := time.Since(began); d < 5*time.Millisecond {
		t.Errorf("spun for %s", d)
	}
}

// TestWorkIsSkippedInBetween: what is skipped is done once in each interval.
func TestWorkIsSkippedInBetween(t *testing.T) {
	i, now := start("lost-wake-up=1s"), time.Unix(1000, 0)
	done := 0
	for ms := range 3500 {
		if !i.skip("lost-wake-up", now.Add(time.Duration(ms)*time.Millisecond)) {
			done++
		}
		if i.skip("other", now) {
			t.Fatal("other work is skipped")
		}
	}
	if done != 4 {
		t.Errorf("done %d times in 3.5 s, want 4", done)
	}
}

// TestLockIsHeld: a wait ends when the other goroutine releases the mutex.
func TestLockIsHeld(t *testing.T) {
	start("lock=1ms").wait("lock")
	start("plugin=1ms").wait("lock")
}

// TestTheCollectorHasWork: the list is as long as the strength says, and another cause has none.
func TestTheCollectorHasWork(t *testing.T) {
	n := 0
	for l := start("gc=1000").list; l != nil; l = l.next {
		n++
	}
	if n != 1000 {
		t.Errorf("%d links", n)
	}
	if start("plugin=40ms").list != nil {
		t.Error("a list for another cause")
	}
}
