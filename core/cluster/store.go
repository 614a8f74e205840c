// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/labelindex"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Store is the cluster state of the engine, which is its only writer.
type Store struct {
	names *resource.Names // kept; reports list resources in this order
	// index: node name -> row, also for rows whose node object is missing.
	index map[string]NodeIdx // derived: the names of the rows
	rows  []row              // kept
	free  []NodeIdx          // kept; rows to reuse, last freed first
	live  int                // derived: the number of nodes. Rows with a node object
	pods  map[UID]*entry     // derived: the entries of the rows
	// gangs: gang -> its pods that hold capacity. Invariant: no list is empty.
	gangs map[GangKey][]*entry // derived: the entries by gang, in no order
	// evictable counts the entries whose pods may be evicted for gangs.
	evictable int // derived: from the entries
	// objects holds the objects other than pods and nodes.
	objects map[Kind]*table // kept; kind -> its objects
	volumes volumeUse       // derived: from the entries and the objects

	// Columns by resource.ID; those of resource.Fixed are as long as rows. Only the sum and the assumed part are
	// stored. Invariant: requested = confirmed + assumed, and requested and assumed of a row are the sums over its
	// entries.
	allocatable []column // derived: from the nodes
	requested   []column // derived: the sums over the entries
	assumed     []column // derived: the sums over the assumed entries
	// nonZero are requested CPU and memory with defaults for silent containers.
	nonZero [2]column // derived: the sums over the entries

	taintSet      []int32      // derived: from the nodes. Row -> id in taintSets
	unschedulable []bool       // derived: from the nodes. Row -> spec.unschedulable
	taintSets     [][]v1.Taint // derived: from the nodes; caches compare its indexes
	// taintIDs: canonical form -> index in taintSets.
	taintIDs  map[string]int32             // derived: the indexes of taintSets
	images    map[string]*imageState       // kept
	labelSets map[labelindex.Label]*Bitmap // derived: from the nodes. Built on demand, kept up to date from then on
	labelKeys map[string]*Bitmap           // derived: from the nodes. The same for "has this label key"

	counters counters // derived: from the entries and the nodes. Sums over the pods that selectors ask for

	mix     mix     // kept; of shapes of pods
	offers  uint64  // derived: counts changes of allocatable amounts; only caches compare it
	largest largest // derived: from the nodes, on demand

	meter Meter // derived: given to SetMeter

	now     record.Time // derived: that of the engine, as of its last tick
	rev     uint64      // kept; counts changes of rows
	journal journal     // derived: caches that start anew read all rows
	renewal journal     // derived: as journal. See Snapshot.Renewals
	nodeLog journal     // derived: as journal. The subset of journal that concerns node objects
	// nodeSet counts changes of which nodes exist and which images they hold.
	nodeSet uint64 // derived: only caches compare it

	undo  []func() // derived: empty outside a transaction. How to undo the steps of the open transaction, oldest first
	inTxn bool     // derived: false outside a transaction
	trial *Trial   // derived: nil outside a transaction
	// supposed is the open transaction's, if it is one that End must undo.
	supposed *Supposition // derived: nil outside a transaction
	changes  changes      // derived: empty between two steps of an engine, which takes them
}

// row is the state of a node that is not in a column.
type row struct {
	name  string     // kept
	node  *Node      // kept; nil while the node object is missing
	pods  []*entry   // kept
	ports []HostPort // derived: from the entries. Of all pods on the node; a port that two pods use occurs twice
	// scalars has every resource beyond resource.Fixed of which the row is offered or holds an amount, once.
	scalars []resource.ID // derived: from the node and the entries
}

// entry is one pod in the ledger.
type entry struct {
	pod     *Pod      // kept; the record whose amounts are in the columns
	row     NodeIdx   // derived: the row that has it
	pos     int       // derived: its position there. Invariant: rows[row].pods[pos] is this entry.
	assumed bool      // kept
	gang    *GangMark // kept; in which it counts; nil for none
}

// imageState follows upstream's cache: an image keeps the size under which it was first observed while some node has
// it.
type imageState struct {
	size int64  // kept
	rows Bitmap // derived: from the nodes
	n    int    // derived: the size of rows
}

// Meter receives amounts of work; see engine.Meter.
type Meter interface {
	Did(work record.Work, n int)
}

// SetMeter sets what receives the work of the store: counters that are rebuilt.
func (s *Store) SetMeter(m Meter) { s.meter = m }

// NewStore returns an empty store.
func NewStore() *Store {
	s := &Store{
		names:     resource.NewNames(),
		index:     map[string]NodeIdx{},
		pods:      map[UID]*entry{},
		gangs:     map[GangKey][]*entry{},
		objects:   map[Kind]*table{},
		taintIDs:  map[string]int32{},
		images:    map[string]*imageState{},
		labelSets: map[labelindex.Label]*Bitmap{},
		labelKeys: map[string]*Bitmap{},
	}
	s.growColumns()
	return s
}

