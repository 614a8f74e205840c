// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// room bounds from above what there is for the preemptor with some units gone: by how many pods of each of its kinds a row
// has room for, one kind at a time, and by what the rows of a domain have left together. Where it says that there is too
// little, no dry run is needed. It is kept in line unit by unit.
type room struct {
	us *units
	// known tells that the bounds hold: nothing else is set without it.
	known bool
	// crowd tells that members are of too many kinds to tell them apart: what is held against rows is the least that any asks.
	crowd bool
	// exact tells that there are places where the room is enough: members are alike, and amounts alone decide on each row.
	exact bool
	// local tells that nothing but the pods of a row decides what fits there, and so that with more units gone no less fits.
	local bool

	quorum  int
	kinds   []roomKind
	amounts []roomAmount
	domain  []int32      // row -> domain; noDomain for those where no member may be
	domains []roomDomain // at least one
	enough  int          // how many of them have enough room
	gone    []bool       // by unit
	away    []int        // those that are gone, and others that were
	wanted  []bool       // by unit; space
}

const noDomain = -1

// roomKind is members that are alike.
type roomKind struct {
	count int
	asks  []int64 // by amount: what the first on a row needs, or nothing
	takes []int64 // by amount: what each takes
	most  int64   // on one row
	use   []use   // by row
	slots []int32 // by row: how many it has room for
}

// nothing is that a kind does not need an amount at all: it may be on rows that offer less than is taken of it.
const nothing = math.MinInt64

func (k *roomKind) grow(amounts int) {
	for len(k.asks) < amounts {
		k.asks, k.takes = append(k.asks, nothing), append(k.takes, 0)
	}
}

// use is whether a kind may be on a row.
type use uint8

const (
	never  use = iota
	maybe      // the room bounds it, and other filters may have a say
	surely     // the room decides
)

// roomAmount is a resource of which some member needs some.
type roomAmount struct {
	name v1.ResourceName
	of   amount
	free []int64 // by row
	need int64   // what the quorum takes at least
	// counted is, by row, what of it is in the sum of its domain.
	counted []int64
	huge    bool // too much for sums
}

// roomDomain is the rows in one of which all members must be.
type roomDomain struct {
	have  []int64 // by kind: slots
	sums  []int64 // by amount: what the rows have left on which some member has room
	ample bool
}

// safeSum is up to which the amounts of rows are added up.
const safeSum = 1 << 47

// fewKinds is up to how many kinds are told apart.
const fewKinds = 16

// survey prepares the room for a question, with no unit gone but those that are terminating.
func (r *room) survey(s cluster.Snapshot, q *UnitsQuestion, us *units, few int) {
	*r = room{us: us, quorum: q.Quorum, gone: make([]bool, len(us.all)), wanted: make([]bool, len(us.all))}
	if q.Ground.Placer == nil || len(q.Members) == 0 || us.huge {
		return
	}
	kinds := alikeMembers(q.Members)
	r.split(s, q)
	if r.crowd = len(kinds) > few; r.crowd {
		if !r.anyKind(s, q) {
			return
		}
	} else if !r.eachKind(s, q, kinds) {
		return
	}
	for i := range r.kinds {
		r.kinds[i].grow(len(r.amounts))
	}
	r.known = true
	r.needs(q.Members)
	for i := range r.domains {
		r.domains[i].have, r.domains[i].sums = make([]int64, len(r.kinds)), make([]int64, len(r.amounts))
	}
	for n := range r.domain {
		r.refresh(cluster.NodeIdx(n))
	}
	for i := range r.domains {
		r.judge(&r.domains[i])
	}
}

// eachKind prepares the room for members kind by kind; ok is false where nothing can be told.
func (r *room) eachKind(s cluster.Snapshot, q *UnitsQuestion, kinds [][]*cluster.Pod) (ok bool) {
	r.exact, r.local = len(kinds) == 1, true
	noms := elsewhere(q)
	for _, members := range kinds {
		if !r.kind(s, q, noms, members) {
			return false
		}
	}
	return true
}

