// SPDX-License-Identifier: Apache-2.0

package units

import (
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// capacity is an upper bound on what is free for the preemptor with some units removed: how many members of each kind
// fit each node, one kind at a time, and the amounts that the nodes of a domain have left together. If it says that
// there is too little, no dry run is needed. Each removal of a unit updates it.
type capacity struct {
	us *candidates
	// known reports that the bounds hold. Without it no other field is set.
	known bool
	// manyKinds reports that members are of too many kinds to distinguish. Nodes are then compared with the least
	// that any member needs.
	manyKinds bool
	// exact reports that enough capacity implies a placement: members are alike, and amounts alone decide on each
	// node.
	exact bool
	// local reports that only the pods of a node decide what fits there. Then a larger set of removed units never
	// fits less.
	local bool

	quorum       int
	kinds        []memberKind
	amounts      []nodeResource
	domain       []int32          // row -> domain; noDomain for rows where no member may be
	domains      []domainCapacity // Invariant: at least one
	ampleDomains int              // Invariant: the number of domains that are ample
	isRemoved    []bool           // unit -> it is removed
	removed      []int            // Invariant: has all removed units, and perhaps some that were
	wanted       []bool           // by unit; reused memory
}

const noDomain = -1

// memberKind is members that no plugin can tell apart.
type memberKind struct {
	count int
	asks  []int64 // by resource: what the first member on a node needs, or nothing
	takes []int64 // by resource: what each member takes
	most  int64   // members on one node
	use   []use   // row -> use
	slots []int32 // row -> how many members fit
}

// nothing marks a resource that a kind does not need at all. It may be on nodes that offer less of it than is taken.
const nothing = math.MinInt64

func (k *memberKind) grow(amounts int) {
	for len(k.asks) < amounts {
		k.asks, k.takes = append(k.asks, nothing), append(k.takes, 0)
	}
}

// use says whether a kind may be on a node.
type use uint8

const (
	never  use = iota
	maybe      // the capacity is a bound, and other filters decide too
	surely     // the capacity decides
)

// nodeResource is a resource that some member needs.
type nodeResource struct {
	name v1.ResourceName
	of   victim.Kind
	free []int64 // by row
	need int64   // what the quorum takes at least
	// counted is, by row, what of it is counted in the sum of the row's domain.
	counted  []int64
	tooLarge bool // not safe to add up
}

// domainCapacity is one of the sets of nodes of which all members must be in one.
type domainCapacity struct {
	slots []int64 // kind -> members that fit. Invariant: the sum of memberKind.slots over its rows.
	sums  []int64 // resource -> what some member may use. Invariant: the sum of nodeResource.counted over its rows.
	ample bool
}

// safeSum is the largest amount of a node that is added up over nodes.
const safeSum = 1 << 47

// fewKinds is up to how many kinds of members are distinguished.
const fewKinds = 16

// slotsFor returns how many members of a kind fit a row.
func (r *capacity) slotsFor(k *memberKind, n cluster.NodeIdx) int32 {
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

// recountRow updates the slots of a row, and returns its domain; nil for none.
func (r *capacity) recountRow(n cluster.NodeIdx) *domainCapacity {
	if r.domain[n] == noDomain {
		return nil
	}
	d := &r.domains[r.domain[n]]
	for i := range r.kinds {
		k := &r.kinds[i]
		was, now := k.slots[n], r.slotsFor(k, n)
		if was != now {
			k.slots[n] = now
			d.slots[i] += int64(now - was)
		}
	}
	if r.mixed() {
		r.recountSums(d, n)
	}
	return d
}

// mixed reports whether members differ.
func (r *capacity) mixed() bool { return r.manyKinds || len(r.kinds) > 1 }

// recountSums updates what a domain has left by one of its rows: nothing if no member fits the row. Must be called
// after the slots of the row were updated.
func (r *capacity) recountSums(d *domainCapacity, n cluster.NodeIdx) {
	fits := r.slotsOn(n) > 0
	for i := range r.amounts {
		a := &r.amounts[i]
		if a.tooLarge {
			continue
		}
		var left int64
		if fits {
			left = max(a.free[n], 0)
		}
		d.sums[i] += left - a.counted[n]
		a.counted[n] = left
	}
}

// recountDomain updates whether a domain may have enough capacity.
func (r *capacity) recountDomain(d *domainCapacity) {
	var most int64
	for i := range r.kinds {
		most += min(d.slots[i], int64(r.kinds[i].count))
	}
	ample := most >= int64(r.quorum)
	if r.mixed() {
		for i := range r.amounts {
			a := &r.amounts[i]
			ample = ample && (a.tooLarge || d.sums[i] >= a.need)
		}
	}
	if ample == d.ample {
		return
	}
	if d.ample = ample; ample {
		r.ampleDomains++
	} else {
		r.ampleDomains--
	}
}

// enoughFor reports whether there may be a placement with the removed units gone; always true if the bounds are not
// known.
func (r *capacity) enoughFor() bool { return !r.known || r.ampleDomains > 0 }

// remove and putBack remove a unit and revert that.
func (r *capacity) remove(i int) { r.removed = append(r.removed, i); r.move(i, 1) }

func (r *capacity) putBack(i int) { r.move(i, -1) }

// spare puts a unit back if there may be a placement beside it, and reports whether it did.
func (r *capacity) spare(i int) bool {
	if r.putBack(i); r.enoughFor() {
		return true
	}
	r.remove(i)
	return false
}

func (r *capacity) move(i int, sign int64) {
	r.isRemoved[i] = sign > 0
	if !r.known {
		return
	}
	u := &r.us.all[i]
	for _, pl := range r.us.pods[u.lo:u.hi] {
		for at := range r.amounts {
			a := &r.amounts[at]
			a.free[pl.row] += sign * a.held(pl.pod)
		}
		if d := r.recountRow(pl.row); d != nil {
			r.recountDomain(d)
		}
	}
}

// setRemoved removes the units of a list, and puts back all others.
func (r *capacity) setRemoved(list []int) {
	for _, i := range list {
		r.wanted[i] = true
	}
	for at := len(r.removed) - 1; at >= 0; at-- {
		if i := r.removed[at]; r.isRemoved[i] && !r.wanted[i] {
			r.putBack(i)
		}
	}
	r.removed = r.removed[:0]
	for _, i := range list {
		r.wanted[i] = false
		if !r.isRemoved[i] {
			r.remove(i)
		}
	}
	r.removed = append(r.removed[:0], list...)
}

// held returns what a pod holds of the resource.
func (a *nodeResource) held(p *cluster.Pod) int64 { return victim.Held(p, a.of, a.name) }

// slots returns for each row the members of all kinds that fit, one kind at a time.
func (r *capacity) slots() []int32 {
	slots := make([]int32, len(r.domain))
	for n := range slots {
		slots[n] = r.slotsOn(cluster.NodeIdx(n))
	}
	return slots
}

func (r *capacity) slotsOn(n cluster.NodeIdx) (slots int32) {
	for i := range r.kinds {
		slots += r.kinds[i].slots[n]
	}
	return slots
}

// unsure reports whether other filters, or members of other kinds, may decide on a row too.
func (r *capacity) unsure(n cluster.NodeIdx) bool {
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

// frees returns how much of what members need a unit holds on nodes where they may be, in thousandths of a member.
func (r *capacity) frees(i int) (sum int64) {
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
