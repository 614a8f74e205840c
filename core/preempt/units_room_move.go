// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// fits is how many members of a kind a row has room for.
func (r *room) fits(k *roomKind, n cluster.NodeIdx) int32 {
	if k.use[n] == never {
		return 0
	}
	slots := min(k.most, int64(k.count))
	for i, asks := range k.asks {
		free := r.amounts[i].free[n]
		switch takes := k.takes[i]; {
		case asks == nothing:
		case free < asks:
			return 0
		case takes > 0:
			slots = min(slots, (free-asks)/takes+1)
		}
	}
	return int32(slots)
}

// refresh counts a row of a domain anew.
func (r *room) refresh(n cluster.NodeIdx) *roomDomain {
	if r.domain[n] == noDomain {
		return nil
	}
	d, any := &r.domains[r.domain[n]], false
	for i := range r.kinds {
		k := &r.kinds[i]
		was, now := k.slots[n], r.fits(k, n)
		any = any || now > 0
		if was != now {
			k.slots[n] = now
			d.have[i] += int64(now - was)
		}
	}
	if r.mixed() {
		r.sum(d, n, any)
	}
	return d
}

// mixed tells whether members differ.
func (r *room) mixed() bool { return r.crowd || len(r.kinds) > 1 }

// sum brings what a domain has left in line with one of its rows; any tells whether some member has room there.
func (r *room) sum(d *roomDomain, n cluster.NodeIdx, any bool) {
	for i := range r.amounts {
		a := &r.amounts[i]
		if a.huge {
			continue
		}
		var left int64
		if any {
			left = max(a.free[n], 0)
		}
		d.sums[i] += left - a.counted[n]
		a.counted[n] = left
	}
}

// judge tells anew whether a domain may have enough room.
func (r *room) judge(d *roomDomain) {
	var most int64
	for i := range r.kinds {
		most += min(d.have[i], int64(r.kinds[i].count))
	}
	ample := most >= int64(r.quorum)
	if r.mixed() {
		for i := range r.amounts {
			a := &r.amounts[i]
			ample = ample && (a.huge || d.sums[i] >= a.need)
		}
	}
	if ample == d.ample {
		return
	}
	if d.ample = ample; ample {
		r.enough++
	} else {
		r.enough--
	}
}

// fit tells whether there may be places as things are supposed; always where nothing is known.
func (r *room) fit() bool { return !r.known || r.enough > 0 }

// take supposes that a unit has gone, and back that it is there again.
func (r *room) take(i int) { r.away = append(r.away, i); r.move(i, 1) }
func (r *room) back(i int) { r.move(i, -1) }

// spare puts a unit back if there may be places beside it.
func (r *room) spare(i int) bool {
	if r.back(i); r.fit() {
		return true
	}
	r.take(i)
	return false
}

func (r *room) move(i int, sign int64) {
	r.gone[i] = sign > 0
	if !r.known {
		return
	}
	u := &r.us.all[i]
	for _, pl := range r.us.pods[u.lo:u.hi] {
		for at := range r.amounts {
			a := &r.amounts[at]
			a.free[pl.row] += sign * a.held(pl.pod)
		}
		if d := r.refresh(pl.row); d != nil {
			r.judge(d)
		}
	}
}

// suppose supposes that the units of a list have gone, and no others.
func (r *room) suppose(list []int) {
	for _, i := range list {
		r.wanted[i] = true
	}
	for at := len(r.away) - 1; at >= 0; at-- {
		if i := r.away[at]; r.gone[i] && !r.wanted[i] {
			r.back(i)
		}
	}
	r.away = r.away[:0]
	for _, i := range list {
		r.wanted[i] = false
		if !r.gone[i] {
			r.take(i)
		}
	}
	r.away = append(r.away[:0], list...)
}

// held is what a pod holds of an amount.
func (a *roomAmount) held(p *cluster.Pod) int64 { return heldOf(p, a.of, a.name) }

// slots are the rows' room for members of all kinds, one kind at a time.
func (r *room) slots() []int32 {
	slots := make([]int32, len(r.domain))
	for n := range slots {
		slots[n] = r.slotsOn(cluster.NodeIdx(n))
	}
	return slots
}

func (r *room) slotsOn(n cluster.NodeIdx) (slots int32) {
	for i := range r.kinds {
		slots += r.kinds[i].slots[n]
	}
	return slots
}

// unsure tells whether filters besides the room, or members of other kinds, may have a say on a row.
func (r *room) unsure(n cluster.NodeIdx) bool {
	if r.mixed() {
		return true
	}
	for i := range r.kinds {
		if r.kinds[i].use[n] == maybe {
			return true
		}
	}
	return false
}

// frees is how much of what members need a unit holds where they may be, in thousandths of a member.
func (r *room) frees(i int) (sum int64) {
	if !r.known {
		return 0
	}
	u := &r.us.all[i]
	for _, pl := range r.us.pods[u.lo:u.hi] {
		var most int64
		for k := range r.kinds {
			if r.kinds[k].use[pl.row] == never {
				continue
			}
			for at, takes := range r.kinds[k].takes {
				if takes > 0 {
					most = max(most, r.amounts[at].held(pl.pod)*1000/takes)
				}
			}
		}
		sum += most
	}
	return sum
}
