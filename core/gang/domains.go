// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// domain is the set of rows that share the values of some label keys.
type domain struct {
	name string // the values
	rows []cluster.NodeIdx
	// capacity is the share of the gang that fits, in thousandths; never underestimated if members are equivalent.
	capacity int64
	// parts is the least number of domains of the narrower keys that the gang would occupy here.
	parts int
}

// levels returns the keys of the topology, required ones and others, the widest first.
func (sr *search) levels() (required, preferred []string) {
	for _, t := range sr.need.Topology {
		if t.Required {
			required = append(required, t.Key)
		} else {
			preferred = append(preferred, t.Key)
		}
	}
	return required, preferred
}

// inDomains searches one domain of each required key, and as few domains of the others as possible.
//
// It skips domains that bounds rule out. It tries the others in the order of their capacity, the smallest that may
// hold the gang first, so that larger ones stay whole: first each with one pass, then each with all search methods.
func (sr *search) inDomains() result {
	sr.sort()
	required, preferred := sr.levels()
	all := sr.split(everyRow(sr.kinds.state), required, nil)
	all = sr.ofBound(all, required)
	domains := slices.DeleteFunc(slices.Clone(all), func(d domain) bool {
		return tooFew(sr.kinds, sr.kinds, d.rows, sr.need.Quorum) != ""
	})
	if len(domains) == 0 {
		sr.tellBest(all)
		return sr.orBroken(none)
	}
	for i := range domains {
		if sr.gather(domains[i].rows, preferred) {
			return found
		}
		if sr.err != nil || sr.spent() {
			return sr.orBroken(unknown)
		}
	}
	return sr.thoroughly(domains)
}

func (sr *search) orBroken(r result) result {
	if sr.err != nil {
		return broken
	}
	return r
}

// thoroughly searches domains with all methods, each with its share of the remaining budget.
func (sr *search) thoroughly(domains []domain) result {
	r, budget := none, sr.limit
	for i, d := range domains {
		sr.limit = sr.tried + (budget-sr.tried)/(len(domains)-i)
		got := sr.solve(d.rows)
		sr.limit = budget
		switch got {
		case found, broken:
			return got
		case unknown:
			r = unknown
		}
	}
	return r
}

// tellBest makes one try in the domain with the most capacity, for the reported reason.
func (sr *search) tellBest(domains []domain) {
	if len(domains) == 0 {
		sr.best.why.Message = "no node has the labels " + strings.Join(sr.keys(), ", ")
		if len(sr.need.Bound) > 0 {
			sr.best.why.Message += " with the values where members are already"
		}
		return
	}
	byCapacity := slices.MaxFunc(domains, func(a, b domain) int { return cmp.Compare(a.capacity, b.capacity) })
	sr.pass(nil, byCapacity.rows, byScore)
}

func (sr *search) keys() (keys []string) {
	for _, t := range sr.need.Topology {
		keys = append(keys, t.Key)
	}
	return keys
}

// split sorts rows into domains by the values of keys; rows that lack a key are in none. Domains with the least
// capacity for the gang are first, or, if there are narrower keys, those in which it would occupy the fewest domains
// of these. Without keys all rows are one domain.
func (sr *search) split(rows []cluster.NodeIdx, keys, narrower []string) []domain {
	if len(keys) == 0 {
		return []domain{{rows: rows, capacity: sr.capacity(rows)}}
	}
	var columns []*cluster.Topology
	for _, key := range keys {
		columns = append(columns, sr.kinds.state.Topology(key))
	}
	at, domains := map[string]int{}, []domain(nil)
	var name strings.Builder
	last, lastID := -1, make([]int32, len(keys))
rows:
	for _, n := range rows {
		changed := last < 0
		for i, t := range columns {
			id := t.Column()[n]
			if id == cluster.NoValue {
				continue rows
			}
			changed = changed || lastID[i] != id
			lastID[i] = id
		}
		if changed {
			name.Reset()
			for i, t := range columns {
				if i > 0 {
					name.WriteByte('/')
				}
				name.WriteString(t.Value(lastID[i]))
			}
			known := false
			if last, known = at[name.String()]; !known {
				last = len(domains)
				at[name.String()] = last
				domains = append(domains, domain{name: name.String()})
			}
		}
		domains[last].rows = append(domains[last].rows, n)
	}
	for i := range domains {
		d := &domains[i]
		d.capacity = sr.capacity(d.rows)
		if len(narrower) > 0 {
			d.parts = least(sr.split(d.rows, narrower[:1], nil), sr.whole())
		}
	}
	slices.SortFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(a.parts, b.parts), cmp.Compare(a.capacity, b.capacity),
			strings.Compare(a.name, b.name))
	})
	return domains
}

