// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// What may be sent, against a count of the followers that have each position. Fault mostIsHalf: half of the followers
// are not most of them. Fault sendableFalls: what may be sent stays so if a follower joins.
func TestSendable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ack := rapid.SampledFrom([]Ack{AckOne, AckMost, AckNone}).Draw(t, "ack")
		l := NewLog(ack, 5, 1, nil, 0)
		has := map[Ordinal]Position{}
		want, now := Position(0), record.Time(0)
		appended := map[Position]record.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			o := Ordinal(rapid.IntRange(1, 5).Draw(t, "follower"))
			switch rapid.SampledFrom([]string{"append", "append", "follow", "ack", "ack", "leave", "tick"}).Draw(t, "what") {
			case "append":
				decides := rapid.Bool().Draw(t, "decides")
				waits := ack != AckNone && (len(has) > 0 || len(appended) > 0)
				at := l.Append(now, decides)
				switch {
				case !waits:
					want = at
				case decides:
					appended[at] = now
				}
			case "follow":
				at := Position(rapid.IntRange(0, int(l.Last())+1).Draw(t, "has"))
				epoch := Epoch(1)
				if at == 0 {
					epoch = 0
				}
				ok := at <= l.Last() && l.Last()-at <= 5
				if got := l.Follow(o, at, epoch); got != ok {
					t.Fatalf("follow from %d of %d: %v", at, l.Last(), got)
				}
				if ok {
					has[o] = at
				}
			case "ack":
				at := Position(rapid.IntRange(0, int(l.Last())+1).Draw(t, "at"))
				_, follows := has[o]
				if got := l.Acked(o, at); got != (follows && at <= l.Last()) {
					t.Fatalf("ack of %d by %d: %v", at, o, got)
				}
				if follows && at <= l.Last() {
					has[o] = max(has[o], at)
				}
			case "leave":
				l.Unfollow(o)
				delete(has, o)
			case "tick":
				now += record.Time(rapid.IntRange(0, int(AckWithin)).Draw(t, "time"))
				for at, since := range appended {
					if now-since >= AckWithin {
						want = max(want, at)
					}
				}
				l.Tick(now)
			}
			for at := want + 1; at <= l.Last(); at++ {
				count := 0
				for _, a := range has {
					if a >= at {
						count++
					}
				}
				if ack == AckOne && count > 0 || ack == AckMost && 2*count > len(has) {
					want = at
				}
			}
			maps.DeleteFunc(appended, func(at Position, _ record.Time) bool { return at <= want })
			if got := l.Sendable(); got != want {
				t.Fatalf("sendable %d, want %d (last %d, followers %v)", got, want, l.Last(), has)
			}
			for o, at := range has {
				if l.Lagging().Has(o) != (l.Last()-at > 5) {
					t.Fatalf("follower %d at %d of %d: lagging %v", o, at, l.Last(), l.Lagging().Has(o))
				}
			}
		}
	})
}

// Fault logsByLength: a follower that has an entry of the old arbiter where the new one wrote another must not follow
// from there.
func TestFollowersOfAnotherLogLoadASnapshot(t *testing.T) {
	old := NewLog(AckOne, 100, 1, nil, 0)
	for range 10 {
		old.Append(0, true)
	}
	l := NewLog(AckOne, 100, 3, old.Origins(), 8) // the successor has 8 of the 10 entries
	for range 4 {
		l.Append(0, true) // 9 to 12
	}
	for _, c := range []struct {
		has   Position
		epoch Epoch
		want  bool
	}{
		{0, 0, true}, {8, 1, true}, {9, 1, false}, {10, 1, false},
		{9, 3, true}, {12, 3, true}, {13, 3, false}, {5, 3, false},
	} {
		if got := l.Follow(1, c.has, c.epoch); got != c.want {
			t.Errorf("a follower with %d entries, the last of epoch %d: %v, want %v", c.has, c.epoch, got, c.want)
		}
	}
}

func TestBindsWaitForFollowersForALimitedTime(t *testing.T) {
	l := NewLog(AckOne, 100, 1, nil, 0)
	l.Follow(1, 0, 0)
	l.Append(record.Second, true)
	l.Append(record.Second+1, false)
	if l.Sendable() != 0 || l.Next() != record.Second+AckWithin {
		t.Fatalf("sendable %d, next %d", l.Sendable(), l.Next())
	}
	if n := l.Tick(record.Second + AckWithin - 1); n != 0 {
		t.Errorf("%d entries too early", n)
	}
	if n := l.Tick(record.Second + AckWithin); n != 1 || l.Sendable() != 1 || l.Waived() != 1 || l.Next() != 0 {
		t.Errorf("%d waived, sendable %d, in all %d, next %d", n, l.Sendable(), l.Waived(), l.Next())
	}
}