// SetNow sets the time. Time is not part of a transaction: Abort does not restore it.
func (s *Store) SetNow(now record.Time) { s.now = now }

// Begin opens a transaction: Abort undoes every later change until Commit. No transaction may be open.
func (s *Store) Begin() {
	if s.inTxn {
		panic(Broken("Begin inside a transaction"))
	}
	s.inTxn, s.undo = true, s.undo[:0]
}

// Commit makes the transaction final. Must be called after Begin.
func (s *Store) Commit() {
	s.mustBeInTxn("Commit")
	if s.trial != nil {
		panic(Broken("Commit with an open trial"))
	}
	if s.supposed != nil {
		panic(Broken("Commit of a supposition"))
	}
	clear(s.undo)
	s.undo, s.inTxn = s.undo[:0], false
	s.changes.end()
}

// Abort undoes everything since Begin, an open trial included.
func (s *Store) Abort() {
	s.mustBeInTxn("Abort")
	s.trial = nil
	s.rollback(0)
	s.inTxn = false
	s.changes.end()
}

func (s *Store) mustBeInTxn(op string) {
	if !s.inTxn {
		panic(Broken(op + " outside a transaction"))
	}
}

// rollback undoes the newest steps until mark remain.
func (s *Store) rollback(mark int) {
	for i := len(s.undo) - 1; i >= mark; i-- {
		undo := s.undo[i]
		s.undo[i] = nil
		s.undo = s.undo[:i]
		undo()
	}
	s.undo = s.undo[:mark]
	s.changes.undone(mark)
}

// did records how to undo a step that was just made.
func (s *Store) did(undo func()) {
	if s.inTxn {
		s.undo = append(s.undo, undo)
	}
}

// touch records that a row changed.
func (s *Store) touch(n NodeIdx) {
	s.rev++
	s.journal.add(n)
}

func (s *Store) growColumns() {
	for _, cols := range []*[]column{&s.allocatable, &s.requested, &s.assumed} {
		for len(*cols) < s.names.Len() {
			*cols = append(*cols, column{})
		}
		for i := range resource.Fixed {
			(*cols)[i].grow(len(s.rows))
		}
	}
	s.nonZero[0].grow(len(s.rows))
	s.nonZero[1].grow(len(s.rows))
	for len(s.taintSet) < len(s.rows) {
		s.taintSet = append(s.taintSet, 0)
		s.unschedulable = append(s.unschedulable, false)
	}
}

// columnOf returns the id of a resource and makes its column if it is new.
func (s *Store) columnOf(name v1.ResourceName) resource.ID {
	id := s.names.Intern(name)
	if int(id) >= len(s.requested) {
		s.growColumns()
	}
	return id
}

// rowFor returns the row of a node name and assigns one if it is new.
func (s *Store) rowFor(name string) NodeIdx {
	if n, ok := s.index[name]; ok {
		return n
	}
	var n NodeIdx
	if k := len(s.free); k > 0 {
		n = s.free[k-1]
		s.free = s.free[:k-1]
		s.rows[n].name = name
	} else {
		n = NodeIdx(len(s.rows))
		s.rows = append(s.rows, row{name: name})
		s.growColumns()
	}
	s.index[name] = n
	s.did(func() { s.freeRow(n) })
	return n
}

// releaseIfEmpty frees a row that has neither a node nor pods.
func (s *Store) releaseIfEmpty(n NodeIdx) {
	r := &s.rows[n]
	if r.node != nil || len(r.pods) > 0 {
		return
	}
	name := r.name
	s.freeRow(n)
	s.did(func() {
		if got := s.rowFor(name); got != n {
			panic(Broken(fmt.Sprintf("undo took row %d for node %q, it had %d", got, name, n)))
		}
		s.undo = s.undo[:len(s.undo)-1] // rowFor recorded its own undo, which runs now
	})
}

func (s *Store) freeRow(n NodeIdx) {
	r := &s.rows[n]
	if len(r.pods) != 0 || r.node != nil || len(r.ports) != 0 {
		panic(Broken(fmt.Sprintf("freeing row %d of node %q with %d pods, node object %v", n, r.name, len(r.pods),
			r.node != nil)))
	}
	delete(s.index, r.name)
	r.name, r.scalars = "", r.scalars[:0]
	s.free = append(s.free, n)
}