// whole returns the capacity that the quorum takes, in thousandths of the gang.
func (sr *search) whole() int64 {
	return int64(sr.need.Quorum) * 1000 / int64(len(sr.need.Members))
}

// capacity returns the share of the gang that rows could hold, in thousandths: by copies if members are equivalent,
// otherwise by the scarcest resource.
func (sr *search) capacity(rows []cluster.NodeIdx) int64 {
	ks := sr.kinds
	if ks.uniform() {
		k, copies := &ks.all[0], 0
		for _, n := range rows {
			copies += ks.copies(k, n, manyPlaces)
		}
		return (int64(copies)*1000 + int64(len(k.members)) - 1) / int64(len(k.members)) // rounded up
	}
	var capacity int64 = -1
	for at := range ks.resources {
		var need, have int64
		for i := range ks.all {
			need = resource.Add(need, ks.all[i].amounts[at]*int64(len(ks.all[i].members)))
		}
		for _, n := range rows {
			have = resource.Add(have, max(ks.free(at, n), 0))
		}
		if part := int64(float64(have) / float64(max(need, 1)) * 1000); need > 0 && (capacity < 0 || part < capacity) {
			capacity = part
		}
	}
	return capacity
}

// least returns the least number of the domains that together have a capacity; all of them if they have less.
func least(domains []domain, capacity int64) int {
	slices.SortFunc(domains, byCapacity)
	for i := range domains {
		if capacity -= domains[i].capacity; capacity <= 0 {
			return i + 1
		}
	}
	return len(domains)
}

func byCapacity(a, b domain) int {
	return cmp.Or(cmp.Compare(b.capacity, a.capacity), strings.Compare(a.name, b.name))
}

// ofBound returns the domains that already contain members, if the topology is required; all domains if none is
// bound.
func (sr *search) ofBound(domains []domain, required []string) []domain {
	if len(sr.need.Bound) == 0 || len(required) == 0 {
		return domains
	}
	names := map[string]bool{} // of the domains of bound members
	for _, n := range sr.need.Bound {
		if name, ok := sr.nameOf(n, required); ok {
			names[name] = true
		}
	}
	return slices.DeleteFunc(domains, func(d domain) bool { return !names[d.name] })
}

// nameOf returns the domain of a row; ok is false if it lacks a key.
func (sr *search) nameOf(n cluster.NodeIdx, keys []string) (name string, ok bool) {
	var values []string
	for _, key := range keys {
		t := sr.g.state().Topology(key)
		id := t.Column()[n]
		if id == cluster.NoValue {
			return "", false
		}
		values = append(values, t.Value(id))
	}
	return strings.Join(values, "/"), true
}

// unions is the number of sets of several domains of a preferred key that are tried.
const unions = 8