// anyKind prepares the room for members that differ too much, by the amounts that the first one needs.
func (r *room) anyKind(s cluster.Snapshot, q *UnitsQuestion) (ok bool) {
	out := q.Ground.Placer.Explain(s, q.Members[0], elsewhere(q))
	if out.Err != nil {
		return false
	}
	k := roomKind{count: len(q.Members), most: 1 << 30, use: make([]use, s.Rows()), slots: make([]int32, s.Rows())}
	for _, need := range q.Ground.Placer.Relief(s, out).Needs() {
		at := r.amount(s, need)
		k.grow(at + 1)
		least := r.amounts[at].held(q.Members[0])
		for _, p := range q.Members {
			if least = min(least, r.amounts[at].held(p)); r.amounts[at].held(p) > safeAmount {
				return false
			}
		}
		if least > 0 {
			k.asks[at], k.takes[at] = least, least
		}
	}
	for n := range k.use {
		if s.Node(cluster.NodeIdx(n)) != nil && r.domain[n] != noDomain {
			k.use[n] = maybe
		}
	}
	r.kinds = append(r.kinds, k)
	return len(r.amounts) > 0
}

// alikeMembers sorts members that no plugin can tell apart together.
func alikeMembers(members []*cluster.Pod) (kinds [][]*cluster.Pod) {
	at := map[*cluster.PodSpec]int{} // spec -> index of its kind
	for _, p := range members {
		i, known := at[p.Spec]
		if !known || kinds[i][0].Namespace != p.Namespace || len(p.Spec.Volumes) > 0 || p.Spec.Devices != nil {
			i = len(kinds)
			at[p.Spec] = i
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], p)
	}
	return kinds
}

// strangers are the promises to pods outside of the preemptor.
type strangers struct {
	place.Nominations
	members map[cluster.UID]struct{}
}

// NominatedOn leaves the preemptor's members out.
func (o strangers) NominatedOn(node string) []*cluster.Pod {
	return slices.DeleteFunc(slices.Clone(o.Nominations.NominatedOn(node)), func(p *cluster.Pod) bool {
		_, is := o.members[p.UID]
		return is
	})
}

// noPromises are none.
type noPromises struct{}

func (noPromises) NominatedNodes() []string          { return nil }
func (noPromises) NominatedOn(string) []*cluster.Pod { return nil }

// elsewhere are the promises that a member may meet.
func elsewhere(q *UnitsQuestion) place.Nominations {
	if q.Ground.Nominations == nil || len(q.Ground.Nominations.NominatedNodes()) == 0 {
		return noPromises{}
	}
	noms := strangers{q.Ground.Nominations, make(map[cluster.UID]struct{}, len(q.Members))}
	for _, p := range q.Members {
		noms.members[p.UID] = struct{}{}
	}
	return noms
}

// split sorts rows into domains by the values of the question's keys.
func (r *room) split(s cluster.Snapshot, q *UnitsQuestion) {
	r.domain = make([]int32, s.Rows())
	if len(q.Ground.Keys) == 0 {
		r.domains = make([]roomDomain, 1)
		return
	}
	const most = 4
	type values [most]int32
	known := map[values]int32{} // ids of values -> domain
	for n := range r.domain {
		var v values
		r.domain[n] = noDomain
		at := cluster.NodeIdx(n)
		if s.Node(at) == nil {
			continue
		}
		whole := true
		for i, key := range q.Ground.Keys[:min(most, len(q.Ground.Keys))] { // fewer keys, larger domains: the bound holds
			v[i] = s.Topology(key).Column()[at]
			whole = whole && v[i] != cluster.NoValue
		}
		if !whole {
			continue
		}
		d, ok := known[v]
		if !ok {
			d = int32(len(known))
			known[v] = d
		}
		r.domain[n] = d
	}
	r.domains = make([]roomDomain, max(len(known), 1))
	r.keepBound(q.Ground.Bound)
}

// keepBound leaves the domains alone in which members are already.
func (r *room) keepBound(bound []cluster.NodeIdx) {
	if len(bound) == 0 {
		return
	}
	allowed := make([]bool, len(r.domains))
	for _, n := range bound {
		if d := r.domain[n]; d != noDomain {
			allowed[d] = true
		}
	}
	for n, d := range r.domain {
		if d != noDomain && !allowed[d] {
			r.domain[n] = noDomain
		}
	}
}

