// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// published is what drivers publish: slices, grouped in pools, by node.
type published struct {
	rules  []*resourceapi.DeviceTaintRule // sorted by name
	slices map[cluster.ObjectKey]indexed  // name -> as it is indexed
	pools  map[poolID]*pool
	// poolsOf are the pools that have devices for one node; sharedPools are those that may have devices for any node.
	// A pool can be both.
	poolsOf     map[string][]*pool // node name -> pools, sorted
	sharedPools []*pool            // sorted
	layout      uint64             // counts changes of poolsOf and sharedPools
	sharedAt    uint64             // Inventory.clock when sharedPools last changed
	// sharedSlices is Inventory.clock when a slice of a shared pool last changed, reach what was derived of them
	// then.
	sharedSlices uint64
	reach        *reaches
}

// indexed is a slice as the API server has it, and with the taints of rules.
type indexed struct{ api, tainted *resourceapi.ResourceSlice }

type poolID struct{ driver, name string }

func (a poolID) compare(b poolID) int {
	return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.name, b.name))
}

// pool is the devices of one driver under one name.
type pool struct {
	id     poolID
	slices []*resourceapi.ResourceSlice // sorted by name
	homes  []string                     // the nodes for which it is in poolsOf, sorted
	shared bool                         // it is in sharedPools
	// Inventory.clock when a slice of it changed, or a device was allocated or freed
	changed uint64
	// slicesAt is Inventory.clock when a slice of it last changed.
	slicesAt uint64
	kinds    poolKinds
	spent    spentNow
}

func (inv *Inventory) indexAll(s cluster.Snapshot) {
	inv.published = published{
		rules:        inv.rules,
		slices:       map[cluster.ObjectKey]indexed{},
		pools:        map[poolID]*pool{},
		poolsOf:      map[string][]*pool{},
		layout:       inv.layout + 1,
		sharedAt:     inv.clock + 1,
		sharedSlices: inv.clock + 1,
	}
	inv.clock++
	byPool := map[poolID][]*resourceapi.ResourceSlice{}
	cluster.Each(s, func(slice *resourceapi.ResourceSlice) bool {
		tainted := plugin.TaintedSlice(slice, inv.rules)
		inv.published.slices[cluster.KeyOf(slice)] = indexed{slice, tainted}
		id := poolOf(slice)
		byPool[id] = append(byPool[id], tainted)
		return true
	})
	for id, list := range byPool { // order: each pool is set on its own
		inv.setPool(id, list)
	}
}

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// reindex replaces one slice.
func (inv *Inventory) reindex(s cluster.Snapshot, key cluster.ObjectKey) {
	was := inv.published.slices[key]
	api, _ := cluster.Find[*resourceapi.ResourceSlice](s, key.Namespace, key.Name)
	if was.api == api {
		return
	}
	if was.api != nil {
		delete(inv.published.slices, key)
		id := poolOf(was.api)
		inv.setPool(id, without(inv.pools[id].slices, was.tainted))
	}
	if api != nil {
		is := plugin.TaintedSlice(api, inv.rules)
		inv.published.slices[key] = indexed{api, is}
		id := poolOf(is)
		var list []*resourceapi.ResourceSlice
		if p := inv.pools[id]; p != nil {
			list = p.slices
		}
		i, _ := slices.BinarySearchFunc(list, is.Name, func(slice *resourceapi.ResourceSlice, name string) int {
			return cmp.Compare(slice.Name, name)
		})
		inv.setPool(id, slices.Insert(slices.Clone(list), i, is))
	}
}

// applyRules gives the indexed slices the taints of the current rules.
func (inv *Inventory) applyRules(rules []*resourceapi.DeviceTaintRule) {
	inv.rules = rules
	replaced := map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice{}
	pools := map[poolID]bool{}
	for key, is := range inv.published.slices { // order: each slice is handled on its own
		tainted := plugin.TaintedSlice(is.api, rules)
		if !plugin.SameDeviceTaints(is.tainted, tainted) {
			inv.published.slices[key] = indexed{is.api, tainted}
			replaced[is.tainted] = tainted
			pools[poolOf(is.api)] = true
		}
	}
	for id := range pools { // order: each pool is set on its own
		list := slices.Clone(inv.pools[id].slices)
		for i, slice := range list {
			if tainted := replaced[slice]; tainted != nil {
				list[i] = tainted
			}
		}
		inv.setPool(id, list)
	}
}

