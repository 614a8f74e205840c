// SPDX-License-Identifier: Apache-2.0

package blocked

import "github.com/kumiki-scheduler/kumiki/record"

// Capacity that is held may stay idle, so the time of all holds together is limited. There is a budget of Hold.For for
// the gangs of a scheduler: it is used while capacity is held, and refills as fast while none is. When it is used up,
// nothing is held until it is full again. So capacity is held for at most Hold.For without a pause, and a pod that was
// kept from it has a pause of that length in which no gang keeps it from free capacity.
//
// Rejected: a pause for the gang that held alone (two gangs that hold in turn then keep pods from free capacity without
// end); a full pause after each hold, also if its gang starts (gangs that start one after the other would wait longer
// for each other than for capacity); a budget for each priority (pods wait for one priority after the other, and a
// gang of higher priority may evict).

// minShare is the part of the budget that must be left for a hold to begin: shorter ones help no gang.
const minShare = 10

// budget limits the time of all holds. Its limit is Hold.For.
type budget struct {
	// full is when the budget is full again if nothing is held until then. Invariant: while nothing is held, at most
	// the limit later than now.
	full record.Time // kept
	// pausedUntil is until when nothing is held, because the budget was used up. Invariant: it is at most full.
	pausedUntil record.Time // kept
}

// left returns for how long capacity may be held from now on, 0 for not at all. since is when the present hold began,
// now for none.
func (b budget) left(since, now, limit record.Time) record.Time {
	left := limit - b.missing(since, now, limit)
	if now < b.pausedUntil || left < limit/minShare {
		return 0
	}
	return left
}

// use follows a hold that ends now.
func (b *budget) use(since, now, limit record.Time) {
	missing := b.missing(since, now, limit)
	b.full = now + missing
	if limit-missing < limit/minShare {
		b.pausedUntil = b.full
	}
}

// missing returns how much of the budget is used.
func (b budget) missing(since, now, limit record.Time) record.Time {
	return min(max(b.full-since, 0)+now-since, limit)
}
