// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"encoding/binary"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// classes are equivalence classes of rows: rows in which no member finds a difference, as they were before any member
// was placed. If one row of a class does not help, the others do not either. A row with a member on it is in a class
// of its own.
type classes struct {
	base  []int32 // row -> class; touched for rows that are not searched
	stamp []int   // row -> the last scan in which a member was on it
	seen  []int   // class -> the last scan in which it was found
	look  int
}

// touched is the class of rows with members on them.
const touched int32 = -1

// singly is the number of rows up to which each is a class of its own if members depend on pods on other nodes.
const singly = 64

// classify sorts rows into classes: by the kinds that fit, and by the free amounts of all demanded resources. If
// members depend on pods on other nodes, few rows are all distinguished, and many rows by their domains in addition;
// then rows of one class are only approximately equivalent.
func (ks *kinds) classify(rows []cluster.NodeIdx) *classes {
	c := &classes{base: make([]int32, ks.state.Rows()), stamp: make([]int, ks.state.Rows())}
	for n := range c.base {
		c.base[n] = touched
	}
	var keys []string
	if !ks.alone {
		keys = ks.keys()
	}
	ids := map[string]int32{} // common properties of a class -> class
	var key []byte
	for _, n := range rows {
		key = key[:0]
		if !ks.alone && len(rows) <= singly {
			key = binary.AppendVarint(key, int64(n))
		}
		for i := range ks.all {
			if ks.all[i].fits.Has(n) {
				key = binary.AppendUvarint(key, uint64(i+1))
			}
		}
		key = append(key, 0)
		for at := range ks.resources {
			key = binary.AppendVarint(key, ks.free(at, n))
			key = binary.AppendVarint(key, ks.state.Allocatable(ks.resources[at]).At(n))
		}
		for _, label := range keys {
			key = binary.AppendVarint(key, int64(ks.state.Topology(label).Column()[n]))
		}
		id, known := ids[string(key)]
		if !known {
			id = int32(len(ids))
			ids[string(key)] = id
		}
		c.base[n] = id
	}
	c.seen = make([]int, len(ids))
	return c
}

// keys returns the node labels by which members distinguish domains of several nodes.
func (ks *kinds) keys() []string {
	var keys []string
	add := func(key string) {
		if t := ks.state.Topology(key); !slices.Contains(keys, key) && t.Domains() < t.Nodes() {
			keys = append(keys, key)
		}
	}
	for i := range ks.all {
		spec := ks.all[i].pod.Spec
		for _, c := range spec.Spread {
			if c.WhenUnsatisfiable == v1.DoNotSchedule {
				add(c.TopologyKey)
			}
		}
		if a := spec.PodAffinity; a != nil {
			for _, t := range a.RequiredDuringSchedulingIgnoredDuringExecution {
				add(t.TopologyKey)
			}
		}
		if a := spec.PodAntiAffinity; a != nil {
			for _, t := range a.RequiredDuringSchedulingIgnoredDuringExecution {
				add(t.TopologyKey)
			}
		}
	}
	return keys
}

// nearKeys returns the labels of required affinity with a value that several nodes share.
func (ks *kinds) nearKeys() []string {
	var keys []string
	for i := range ks.all {
		a := ks.all[i].pod.Spec.PodAffinity
		if a == nil {
			continue
		}
		for _, t := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			if by := ks.state.Topology(t.TopologyKey); by.Domains() < by.Nodes() &&
				!slices.Contains(keys, t.TopologyKey) {
				keys = append(keys, t.TopologyKey)
			}
		}
	}
	return keys
}

// touch starts a scan of rows.
func (c *classes) touch(now *partial) {
	c.look++
	for _, n := range now.nodes {
		if n != cluster.NoNode {
			c.stamp[n] = c.look
		}
	}
}

// of returns the class of a row in this scan.
func (c *classes) of(n cluster.NodeIdx) int32 {
	if c.stamp[n] == c.look {
		return touched
	}
	return c.base[n]
}

// first reports whether this is the first row of the class in this scan.
func (c *classes) first(class int32) bool {
	if class == touched {
		return true
	}
	met := c.seen[class] == c.look
	c.seen[class] = c.look
	return !met
}
