// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Position numbers the entries of the arbiter's log, from 1 on. A planner's store at position p is the arbiter's at p.
type Position uint64

// Ack states how many followers must have an entry before the binds that it decides are sent.
type Ack string

const (
	// AckOne waits for one follower: the next arbiter inherits the decision if that follower is reached.
	AckOne Ack = "One"
	// AckMost waits for more than half of the followers, of which any majority that is left has one.
	AckMost Ack = "Most"
	// AckNone does not wait.
	AckNone Ack = "None"
)

// AckWithin is how long a bind waits for followers. After it the arbiter goes on without them, and counts that.
const AckWithin = record.Second / 50

// Origin is where the entries of an epoch begin in a log.
type Origin struct {
	Epoch Epoch
	First Position
}

// Log is how far each follower has the arbiter's log. Its entries are elsewhere.
//
// Two logs with an entry of one epoch at one position are equal up to it, as in Raft (Ongaro and Ousterhout 2014,
// section 5.3): an epoch has one arbiter, which writes each position once and begins with the entries that it has
// adopted. So a follower states the position and the epoch of its last entry, and no contents are compared.
type Log struct {
	ack    Ack
	window Position // how many entries are kept for followers
	// Invariant: origins rise in Epoch and do not fall in First. The last one is of this arbiter.
	origins []Origin

	last Position // the newest entry; 0 for none
	// sendable is the newest entry whose binds may be sent. Invariant: sendable <= last; it never falls.
	sendable  Position
	followers Set
	// Invariant: acked[o] <= last for each follower o, and 0 for others.
	acked [MaxMembers]Position
	// waiting are the entries above sendable that decide binds, in order, with the time of each.
	waiting []waiting
	waived  uint64
}

type waiting struct {
	at       Position
	appended record.Time
}

// NewLog returns the log of a new arbiter. It goes on after a position of the log that it has adopted, of which adopted
// has the origins. window is how many entries are kept: a follower that lags by more is expelled, since the arbiter
// waits for none. The first entry that is appended must be that of the promotion, so that a follower which has it is
// preferred as a successor to one which has as many entries of an older epoch.
func NewLog(ack Ack, window int, epoch Epoch, adopted []Origin, after Position) *Log {
	if window < 1 {
		panic(fmt.Sprintf("shard: log with a window of %d entries", window))
	}
	if n := len(adopted); n > 0 && adopted[n-1].Epoch >= epoch {
		panic(fmt.Sprintf("shard: log of epoch %d adopts one of epoch %d", epoch, adopted[n-1].Epoch))
	}
	return &Log{ack: ack, window: Position(window), last: after, sendable: after,
		origins: append(slices.Clone(adopted), Origin{epoch, after + 1})}
}

// Origins returns where the epochs of the log begin, the oldest first. The caller must not change it.
func (l *Log) Origins() []Origin { return l.origins }

// EpochAt returns the epoch of an entry; 0 for position 0.
func (l *Log) EpochAt(at Position) Epoch {
	for _, o := range slices.Backward(l.origins) {
		if o.First <= at {
			return o.Epoch
		}
	}
	return 0
}

// Append adds an entry and returns its position. decides states whether the entry decides binds, which wait for
// followers.
func (l *Log) Append(now record.Time, decides bool) Position {
	l.last++
	switch {
	case l.ack == AckNone || l.followers == 0 && len(l.waiting) == 0:
		l.sendable = l.last // a single instance waits for nothing
		if decides && l.ack != AckNone {
			l.waived++
		}
	case decides:
		l.waiting = append(l.waiting, waiting{l.last, now})
	}
	l.advance()
	return l.last
}

// Last returns the newest position.
func (l *Log) Last() Position { return l.last }

// Follow adds a follower whose last entry is at a position and of an epoch. It reports whether the follower was added;
// if not, it must first load a snapshot: entries after its position are not kept, or it has entries that this log does
// not have.
func (l *Log) Follow(o Ordinal, has Position, epoch Epoch) bool {
	if has > l.last || l.last-has > l.window || l.EpochAt(has) != epoch {
		return false
	}
	l.followers |= 1 << o
	l.acked[o] = has
	l.advance()
	return true
}

// Unfollow removes a follower. Binds do not wait for it any more. If it was the last one, those that waited still wait
// until Tick: sent at once, they would be unknown to the next arbiter if this one died in the same moment.
func (l *Log) Unfollow(o Ordinal) {
	l.followers &^= 1 << o
	l.acked[o] = 0
	l.advance()
}

// Acked records that a follower has the log up to a position. A position that is older than the one before is
// ignored. It reports whether the log has the position and the follower; if not, this is another log's follower.
func (l *Log) Acked(o Ordinal, at Position) bool {
	if at > l.last || !l.followers.Has(o) {
		return false
	}
	l.acked[o] = max(l.acked[o], at)
	l.advance()
	return true
}

// Lagging returns the followers that need entries which are not kept any more.
func (l *Log) Lagging() (lagging Set) {
	for i, at := range l.acked {
		if l.followers.Has(Ordinal(i)) && l.last-at > l.window {
			lagging |= 1 << i
		}
	}
	return lagging
}

// Sendable returns the newest position whose binds may be sent to the API server.
func (l *Log) Sendable() Position { return l.sendable }

// Tick goes on without followers for entries that have waited AckWithin, and returns how many entries these are.
func (l *Log) Tick(now record.Time) (waived int) {
	for _, w := range l.waiting {
		if now-w.appended < AckWithin {
			break
		}
		waived++
	}
	if waived > 0 {
		l.sendable = l.waiting[waived-1].at
		l.waited()
		l.waived += uint64(waived)
	}
	return waived
}

// Next returns when Tick has something to do; 0 for never.
func (l *Log) Next() record.Time {
	if len(l.waiting) == 0 {
		return 0
	}
	return l.waiting[0].appended + AckWithin
}

// Waived returns how many decisions were sent without the followers that they should have waited for, since there were
// none or they did not answer. A successor does not know such a decision, and relies on the API server's list.
func (l *Log) Waived() uint64 { return l.waived }

// advance moves sendable to what the followers have.
func (l *Log) advance() {
	l.sendable = max(l.sendable, l.confirmed())
	l.waited()
}

// waited removes the entries that wait no longer.
func (l *Log) waited() {
	done := 0
	for done < len(l.waiting) && l.waiting[done].at <= l.sendable {
		done++
	}
	l.waiting = slices.Delete(l.waiting, 0, done)
}

// confirmed returns the newest position that enough followers have; 0 without followers.
func (l *Log) confirmed() Position {
	n := l.followers.Len()
	if n == 0 {
		return 0
	}
	acked := make([]Position, 0, n)
	for i, at := range l.acked {
		if l.followers.Has(Ordinal(i)) {
			acked = append(acked, at)
		}
	}
	slices.Sort(acked)
	if l.ack == AckOne {
		return acked[n-1]
	}
	// More than half, n/2+1 of n, have the position of index n - (n/2+1).
	return acked[n-(n/2+1)]
}
