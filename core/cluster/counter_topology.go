// SPDX-License-Identifier: Apache-2.0

package cluster

// NoValue is the entry of a Topology's column for a row whose node lacks the label, or that has no node.
const NoValue int32 = -1

// Topology is the dictionary of the values that nodes have for one label key, with the column of value ids by row.
// Value ids are small and dense; the id of a value that its last node lost is reused, so ids are valid until a node
// changes.
type Topology struct {
	key    string
	ids    map[string]int32 // value -> id, for values that some node has
	values []string         // id -> value
	free   []int32          // ids without nodes, last freed first
	nodes  []int32          // id -> number of nodes with the value
	of     []int32          // row -> id, or NoValue
	keyed  int              // rows with the key

	// totals and terms are the sums over the pods of each value that this topology keeps up to date.
	totals []*totals
	terms  []*Carried
	used   uint64
}

// Key returns the label key.
func (t *Topology) Key() string { return t.key }

// Column returns the value id by row, or NoValue. Its length is the number of rows.
func (t *Topology) Column() []int32 { return t.of }

// Value returns the value of an id that is in use.
func (t *Topology) Value(id int32) string { return t.values[id] }

// ID returns the id of a value, NoValue if no node has it.
func (t *Topology) ID(value string) int32 {
	if id, ok := t.ids[value]; ok {
		return id
	}
	return NoValue
}

// Size returns the highest id plus one; some lower ids may be unused (NodesWith 0).
func (t *Topology) Size() int { return len(t.values) }

// NodesWith returns the number of nodes with the value, by id.
func (t *Topology) NodesWith() []int32 { return t.nodes }

// Domains returns the number of values that nodes have.
func (t *Topology) Domains() int { return len(t.ids) }

// Nodes returns the number of nodes that have the key.
func (t *Topology) Nodes() int { return t.keyed }

// maxTopologies bounds the number of dictionaries. Beyond it, one that no counter and no carried term uses is
// dropped.
const maxTopologies = 256

// Topology returns the dictionary of a label key. It is built at the first use and kept up to date from then on.
func (v Snapshot) Topology(key string) *Topology {
	t := v.s.counters.topology(v.s, key)
	t.grow(len(v.s.rows))
	return t
}

func (c *counters) topology(s *Store, key string) *Topology {
	c.tick++
	t := c.topologies[key]
	if t == nil {
		c.dropTopology()
		t = &Topology{key: key, ids: map[string]int32{}}
		t.grow(len(s.rows))
		for n := range s.rows {
			t.set(NodeIdx(n), s.rows[n].node)
		}
		if c.topologies == nil {
			c.topologies = map[string]*Topology{}
		}
		c.topologies[key] = t
	}
	t.used = c.tick
	return t
}

// dropTopology drops the least recently used dictionary that no counter and no carried term uses, if there is one.
func (c *counters) dropTopology() {
	if len(c.topologies) < maxTopologies {
		return
	}
	var oldest *Topology
	for _, t := range c.topologies { // order: uses are numbered, no two alike
		if len(t.totals)+len(t.terms) == 0 && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(c.topologies, oldest.key)
	}
}

func (t *Topology) grow(rows int) {
	for len(t.of) < rows {
		t.of = append(t.of, NoValue)
	}
}

// set records the node (nil: none) of a row and moves the sums with it.
func (t *Topology) set(n NodeIdx, node *Node) {
	t.grow(int(n) + 1)
	was, is := t.of[n], NoValue
	if node != nil {
		if value, ok := node.Labels[t.key]; ok {
			if was != NoValue && t.values[was] == value {
				return
			}
			is = t.intern(value)
		}
	}
	if was == is {
		return
	}
	for _, sum := range t.totals {
		sum.leastOn = 0 // a value may have been added or removed
		sum.move(n, was, is)
	}
	for _, term := range t.terms {
		term.move(n, was, is)
	}
	t.of[n] = is
	if is != NoValue {
		t.nodes[is]++
		t.keyed++
	}
	if was != NoValue {
		t.keyed--
		if t.nodes[was]--; t.nodes[was] == 0 {
			delete(t.ids, t.values[was])
			t.values[was] = ""
			t.free = append(t.free, was)
		}
	}
}

func (t *Topology) intern(value string) int32 {
	if id, ok := t.ids[value]; ok {
		return id
	}
	var id int32
	if k := len(t.free); k > 0 {
		id = t.free[k-1]
		t.free = t.free[:k-1]
		t.values[id] = value
	} else {
		id = int32(len(t.values))
		t.values = append(t.values, value)
		t.nodes = append(t.nodes, 0)
	}
	t.ids[value] = id
	return id
}