// gather makes passes in as few domains of preferred keys as possible, the widest key first, and finally in all rows.
// It reports whether one placed enough members.
func (sr *search) gather(rows []cluster.NodeIdx, preferred []string) bool {
	if len(preferred) == 0 {
		return sr.pass(nil, rows, byScore)
	}
	domains := sr.split(rows, preferred[:1], preferred[1:])
	sr.boundFirst(domains, preferred[:1])
	for _, d := range domains {
		if d.capacity < sr.whole() || tooFew(sr.kinds, sr.kinds, d.rows, sr.need.Quorum) != "" {
			continue
		}
		if sr.gather(d.rows, preferred[1:]) {
			return true
		}
		if sr.err != nil || sr.spent() {
			return false
		}
	}
	slices.SortFunc(domains, byCapacity)
	count := max(2, least(domains, sr.whole()))
	for range unions {
		if count >= len(domains) || sr.err != nil || sr.spent() {
			break
		}
		if sr.gather(union(domains, count, sr.whole()), preferred[1:]) {
			return true
		}
		count++
	}
	return sr.err == nil && sr.gather(rows, preferred[1:])
}

// boundFirst moves the domains to the front that already contain members.
func (sr *search) boundFirst(domains []domain, keys []string) {
	if len(sr.need.Bound) == 0 {
		return
	}
	has := func(d domain) int {
		for _, n := range sr.need.Bound {
			if name, ok := sr.nameOf(n, keys); ok && name == d.name {
				return 0
			}
		}
		return 1
	}
	slices.SortStableFunc(domains, func(a, b domain) int { return cmp.Compare(has(a), has(b)) })
}

// union returns the rows of so many domains: the ones with the most capacity, and of those that hold the rest the one
// with the least. domains are sorted by capacity, descending.
func union(domains []domain, count int, capacity int64) []cluster.NodeIdx {
	for _, d := range domains[:count-1] {
		capacity -= d.capacity
	}
	last := count - 1
	for i := count; i < len(domains) && domains[i].capacity >= capacity; i++ {
		last = i
	}
	var rows []cluster.NodeIdx
	for _, d := range append(slices.Clone(domains[:count-1]), domains[last]) {
		rows = append(rows, d.rows...)
	}
	slices.Sort(rows)
	return rows
}

// together makes passes in single domains of the keys of required affinity: otherwise the first of the members that
// must be near each other chooses the domain for all, without regard to the number of followers. It reports whether
// one placed enough members.
func (sr *search) together(order []int, rows []cluster.NodeIdx) bool {
	for _, key := range sr.kinds.nearKeys() {
		for _, d := range sr.split(rows, []string{key}, nil) {
			if sr.spent() || sr.err != nil {
				return false
			}
			if tooFew(sr.kinds, sr.kinds, d.rows, sr.need.Quorum) == "" && sr.pass(order, d.rows, byScore) {
				return true
			}
		}
	}
	return false
}

// never proves that the gang would not fit even if all pods of the cluster were gone, and returns the proof in words.
func (sr *search) never() string {
	sr.sort()
	if !sr.kinds.known || sr.kinds.state.Nodes() == 0 {
		return ""
	}
	var r capacity = emptyCapacity{sr.kinds, sr.g}
	required, _ := sr.levels()
	if len(required) == 0 {
		return tooFew(sr.kinds, r, everyRow(sr.kinds.state), sr.need.Quorum)
	}
	domains := sr.split(everyRow(sr.kinds.state), required, nil)
	if len(domains) == 0 {
		return "no node has the labels " + strings.Join(required, ", ")
	}
	words := ""
	for _, d := range slices.Backward(domains) {
		why := tooFew(sr.kinds, r, d.rows, sr.need.Quorum)
		if why == "" {
			return ""
		}
		if words == "" {
			words = fmt.Sprintf("no domain of %s is large enough; in %s %s", strings.Join(required, ", "), d.name, why)
		}
	}
	return words
}

// where returns the domains of the topology's narrowest key that contain members, by name.
func (sr *search) where(nodes []cluster.NodeIdx) []string {
	if len(sr.need.Topology) == 0 {
		return nil
	}
	key := sr.need.Topology[len(sr.need.Topology)-1].Key
	var names []string
	for _, n := range append(slices.Clone(nodes), sr.need.Bound...) {
		if n == cluster.NoNode {
			continue
		}
		if name, ok := sr.nameOf(n, []string{key}); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
