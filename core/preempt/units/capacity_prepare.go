// SPDX-License-Identifier: Apache-2.0

package units

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// prepare computes the capacity for a question, with no units removed but the terminating pods. few is up to how many
// kinds of members are distinguished.
func (r *capacity) prepare(s cluster.Snapshot, q *Question, us *candidates, few int) {
	*r = capacity{us: us, quorum: q.Quorum, isRemoved: make([]bool, len(us.all)), wanted: make([]bool, len(us.all))}
	if q.Placement.Placer == nil || len(q.Members) == 0 || us.tooLarge {
		return
	}
	kinds := alikeMembers(q.Members)
	r.splitDomains(s, q)
	if r.manyKinds = len(kinds) > few; r.manyKinds {
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
	r.addNeeds(q.Members)
	for i := range r.domains {
		r.domains[i].slots, r.domains[i].sums = make([]int64, len(r.kinds)), make([]int64, len(r.amounts))
	}
	for n := range r.domain {
		r.recountRow(cluster.NodeIdx(n))
	}
	for i := range r.domains {
		r.recountDomain(&r.domains[i])
	}
}

// eachKind adds the members kind by kind; ok is false if there is no bound.
func (r *capacity) eachKind(s cluster.Snapshot, q *Question, kinds [][]*cluster.Pod) (ok bool) {
	r.exact, r.local = len(kinds) == 1, true
	noms := nominationsOfOthers(q)
	for _, members := range kinds {
		if !r.addKind(s, q, noms, members) {
			return false
		}
	}
	return true
}

// anyKind adds members of too many kinds as one kind, by the resources that the first of them needs.
func (r *capacity) anyKind(s cluster.Snapshot, q *Question) (ok bool) {
	out := q.Placement.Placer.Explain(s, q.Members[0], nominationsOfOthers(q))
	if out.Err != nil {
		return false
	}
	k := memberKind{count: len(q.Members), most: 1 << 30, use: make([]use, s.Rows()), slots: make([]int32, s.Rows())}
	for _, need := range q.Placement.Placer.WhatIf(s, out).Needs() {
		at := r.resourceIndex(s, need)
		k.grow(at + 1)
		least := r.amounts[at].held(q.Members[0])
		for _, p := range q.Members {
			if least = min(least, r.amounts[at].held(p)); r.amounts[at].held(p) > victim.MaxAmount {
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

// alikeMembers groups members that no plugin can tell apart.
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

// otherNominations are the nominations of pods outside of the preemptor.
type otherNominations struct {
	place.Nominations
	members map[cluster.UID]struct{}
}

// NominatedOn leaves out the preemptor's members.
func (o otherNominations) NominatedOn(node string) []*cluster.Pod {
	return slices.DeleteFunc(slices.Clone(o.Nominations.NominatedOn(node)), func(p *cluster.Pod) bool {
		_, is := o.members[p.UID]
		return is
	})
}

// noNominations has no nominations.
type noNominations struct{}

func (noNominations) NominatedNodes() []string { return nil }

func (noNominations) NominatedOn(string) []*cluster.Pod { return nil }

// nominationsOfOthers are the nominations that a member competes with.
func nominationsOfOthers(q *Question) place.Nominations {
	if q.Placement.Nominations == nil || len(q.Placement.Nominations.NominatedNodes()) == 0 {
		return noNominations{}
	}
	noms := otherNominations{q.Placement.Nominations, make(map[cluster.UID]struct{}, len(q.Members))}
	for _, p := range q.Members {
		noms.members[p.UID] = struct{}{}
	}
	return noms
}

// splitDomains groups rows into domains by the values of the question's topology keys.
func (r *capacity) splitDomains(s cluster.Snapshot, q *Question) {
	r.domain = make([]int32, s.Rows())
	if len(q.Placement.TopologyKeys) == 0 {
		r.domains = make([]domainCapacity, 1)
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
		// fewer keys give larger domains, so the bound holds
		for i, key := range q.Placement.TopologyKeys[:min(most, len(q.Placement.TopologyKeys))] {
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
	r.domains = make([]domainCapacity, max(len(known), 1))
	r.keepDomainsOf(q.Placement.Bound)
}

// keepDomainsOf drops the domains without bound members, if there are bound members.
func (r *capacity) keepDomainsOf(bound []cluster.NodeIdx) {
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

// addKind adds members that are alike; ok is false if there is no bound.
func (r *capacity) addKind(s cluster.Snapshot, q *Question, noms place.Nominations, members []*cluster.Pod) (ok bool) {
	p := members[0]
	b, ok := q.Placement.Placer.Bound(s, p)
	if !ok {
		return false
	}
	out := q.Placement.Placer.Explain(s, p, noms)
	if out.Err != nil {
		return false
	}
	rel := q.Placement.Placer.WhatIf(s, out)
	if len(rel.Needs()) == 0 {
		return false
	}
	simple := len(p.Spec.Volumes) == 0 && p.Spec.Devices == nil
	r.local = r.local && b.Alone && simple
	r.exact = r.exact && r.local && rel.AmountsAlone()
	k := memberKind{count: len(members), most: 1 << 30, use: make([]use, s.Rows()), slots: make([]int32, s.Rows())}
	if len(p.Spec.Ports) > 0 || slices.ContainsFunc(b.Apart, func(key string) bool {
		t := s.Topology(key)
		return t.Domains() == t.Nodes()
	}) {
		k.most = 1
	}
	for _, need := range rel.Needs() {
		if need.Amount > victim.MaxAmount {
			return false
		}
		at := r.resourceIndex(s, need)
		k.grow(at + 1)
		takes := int64(1)
		if need.Name != v1.ResourcePods {
			takes = p.Spec.Held.Get(need.Name)
		}
		k.asks[at], k.takes[at] = need.Amount, takes
	}
	var empty *place.EmptyNodes
	if !b.Alone || !simple {
		empty = q.Placement.Placer.EmptyNodes(s, p)
	}
	for n := range k.use {
		r.setUse(&k, s, rel, out, empty, cluster.NodeIdx(n))
	}
	r.kinds = append(r.kinds, k)
	return true
}

// setUse sets whether a kind may be on a row. If pods on other rows matter (empty is not nil), a row that is hopeless
// now may not be so once they are gone, unless it would reject the pod when it is empty.
func (r *capacity) setUse(k *memberKind, s cluster.Snapshot, rel *place.WhatIf, out place.Outcome,
	empty *place.EmptyNodes, n cluster.NodeIdx) {
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

// resourceIndex returns the index of a resource, and adds it if it is new.
func (r *capacity) resourceIndex(s cluster.Snapshot, need plugin.Amount) int {
	name := need.Name
	if i := slices.IndexFunc(r.amounts, func(a nodeResource) bool { return a.name == name }); i >= 0 {
		return i
	}
	a := nodeResource{name: name, of: victim.KindOf(name),
		free: make([]int64, s.Rows()), counted: make([]int64, s.Rows())}
	if id, known := s.Names().Lookup(name); known {
		var space [2][]int64
		rows := cluster.NodeIdx(s.Rows())
		offered, requested := s.Allocatable(id).Cut(0, rows, &space[0]), s.Requested(id).Cut(0, rows, &space[1])
		for n := range a.free {
			a.free[n] = offered[n] - requested[n]
			if need.Offered > 0 {
				a.free[n] = need.Offered - requested[n]
			}
			a.tooLarge = a.tooLarge || offered[n] > safeSum
		}
	}
	r.amounts = append(r.amounts, a)
	return len(r.amounts) - 1
}

// addNeeds computes what the quorum takes of each resource: the sum over the members that take the least.
func (r *capacity) addNeeds(members []*cluster.Pod) {
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