func without(list []*resourceapi.ResourceSlice, gone *resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	return slices.DeleteFunc(slices.Clone(list), func(slice *resourceapi.ResourceSlice) bool { return slice == gone })
}

// setPool sets the slices of a pool, sorted by name.
func (inv *Inventory) setPool(id poolID, list []*resourceapi.ResourceSlice) {
	inv.clock++
	p := inv.pools[id]
	if p == nil {
		p = &pool{id: id}
		inv.pools[id] = p
	}
	p.slices, p.changed, p.slicesAt, p.kinds = list, inv.clock, inv.clock, poolKinds{}
	homes, shared := reach(list)
	if shared || p.shared {
		inv.sharedSlices = inv.clock
	}
	if !slices.Equal(homes, p.homes) {
		inv.layout++
		for _, node := range p.homes {
			inv.poolsOf[node] = withoutPool(inv.poolsOf[node], p)
			if len(inv.poolsOf[node]) == 0 {
				delete(inv.poolsOf, node)
			}
		}
		for _, node := range homes {
			inv.poolsOf[node] = withPool(inv.poolsOf[node], p)
		}
		p.homes = homes
	}
	if shared != p.shared {
		inv.layout++
		inv.sharedAt = inv.clock
		p.shared = shared
		if shared {
			inv.sharedPools = withPool(inv.sharedPools, p)
		} else {
			inv.sharedPools = withoutPool(inv.sharedPools, p)
		}
	}
	if len(list) == 0 {
		delete(inv.pools, id)
	}
}

// withPool and withoutPool return new lists: a cached result may hold the old one.
func withPool(list []*pool, p *pool) []*pool {
	i, found := slices.BinarySearchFunc(list, p, func(a, b *pool) int { return a.id.compare(b.id) })
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), i, p)
}

func withoutPool(list []*pool, p *pool) []*pool {
	return slices.DeleteFunc(slices.Clone(list), func(q *pool) bool { return q == p })
}

// reach returns the nodes that slices of a pool name, and whether another slice may be for any node. Upstream's
// allocator reads a pool on the nodes for which one of its slices is; slices with counters are no exception.
func reach(list []*resourceapi.ResourceSlice) (homes []string, shared bool) {
	for _, slice := range list {
		if slice.Spec.NodeName == nil || *slice.Spec.NodeName == "" {
			shared = true
			continue
		}
		homes = append(homes, *slice.Spec.NodeName)
	}
	slices.Sort(homes)
	return slices.Compact(homes), shared
}

// sound reports whether a pool is certainly neither incomplete nor invalid for the allocator (upstream:
// structured/internal, GatherPools).
func sound(list []*resourceapi.ResourceSlice) bool {
	counters := map[string]map[string]resourceapi.Counter{} // counter set -> its counters
	for _, slice := range list {
		if slice.Spec.Pool.Generation != list[0].Spec.Pool.Generation ||
			slice.Spec.Pool.ResourceSliceCount != int64(len(list)) {
			return false
		}
		for _, set := range slice.Spec.SharedCounters {
			if counters[set.Name] != nil || len(slice.Spec.Devices) > 0 {
				return false
			}
			counters[set.Name] = set.Counters
		}
	}
	for _, slice := range list {
		for i := range slice.Spec.Devices {
			for _, takes := range slice.Spec.Devices[i].ConsumesCounters {
				for name := range takes.Counters { // order: any missing one suffices
					if _, ok := counters[takes.CounterSet][name]; !ok {
						return false
					}
				}
				if counters[takes.CounterSet] == nil {
					return false
				}
			}
		}
	}
	return true
}

// slicesFor returns the slices that the allocator needs to judge a node with these pools: those of the node, and the
// others of their pools, from which it derives whether a pool is complete and which of its counters are in use.
// Hidden pools are left out.
func (inv *Inventory) slicesFor(own []*pool, hidden func(*pool) bool) []*resourceapi.ResourceSlice {
	var out []*resourceapi.ResourceSlice
	add := func(p *pool) {
		if !hidden(p) {
			out = append(out, p.slices...)
		}
	}
	for _, p := range own {
		add(p)
	}
	for _, p := range inv.sharedPools {
		if !slices.Contains(own, p) {
			add(p)
		}
	}
	return out
}

// touched returns when a slice of some pools last changed, or a device of them was allocated or freed.
func touched(pools []*pool) uint64 {
	var at uint64
	for _, p := range pools {
		at = max(at, p.changed)
	}
	return at
}