// kind prepares the room for members that are alike; ok is false where nothing can be told.
func (r *room) kind(s cluster.Snapshot, q *UnitsQuestion, noms place.Nominations, members []*cluster.Pod) (ok bool) {
	p := members[0]
	b, ok := q.Ground.Placer.Bound(s, p)
	if !ok {
		return false
	}
	out := q.Ground.Placer.Explain(s, p, noms)
	if out.Err != nil {
		return false
	}
	rel := q.Ground.Placer.Relief(s, out)
	if len(rel.Needs()) == 0 {
		return false
	}
	simple := len(p.Spec.Volumes) == 0 && p.Spec.Devices == nil
	r.local = r.local && b.Alone && simple
	r.exact = r.exact && r.local && rel.AmountsAlone()
	k := roomKind{count: len(members), most: 1 << 30, use: make([]use, s.Rows()), slots: make([]int32, s.Rows())}
	if len(p.Spec.Ports) > 0 || slices.ContainsFunc(b.Apart, func(key string) bool {
		t := s.Topology(key)
		return t.Domains() == t.Nodes()
	}) {
		k.most = 1
	}
	for _, need := range rel.Needs() {
		if need.Amount > safeAmount {
			return false
		}
		at := r.amount(s, need)
		k.grow(at + 1)
		takes := int64(1)
		if need.Name != v1.ResourcePods {
			takes = p.Spec.Held.Get(need.Name)
		}
		k.asks[at], k.takes[at] = need.Amount, takes
	}
	var empty *place.Emptied
	if !b.Alone || !simple {
		empty = q.Ground.Placer.Empty(s, p)
	}
	for n := range k.use {
		r.place(&k, s, rel, out, empty, cluster.NodeIdx(n))
	}
	r.kinds = append(r.kinds, k)
	return true
}

// place tells whether a kind may be on a row. Where pods on other rows have a say (empty is not nil), what is hopeless now
// may not be once they have gone, unless an empty row would be.
func (r *room) place(k *roomKind, s cluster.Snapshot, rel *place.Relief, out place.Outcome, empty *place.Emptied, n cluster.NodeIdx) {
	if s.Node(n) == nil || r.domain[n] == noDomain {
		return
	}
	switch v := out.Verdict(n); {
	case v == plugin.Fits && !rel.Expected(n), rel.ByAmounts(n):
		k.use[n] = surely
	case v == plugin.Fits, !rel.Hopeless(n), empty != nil && empty.Copies(s, n, 1) > 0:
		k.use[n] = maybe
		r.exact = false
	}
}

// amount is the index of a resource, which it is given at first sight.
func (r *room) amount(s cluster.Snapshot, need plugin.Amount) int {
	name := need.Name
	if i := slices.IndexFunc(r.amounts, func(a roomAmount) bool { return a.name == name }); i >= 0 {
		return i
	}
	a := roomAmount{name: name, of: amountOf(name), free: make([]int64, s.Rows()), counted: make([]int64, s.Rows())}
	if id, known := s.Names().Lookup(name); known {
		var space [2][]int64
		rows := cluster.NodeIdx(s.Rows())
		offered, requested := s.Allocatable(id).Cut(0, rows, &space[0]), s.Requested(id).Cut(0, rows, &space[1])
		for n := range a.free {
			a.free[n] = offered[n] - requested[n]
			if need.Offered > 0 {
				a.free[n] = need.Offered - requested[n]
			}
			a.huge = a.huge || offered[n] > safeSum
		}
	}
	r.amounts = append(r.amounts, a)
	return len(r.amounts) - 1
}

// needs works out what the quorum takes of each amount: that of the members that take the least.
func (r *room) needs(members []*cluster.Pod) {
	for i := range r.amounts {
		var takes []int64
		for _, p := range members {
			takes = append(takes, r.amounts[i].held(p))
		}
		slices.Sort(takes)
		for _, t := range takes[:min(r.quorum, len(takes))] {
			r.amounts[i].need += t
		}
	}
}