// SetNode records a node and returns the version known before, nil for a new one.
func (s *Store) SetNode(node *Node) (old *Node) {
	n := s.rowFor(node.Name)
	old = s.rows[n].node
	s.putNode(n, node)
	s.did(func() { s.putNode(n, old) })
	s.changed(Change{Kind: NodeChanged, Node: node})
	return old
}

// DeleteNode removes a node object and returns the known version, nil if there was none. The row stays while pods are
// on it: their delete events may arrive later.
func (s *Store) DeleteNode(name string) (old *Node) {
	n, ok := s.index[name]
	if !ok || s.rows[n].node == nil {
		return nil
	}
	old = s.rows[n].node
	s.putNode(n, nil)
	s.did(func() { s.putNode(n, old) })
	s.releaseIfEmpty(n)
	s.changed(Change{Kind: NodeRemoved, Name: name})
	return old
}

// putNode sets node (nil: none) as the object of row n and updates columns, bitmaps and images.
func (s *Store) putNode(n NodeIdx, node *Node) {
	r := &s.rows[n]
	old := r.node
	r.node = node
	switch {
	case old == nil && node != nil:
		s.live++
		s.nodeSet++
	case old != nil && node == nil:
		s.live--
		s.nodeSet++
	}
	s.volumesNode(n, old, node)
	if old == nil || node == nil || !old.Allocatable.Equal(&node.Allocatable) {
		s.offers++
	}
	s.putAllocatable(n, node)
	s.putLabels(n, old, node)
	s.putImages(n, old, node)
	s.counters.relabel(n, node)
	s.unschedulable[n] = node != nil && node.Unschedulable
	s.taintSet[n] = 0
	if node != nil {
		s.taintSet[n] = s.taintSetOf(node.Taints)
	}
	s.nodeLog.add(n)
	s.touch(n)
}

func (s *Store) putAllocatable(n NodeIdx, node *Node) {
	var a resource.Amounts
	if node != nil {
		a = node.Allocatable
	}
	s.allocatable[resource.CPU].put(n, a.MilliCPU)
	s.allocatable[resource.Memory].put(n, a.Memory)
	s.allocatable[resource.Ephemeral].put(n, a.Ephemeral)
	s.allocatable[resource.Pods].put(n, a.Pods)
	r := &s.rows[n]
	r.scalars = slices.DeleteFunc(r.scalars, func(id resource.ID) bool {
		s.allocatable[id].put(n, 0)
		return s.requested[id].get(n) == 0
	})
	for _, sc := range a.Scalars {
		id := s.columnOf(sc.Name)
		s.allocatable[id].put(n, sc.Value)
		r.has(id)
	}
}

// has records that the row is offered or holds an amount of a resource.
func (r *row) has(id resource.ID) {
	if id >= resource.Fixed && !slices.Contains(r.scalars, id) {
		r.scalars = append(r.scalars, id)
	}
}

func (s *Store) taintSetOf(taints []v1.Taint) int32 {
	var b strings.Builder
	for _, t := range taints {
		fmt.Fprintf(&b, "%q=%q:%q,", t.Key, t.Value, t.Effect)
	}
	key := b.String()
	if id, ok := s.taintIDs[key]; ok {
		return id
	}
	id := int32(len(s.taintSets))
	s.taintSets = append(s.taintSets, taints)
	s.taintIDs[key] = id
	return id
}

func (s *Store) putLabels(n NodeIdx, old, node *Node) {
	if old != nil {
		for k, v := range old.Labels { // order: each pair has its own bitmaps
			if b := s.labelSets[labelindex.Label{Key: k, Value: v}]; b != nil {
				b.Clear(n)
			}
			if b := s.labelKeys[k]; b != nil {
				b.Clear(n)
			}
		}
	}
	if node != nil {
		for k, v := range node.Labels { // order: each pair has its own bitmaps
			if b := s.labelSets[labelindex.Label{Key: k, Value: v}]; b != nil {
				b.Set(n)
			}
			if b := s.labelKeys[k]; b != nil {
				b.Set(n)
			}
		}
	}
}

func (s *Store) putImages(n NodeIdx, old, node *Node) {
	if old != nil {
		for _, img := range old.Images {
			for _, name := range img.Names {
				st := s.images[name]
				if st == nil || !st.rows.Has(n) {
					continue // the list contains the image twice
				}
				st.rows.Clear(n)
				if st.n--; st.n == 0 {
					delete(s.images, name)
				}
				s.nodeSet++
			}
		}
	}
	if node != nil {
		for _, img := range node.Images {
			for _, name := range img.Names {
				st := s.images[name]
				if st == nil {
					st = &imageState{size: img.Size}
					s.images[name] = st
				}
				if !st.rows.Has(n) {
					st.rows.Set(n)
					st.n++
					s.nodeSet++
				}
			}
		}
	}
}
