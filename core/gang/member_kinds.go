// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// kind is an equivalence class of members: no plugin distinguishes them.
type kind struct {
	pod     *cluster.Pod // one of them
	members []int        // in the order of the unit
	place.Bounds
	fits cluster.Bitmap // Bounds.Rows
	// amounts are its demands, by position in kinds.resources.
	amounts    []int64
	emptyNodes *place.EmptyNodes // made on demand
}

// kinds describes a gang's members before any of them is placed.
type kinds struct {
	state cluster.Snapshot
	all   []kind
	of    []int // member -> index in all
	// resources are those that some member demands, in the order of their first demand.
	resources []resource.ID
	offers    []int64 // resource -> see plugin.Demand.Offered
	// alone: no member depends on pods on other nodes, so a row that fits a member now fits it until a member is
	// placed on it, and no other row begins to fit.
	alone bool
	// known is false if a filter failed: then nothing is proved.
	known bool
}

// same reports whether no plugin distinguishes two members. A member's nominated node is only tried first; it does
// not affect which rows fit.
func same(p, q *cluster.Pod) bool {
	return p.Spec == q.Spec && p.Namespace == q.Namespace && len(p.Spec.Volumes) == 0 && p.Spec.Devices == nil
}

// sortOut computes the kinds of a gang's members and the bounds of their placement.
func sortOut(g *Ground, members []*cluster.Pod) *kinds {
	ks := &kinds{state: g.state(), of: make([]int, len(members)), alone: true, known: true}
	type kindKey struct {
		spec      *cluster.PodSpec
		namespace string
	}
	seen := map[kindKey]int{} // common properties of members -> index of their kind
	for i, p := range members {
		like := kindKey{p.Spec, p.Namespace}
		at, ok := seen[like]
		if !ok || !same(ks.all[at].pod, p) {
			at = len(ks.all)
			seen[like] = at
			ks.all = append(ks.all, kind{pod: p})
		}
		ks.of[i] = at
		ks.all[at].members = append(ks.all[at].members, i)
	}
	for i := range ks.all {
		ks.bound(g, &ks.all[i])
	}
	for i := range ks.all {
		k := &ks.all[i]
		k.amounts = make([]int64, len(ks.resources))
		for _, d := range k.Demands {
			at := ks.resource(d)
			k.amounts[at] = max(k.amounts[at], d.Amount)
		}
	}
	return ks
}

func (ks *kinds) bound(g *Ground, k *kind) {
	b, ok := g.Placer.Bound(ks.state, k.pod)
	k.Bounds, ks.known, ks.alone = b, ks.known && ok, ks.alone && ok && b.Alone
	for _, n := range b.Rows {
		k.fits.Set(n)
	}
	for _, d := range b.Demands {
		ks.resource(d)
	}
}

// resource returns the position of a resource, and assigns one if it is new.
func (ks *kinds) resource(d plugin.Demand) int {
	for i, known := range ks.resources {
		if known == d.Resource {
			return i
		}
	}
	ks.resources, ks.offers = append(ks.resources, d.Resource), append(ks.offers, d.Offered)
	return len(ks.resources) - 1
}

// offered returns the amount of a resource, by position, that a row offers.
func (ks *kinds) offered(at int, n cluster.NodeIdx) int64 {
	if all := ks.offers[at]; all > 0 {
		return all
	}
	return ks.state.Allocatable(ks.resources[at]).At(n)
}

// uniform reports whether all members are equivalent.
func (ks *kinds) uniform() bool { return len(ks.all) == 1 }

// free returns the free amount of a resource, by position, on a row.
func (ks *kinds) free(at int, n cluster.NodeIdx) int64 {
	return resource.Sub(ks.offered(at, n), ks.state.Requested(ks.resources[at]).At(n))
}

// copies returns how many members of a kind fit a row now, at most most. It never underestimates.
func (ks *kinds) copies(k *kind, n cluster.NodeIdx, most int) int {
	if !k.fits.Has(n) {
		return 0
	}
	capacity := int64(most)
	for at, amount := range k.amounts {
		if amount > 0 {
			capacity = min(capacity, ks.free(at, n)/amount)
		}
	}
	return int(max(capacity, 0))
}

// fitting returns the rows that fit some member, of those given; nil means all.
func (ks *kinds) fitting(rows []cluster.NodeIdx) []cluster.NodeIdx {
	if rows == nil {
		rows = everyRow(ks.state)
	}
	if !ks.known {
		return rows
	}
	some := make(cluster.Bitmap, (ks.state.Rows()+63)/64)
	for i := range ks.all {
		for w, word := range ks.all[i].fits {
			some[w] |= word
		}
	}
	fit := []cluster.NodeIdx{}
	for _, n := range rows {
		if some.Has(n) {
			fit = append(fit, n)
		}
	}
	return fit
}

// against returns the names of the plugins that may reject a member on some row.
func (ks *kinds) against() []string {
	var names []string
	for i := range ks.all {
		names = append(names, ks.all[i].Against...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// among returns the rows that fit a kind, of those given.
func (ks *kinds) among(k int, rows []cluster.NodeIdx) []cluster.NodeIdx {
	if !ks.known {
		return rows
	}
	fit := []cluster.NodeIdx{}
	for _, n := range rows {
		if ks.all[k].fits.Has(n) {
			fit = append(fit, n)
		}
	}
	return fit
}
